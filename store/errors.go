package store

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// The outcomes that a caller tells apart with errors.Is. Damage is not among
// them: it is the type [DamagedError], because it has a place.
var (
	// ErrNotStore: the directory holds something, but not a store of ours.
	// Nothing in it was touched.
	ErrNotStore = errors.New("store: not a looptape store")
	// ErrNewerVersion: the store was written by a newer program. Nothing in it
	// was touched.
	ErrNewerVersion = errors.New("store: written by a newer version")
	// ErrLocked: another process, or another Store of this one, has it open.
	ErrLocked = errors.New("store: in use by another process")
	// ErrFailed: the disk failed in a way that leaves no way on. What was
	// durable stays so and is found by the next process that opens the store;
	// this one can only read and close.
	ErrFailed = errors.New("store: failed")
	// ErrReadOnly: the store was opened for reading only.
	ErrReadOnly = errors.New("store: read-only")
	// ErrClosed: the Store was closed.
	ErrClosed = errors.New("store: closed")
	// ErrExists: Create was asked for a pane that has a log.
	ErrExists = errors.New("store: the pane has a log already")
	// ErrNoLog: the pane has no log.
	ErrNoLog = errors.New("store: the pane has no log")
	// ErrEvicted: the position lies before the oldest retained one.
	ErrEvicted = errors.New("store: no longer retained")
	// ErrNoCheckpoint: the log has no such checkpoint.
	ErrNoCheckpoint = errors.New("store: no such checkpoint")
	// ErrNoRecord: Get found nothing under the key.
	ErrNoRecord = errors.New("store: no such record")
	// ErrRecordSize: the value of a record is longer than MaxRecord, or its key longer
	// than 65535 bytes. Nothing was stored.
	ErrRecordSize = errors.New("store: a record is too long")
	// errBusy: the log is just being made or removed.
	errBusy = errors.New("store: the log is being made or removed")
	// ErrPosition: the offset of a Pos is not that of its frame.
	ErrPosition = errors.New("store: no such position in the log")
)

// DamagedError reports bytes on disk that are not what was written: a
// checksum that does not match, a block that cannot be read, a record that
// does not follow the one before it.
type DamagedError struct {
	// Pane is the pane whose log is damaged, WholeStore if the damage is in a
	// record of the whole store.
	Pane uint64
	// Offset is the stream offset of the first byte that cannot be read.
	Offset uint64
	// Err says what is wrong.
	Err error
}

// WholeStore is no pane.
const WholeStore = math.MaxUint64

func (e *DamagedError) Error() string {
	if e.Pane == WholeStore {
		return "store: " + firstLine(e.Err)
	}
	return fmt.Sprintf("store: pane %d damaged at offset %d: %v", e.Pane, e.Offset, firstLine(e.Err))
}

// firstLine is what err says without the detail that Pebble's errors carry on
// further lines.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (e *DamagedError) Unwrap() error { return e.Err }

// What a decoder finds wrong with a record; wrapped in a DamagedError by those
// who know the place.
var (
	errShort    = errors.New("record is cut short")
	errChecksum = errors.New("checksum does not match")
	errRecord   = errors.New("record contradicts itself")
	errMissing  = errors.New("record is missing")
	errBlock    = errors.New("block cannot be read")
)
