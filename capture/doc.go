// Package capture reads panes: rows of screen and scrollback, the stream since
// a cursor, and exports. It is stateless, and it never writes.
//
// A pane is read through two things, its Terminal between two batches and its
// log ([Pane]); the live pane and the archive look alike from here. Rows come
// from the Terminal ([Screen], [Rows]), the stream from the log ([Since], [Wait],
// [Commands]); a past screen ([At]), a search ([Search]) and an export ([Export]) are
// replays of the log.
//
// The package holds the selection and paging rules of seed 000, sections 3 to
// 6, the text filter and the cursors of capture_since (contract.md, section 7),
// and the formats of exports. It knows no connection, no rights and no ids
// beyond the one it is told to print. It refuses to guess: a row or a byte that
// is no longer there is an error or is counted in the answer, never left out in
// silence.
package capture

import (
	"context"

	"looptape/replay"
	"looptape/store"
)

// Pane is what is read: a live pane, or the archive of one.
type Pane interface {
	// View calls read with the Terminal at one instant; read must not keep it.
	// closed says that the pane can write no more.
	View(ctx context.Context, read func(t *replay.Terminal, closed bool)) error
	// Await returns when the stream goes on behind at.Offset, when there is a frame
	// at.Seq, or when no more can come.
	Await(ctx context.Context, at store.Pos) error
	// Log is the log of the pane.
	Log() *store.Log
	// Reached is the offset of the stream that the pane has come to. It is behind the
	// log's end while a gap is open there, as on a full disk.
	Reached(ctx context.Context) uint64
}

// Error is an error that the caller of a verb is to see.
type Error struct {
	Code    string // family.detail, as in the manifest
	Message string
	Data    any // marshals to a JSON object
}

func (e *Error) Error() string { return e.Message }
