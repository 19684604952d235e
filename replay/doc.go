// Package replay is the terminal of a pane and the way back to any of its past
// states.
//
// It owns what bytes mean: [Terminal] is the one authority on what a pane shows, for
// the live pane, for an archive and for every read at a past offset. It is a pure
// state machine: bytes and resizes go in; rows, state, replies, events and lines
// come out; it imports no clock, no randomness, no files and no network, and the
// same frames give the same State to the byte. [Hydrate] makes a Terminal of a
// checkpoint and the frames of a log behind it. [Lexer] is the product's one lexer.
//
// # Layout
//
// The stream is cut into tokens (lexer.go, utf8.go, lexerstate.go) and obeyed by
// kind: text (print.go, width.go), controls and escape sequences (esc.go), control
// sequences (csi.go, erase.go, sgr.go, modes.go), strings (osc.go), queries
// (replies.go). terminal.go holds the Terminal and its feeding, batch.go the short
// cut for lines that scroll off within one feeding. work.go says what things cost.
//
// A screen (screen.go) is rows of 8-byte cells (cell.go) that are made when first
// written; styles (styleset.go), hyperlinks and clusters are interned. What scrolls off
// is packed (pack.go) into the history (history.go, runload.go): text and style runs of
// physical rows, the rows of a logical line one behind the other. A resize (reflow.go)
// cuts lines anew by rebuilding tables of 24 bytes a row; text does not move. rows.go reads,
// lines.go reports each logical line when it leaves for good, state.go is State and
// Restore. snapshot.go, painter.go and unfinished.go write what rebuilds a Terminal in
// any fresh terminal, validutf8.go what a text format can hold of a stream. input.go
// encodes keys, mouse events and pastes by x/vt, which sees modes only. frames.go and
// hydrate.go apply a log.
//
// # What it refuses
//
// Raw C1 bytes are invalid UTF-8 and never obeyed. Left-right margins (?69), 132
// columns (?3), rectangles (DECFRA and the like), SS2 and SS3, resizing by the
// program, answers that would echo a title or the clipboard, sixels and other
// graphics do nothing. docs/decisions says why, and what was chosen where terminals
// differ.
//
// # Limits
//
// Sizes are 1..[MaxSide] columns and rows, cells of a screen at most 2^22, history
// 0..[MaxScrollback] rows. A control sequence has [MaxParams] parameters up to
// 65,535; an OSC payload [MaxOSC] bytes, a DCS payload [MaxDCS], a title
// [MaxTitle], a hyperlink [MaxLink]. A cell holds a cluster of [MaxCluster] bytes, of
// fewer on a screen of more than 2^19 cells, whose text is at most [MaxScreenText]. So
// both screens, with a style for each cell and all links, fit into a checkpoint
// (store.MaxCheckpoint); where the history makes it more, its oldest rows are left out of
// that ([Terminal.EncodeState]).
// The history is at most [MaxHistoryBytes] and [MaxHistoryRow] for each row of
// scrollback, where a row is its text and 20 bytes for each run of one style; of longer
// or more colourful rows fewer are kept (10,000 of 80 columns fit, each cell of a colour
// of its own).
// Both screens together have at most [MaxLinks] hyperlinks, and from three quarters of
// that on a few may be refused, the history [MaxLinkBytes] of them. A logical line is at
// most [MaxLine] bytes and one row; a longer one is broken, its text kept. [MaxReplies]
// bounds the answers that nobody takes. Beyond a limit things are dropped, never the text
// of a row.
//
// The work of one function is bounded by the cells of the screen: filling 80x24 cells
// takes some microseconds, filling 2^22 of them some tens of milliseconds, and REP of
// wide characters, the slowest, 40 ns a character.
//
// An empty pane of 80x24 costs 6 KB, 10,000 full rows of 80 columns 1.1 MB, or 1.2 MB
// with every fifth cell coloured; a history in which every cell has a colour of its
// own costs about 60 bytes a cell.
//
// # Not done
//
// Rows of a screen that lie below the cursor and do not fit beside it after a resize
// leave for good, as in xterm.js and tmux (the line sink has them). A wide character
// on a screen of one column is shown as U+FFFD. The kitty keyboard protocol is kept
// and answered, but keys are encoded the common way.
package replay
