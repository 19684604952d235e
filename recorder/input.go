package recorder

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxQueued bounds what waits for a program that does not read: for input and
// for replies each, in bytes.
const maxQueued = 64 << 10

// inputPiece is what is written at once, in bytes: what the kernel keeps for a
// terminal is little more.
const inputPiece = 4 << 10

// ErrInputFull says that the program does not read its input.
var ErrInputFull = fmt.Errorf("the program does not read: %d bytes wait for it already", maxQueued)

// errHungUp is the outcome of input that the end of the program overtakes.
var errHungUp = fmt.Errorf("%w: its terminal was closed before it could read the input", ErrExited)

// inputWriter writes to the PTY in a goroutine of its own.
type inputWriter struct {
	pty   *master
	wake  chan struct{} // holds one: there may be something to write
	taken chan struct{} // holds one: the program has read something

	mu      sync.Mutex
	replies []byte
	input   []typed
	queued  int // bytes in input
	dropped int // bytes of replies that were thrown away
	closed  bool
	moved   time.Time // when something was taken last, or began to wait
}

// typed is one piece of input; done receives one error, or nil once the kernel
// has taken all of it.
type typed struct {
	data []byte
	done chan error
}

func newInputWriter(pty *master) *inputWriter {
	return &inputWriter{pty: pty, wake: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

// run writes what is queued, replies first. It ends after close; nobody waits
// for it, since closing the PTY ends every write.
func (w *inputWriter) run() {
	for range w.wake {
		for {
			data, done, ok := w.take()
			if !ok {
				break
			}
			err := w.write(data)
			if errors.Is(err, os.ErrClosed) || errors.Is(err, unix.EIO) {
				err = errHungUp
			}
			if done != nil {
				done <- err
			}
			if err != nil {
				w.close()
			}
		}
	}
}

// write writes data, and notes when some of it was taken.
func (w *inputWriter) write(data []byte) error {
	w.note()
	for len(data) > 0 {
		n, err := w.pty.file.Write(data[:min(len(data), inputPiece)])
		if data = data[n:]; err != nil {
			return err
		}
		w.note()
	}
	return nil
}

func (w *inputWriter) note() {
	w.mu.Lock()
	w.moved = time.Now()
	w.mu.Unlock()
	select {
	case w.taken <- struct{}{}:
	default:
	}
}

// lastTaken is when the program last read something that was waiting for it.
func (w *inputWriter) lastTaken() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moved
}

// take removes the next thing to write.
func (w *inputWriter) take() (data []byte, done chan error, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return nil, nil, false
	case len(w.replies) > 0:
		data, w.replies = w.replies, nil
		return data, nil, true
	case len(w.input) > 0:
		next := w.input[0]
		w.input = w.input[1:]
		w.queued -= len(next.data)
		return next.data, next.done, true
	}
	return nil, nil, false
}

// reply queues an answer of the Terminal's. One that finds no room is dropped
// whole and counted: half an answer would be worse than none.
func (w *inputWriter) reply(data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.replies)+len(data) > maxQueued {
		w.dropped += len(data)
		return
	}
	w.replies = append(w.replies, data...)
	w.wakeLocked()
}

// typeIn queues input, which must not change afterwards. Nothing at all is typed at once:
// it would take no room, and so could be queued without end.
func (w *inputWriter) typeIn(data []byte) (done <-chan error, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errHungUp
	}
	switch {
	case len(data) == 0:
		typed := make(chan error, 1)
		typed <- nil
		return typed, nil
	case len(data) > maxQueued:
		return nil, ErrInputSize
	case w.queued+len(data) > maxQueued:
		return nil, ErrInputFull
	}
	if w.queued == 0 {
		w.moved = time.Now()
	}
	t := typed{data: data, done: make(chan error, 1)}
	w.input = append(w.input, t)
	w.queued += len(data)
	w.wakeLocked()
	return t.done, nil
}

func (w *inputWriter) wakeLocked() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close fails what is still queued and ends run. It may be called twice.
func (w *inputWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	for _, t := range w.input {
		t.done <- errHungUp
	}
	w.input = nil
	close(w.wake)
}

// droppedReplies is the number of bytes of replies that found no room.
func (w *inputWriter) droppedReplies() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}
