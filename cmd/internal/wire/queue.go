package wire

import (
	"errors"
	"os"
	"sync"
	"time"
)

const (
	writeDeadline = 30 * time.Second // without the client reading a byte
	// writeTick is how often a write that does not move looks around: whether
	// the server stops, and whether others need the memory.
	writeTick = time.Second
	// lastWrites is how long answers may take once the server stops.
	lastWrites = time.Second
)

// queued is a frame that the client has not read yet.
type queued struct {
	frame []byte
	cost  int
	from  payer
}

// payer is whose bytes a queued frame takes, until it is written.
type payer uint8

const (
	byRequest payer = iota // conn.own and conn.shared
	byReader               // conn.control
)

// queue holds frames in the order in which they go out. What may be in it is
// decided by budgets: push never waits.
type queue struct {
	wake chan struct{} // holds one: something was pushed, or the queue closed

	mu     sync.Mutex
	frames []queued
	bytes  int // of frames and of the one that is being written
	closed bool
}

func (q *queue) push(f queued) {
	q.mu.Lock()
	q.frames = append(q.frames, f)
	q.bytes += f.cost
	q.mu.Unlock()
	q.signal()
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for a frame; false means that there will be none any more.
func (q *queue) next() (queued, bool) {
	for {
		q.mu.Lock()
		if len(q.frames) > 0 {
			f := q.frames[0]
			q.frames[0] = queued{}
			q.frames = q.frames[1:]
			q.mu.Unlock()
			return f, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return queued{}, false
		}
		<-q.wake
	}
}

// written says that a frame which next returned is gone.
func (q *queue) written(f queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= f.cost
}

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// write sends what is queued, and drops it once the client no longer reads. It
// ends when the queue is closed and empty; Serve waits for it.
func (c *conn) write() {
	defer close(c.written)
	dropped := false
	for {
		f, ok := c.out.next()
		if !ok {
			return
		}
		if !dropped && !c.put(f.frame) {
			dropped = true
			c.hangUp()
		}
		c.out.written(f)
		if f.from == byReader {
			c.control.release(f.cost)
		} else {
			c.free(f.cost)
		}
	}
}

// put writes one frame; false means that the client does not read any more.
func (c *conn) put(b []byte) bool {
	moved := time.Now()
	for len(b) > 0 {
		deadline := time.Now().Add(writeTick)
		if stop, stopping := c.stopped(); stopping {
			deadline = stop.Add(lastWrites)
		}
		c.nc.SetWriteDeadline(deadline)
		n, err := c.nc.Write(b)
		b = b[n:]
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		if n > 0 {
			moved = time.Now()
		}
		if c.tooSlow(time.Since(moved)) {
			return false
		}
	}
	return true
}

// tooSlow says whether a client that has read nothing for so long is dropped:
// after writeDeadline, when the server stops, and at the next tick when others
// wait for memory and this one holds more than its part of it.
func (c *conn) tooSlow(idle time.Duration) bool {
	if stop, stopping := c.stopped(); stopping {
		return time.Since(stop) >= lastWrites
	}
	hoards := c.out.size() > c.shared.size/fairParts && c.shared.short()
	return idle >= writeDeadline || hoards && idle >= writeTick
}
