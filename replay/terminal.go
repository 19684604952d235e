package replay

import (
	"looptape/checkpoint"
)

// Limits of a terminal's size. Sizes outside are clamped.
const (
	MaxSide       = 65535   // columns, rows
	MaxScrollback = 1000000 // rows of history
	maxCells      = 1 << 22 // columns times rows; rows are cut to it
)

// Terminal is the screen of one pane: a deterministic state machine that bytes
// and resizes go into and that rows, state, replies and events come out of. It
// belongs to one goroutine at a time.
type Terminal struct {
	cols, rows int
	grid       *screen // the screen shown: &main or &alt
	main, alt  screen
	hist       history
	tab        table
	cur        cursor
	region
	modes   modes
	tabs    tabStops
	names   names
	palette palette
	lex     Lexer
	clock
	out   output
	batch batch
}

// region is the rows that scroll, inclusive.
type region struct{ top, bottom int }

// clock is where in the stream and in the numbering of rows a Terminal is.
type clock struct {
	offset     uint64
	work       uint64
	epoch      uint32
	generation uint32 // Respawns so far
	moved      uint64 // see Moved; no part of the state
}

// cursor is the cursor and the pen.
type cursor struct {
	x, y    int
	pending bool // the last column was written: the next character wraps
	pen     style
	pencell cell // the pen's number in cell position
	stale   bool // pencell must be found again
	chars   checkpoint.Charsets
	shape   uint8
	last    []byte // cluster for REP; empty if the last token was no text
	joins   bool   // the next character may join the cluster left of the cursor
	code    rune   // the last code point of that cluster
	class   class  // its class
}

// output is what came out and waits to be taken.
type output struct {
	replies []byte
	events  func(Event)
	sink    func(Line)
	line    []byte // scratch for the sink
	styled  bool   // the sink wants styles
	runs    []Run  // of line
	text    []byte // scratch for rows
}

var defaultCharsets = checkpoint.Charsets{G: [4]uint8{'B', 'B', 'B', 'B'}}

// New returns a terminal of the given size that keeps scrollback rows of history
// (0..MaxScrollback). It is in epoch 1 at offset 0.
func New(cols, rows, scrollback int) *Terminal {
	cols, rows = clampSize(cols, rows)
	t := &Terminal{cols: cols, rows: rows, clock: clock{epoch: 1}}
	t.hist.limit = min(max(scrollback, 0), MaxScrollback)
	t.hist.budget, t.hist.linkBudget = historyBudget(t.hist.limit), MaxLinkBytes
	t.tab.most = mostCluster(cols, rows)
	t.tab.reset()
	t.main = newScreen(rows, 0)
	t.grid = &t.main
	t.defaults()
	return t
}

func clampSize(cols, rows int) (int, int) {
	cols = min(max(cols, 1), MaxSide)
	return cols, min(max(rows, 1), MaxSide, max(maxCells/cols, 1))
}

// defaults puts everything but the screens, history and names into its initial
// state.
func (t *Terminal) defaults() {
	t.top, t.bottom = 0, t.rows-1
	t.modes = defaultModes()
	t.cur = cursor{chars: defaultCharsets, last: t.cur.last[:0]}
	t.tabs.reset(t.cols)
	t.main.saved, t.main.kitty = nil, nil
	t.lex.Reset()
}

// Feed consumes a piece of the stream. Any division of a stream into pieces gives
// the same result; p is not kept.
func (t *Terminal) Feed(p []byte) {
	start := t.offset
	t.work += weigh(p)
	t.batch.begin(p, t.rows)
	for i := 0; i < len(p); {
		if t.batch.due(p, i) {
			if n := t.fastLines(p[i:], i); n > 0 {
				i += n
				continue
			}
		}
		tok, n := t.lex.Next(p[i:])
		i += n
		end := start + uint64(i)
		if tok.Kind == Text {
			t.offset = end - uint64(len(tok.Text))
			t.print(tok)
			t.offset = end
			continue
		}
		t.offset = end
		if tok.Kind != None {
			t.obey(tok)
		}
	}
	t.offset = start + uint64(len(p))
	if t.tab.full() {
		t.compact()
	}
}

// obey carries out a token other than text.
func (t *Terminal) obey(tok Token) {
	c := &t.cur
	if tok.Kind == CSI && t.lex.ninter == 0 && t.lex.prefix == 0 {
		switch tok.Code {
		case 'm': // the next character may still belong to the cluster before
			c.last = c.last[:0]
			t.sgr()
			return
		case 'b':
			t.repeat(t.lex.Param(0, 1))
			c.last = c.last[:0]
			return
		}
	}
	c.last = c.last[:0]
	c.joins = false
	switch tok.Kind {
	case Control:
		t.control(tok.Code)
	case Escape:
		t.escape(byte(tok.Code))
	case CSI:
		t.csi(byte(tok.Code))
	case OSC:
		t.osc(tok.Text, tok.Code)
	case DCS:
		t.dcs(byte(tok.Code), tok.Text)
	}
	if t.tab.full() {
		t.compact()
	}
}

// compact drops unused styles, clusters and links.
func (t *Terminal) compact() {
	if t.grid == &t.main { // what the alternate screen had is not there any more
		for _, r := range t.alt.rows {
			r.reset(0)
		}
	}
	t.tab.compact(&t.main, &t.alt)
	t.cur.stale = true
	t.setPen(t.cur.pen)
}

// Gap says that n bytes of the stream are missing: the offset goes on behind
// them, an unfinished sequence is forgotten, the screen stays.
func (t *Terminal) Gap(n uint64) {
	t.FlushLines()
	t.lex.Reset()
	t.cur.last, t.cur.joins = t.cur.last[:0], false
	t.offset += n
}

// Restart says that the program is gone and another will write: the main screen
// is shown, rows and history as they are; modes, pen, margins, tab stops and
// charsets get their defaults; the epoch grows by 1+skip.
func (t *Terminal) Restart(skip uint32) {
	t.FlushLines()
	x, y := t.cur.x, t.cur.y
	if t.grid != &t.main {
		x, y = t.main.x, t.main.y
		t.grid = &t.main
	}
	t.alt = screen{}
	t.defaults()
	t.cur.x, t.cur.y = x, y
	t.bump()
	t.epoch += skip
}

// Respawn says that a new program starts in the pane: as Restart(0), the rows that
// hold text move into the history, and the names and colours that the program
// before set go. A new generation begins.
func (t *Terminal) Respawn() {
	t.Restart(0)
	t.generation++
	t.names, t.palette = names{}, nil
	n := t.rows
	for n > 0 && t.main.rows[n-1].blank() {
		n--
	}
	t.main.rows[max(n-1, 0)].wrapped = false
	for _, r := range t.main.rows {
		if n > 0 {
			t.push(r)
			n--
		}
		r.reset(t.offset)
	}
	t.closeHistory()
	t.cur.x, t.cur.y = 0, 0
	t.hist.renumber()
}

// bump begins a new epoch, in which the oldest row kept is row 0.
func (t *Terminal) bump() {
	t.epoch++
	t.hist.renumber()
}

// Offset returns the number of stream bytes consumed.
func (t *Terminal) Offset() uint64 { return t.offset }

// Generation returns how many programs took the place of another in the pane so
// far: the number of Respawns.
func (t *Terminal) Generation() uint32 { return t.generation }

// Work returns a count that grows with the work that replaying the stream takes
// (work.go): a plain line counts little more than its bytes. It depends on the stream
// only.
func (t *Terminal) Work() uint64 { return t.work }

// Moved returns the offset behind the last sequence that gave rows of the screen other
// numbers, as scrolling a part of it does: their text did not change, but that of the
// numbers did. A Terminal that was restored takes what it was restored at.
func (t *Terminal) Moved() uint64 { return t.moved }

// TextMoves reports whether a byte of text can touch a whole row of the screen: where
// characters are inserted, or rows of a colour scroll in.
func (t *Terminal) TextMoves() bool {
	return t.modes.has(modeInsert) || t.cur.pen.bg != 0
}

// Weight is about how many bytes a State with all of the history takes, encoded. It
// depends on the stream only.
func (t *Terminal) Weight() uint64 {
	return uint64(t.hist.bytes + 8*t.hist.rows())
}

// TakeReplies returns the answers to queries since the last call, for the
// program's input. A replay drops them.
func (t *Terminal) TakeReplies() []byte {
	r := t.out.replies
	t.out.replies = nil
	return r
}

// EventKind says what an Event is.
type EventKind uint8

// Kinds of Event.
const (
	Bell         EventKind = iota + 1
	TitleChanged           // Text is the title (OSC 0 or 2)
	CwdChanged             // Text is the payload of OSC 7
	PromptStart            // OSC 133 A
	CommandStart           // OSC 133 B
	OutputStart            // OSC 133 C; Text is its options
	CommandEnd             // OSC 133 D; Text is the exit code, if given
	Notification           // OSC 9 or 777; Text is the message
	Hyperlink              // OSC 8 with a URI; Text is the URI
)

// Event is something to observe besides rows. Offset is behind its last byte.
type Event struct {
	Kind   EventKind
	Offset uint64
	Text   string
}

// MaxReplies bounds the replies that wait to be taken, in bytes; what is beyond is
// dropped. A pane's input queue holds as many.
const MaxReplies = 64 << 10

// SetEventSink has sink called, while t is fed, with each event, in the order of the
// stream; nil, as at first, is nobody. It must not use t.
func (t *Terminal) SetEventSink(sink func(Event)) { t.out.events = sink }

func (t *Terminal) event(k EventKind, text string) {
	if t.out.events != nil {
		t.out.events(Event{k, t.offset, text})
	}
}

func (t *Terminal) reply(s string) {
	if len(t.out.replies)+len(s) <= MaxReplies {
		t.out.replies = append(t.out.replies, s...)
	}
}

// Cursor describes the cursor. Col is 0..cols-1 (a pending wrap reads as the last
// column), Row counts from the top of the screen, Shape is DECSCUSR's number.
type Cursor struct {
	Col, Row int
	Visible  bool
	Pending  bool
	Shape    uint8
}

// Cursor returns the cursor of the screen shown.
func (t *Terminal) Cursor() Cursor {
	return Cursor{t.cur.x, t.cur.y, t.modes.has(modeCursor), t.cur.pending, t.cur.shape}
}

// Title returns the window title (OSC 0 or 2).
func (t *Terminal) Title() string { return t.names.title }

// Cwd returns the working directory that the program reported (OSC 7), as it
// came: usually a file URI.
func (t *Terminal) Cwd() string { return t.names.cwd }
