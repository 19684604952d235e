package cli

import (
	"io"
	"log/slog"
	"sync"
)

// maxQueued bounds the lines that wait to be written, in bytes.
const maxQueued = 256 << 10

// logQueue is a log that holds up nobody who writes to it: what it passes on to may take
// nothing for as long as it likes, as a terminal does behind Ctrl-S, and a pipe that
// nobody reads. What comes meanwhile waits; beyond maxQueued it is dropped, and the log
// says how many lines were.
type logQueue struct {
	out    io.Writer       // pass's
	stir   chan struct{}   // holds one: there is something for pass to do
	passed <-chan struct{} // closed when all is passed on and no more comes

	mu      sync.Mutex
	lines   []byte
	dropped int // lines that came behind those
	closed  bool
}

func newLogQueue(out io.Writer) *logQueue {
	q := &logQueue{out: out, stir: make(chan struct{}, 1)}
	q.passed = start(q.pass)
	return q
}

// Write queues one line. It cannot fail.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dropped > 0 || len(q.lines) > 0 && len(q.lines)+len(line) > maxQueued {
		q.dropped++
	} else {
		q.lines = append(q.lines, line...)
	}
	q.wake()
	return len(line), nil
}

func (q *logQueue) wake() {
	select {
	case q.stir <- struct{}{}:
	default:
	}
}

// close passes on what is queued, unless that is stuck.
func (q *logQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.wake()
	q.mu.Unlock()
	await(q.passed)
}

// pass writes what is queued. It ends once q is closed and nothing is left; close waits
// for it. That nobody can be told any more is no error.
func (q *logQueue) pass() {
	for range q.stir {
		q.mu.Lock()
		lines, dropped, closed := q.lines, q.dropped, q.closed
		q.lines, q.dropped = nil, 0
		q.mu.Unlock()
		q.out.Write(lines)
		if dropped > 0 {
			slog.New(slog.NewTextHandler(q.out, nil)).Warn("lines of this log were dropped: nothing took them", "lines", dropped)
		}
		if closed {
			return
		}
	}
}
