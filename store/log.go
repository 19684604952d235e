package store

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Log is the log of one pane. One goroutine appends; any number may read,
// sync and ask at the same time.
type Log struct {
	s    *Store
	pane uint64

	// room says that there may be room again; one slot.
	room chan struct{}
	// queued is set while the log is in the committer's queue or on its stack,
	// next is its successor on the stack.
	queued atomic.Bool
	next   *Log
	// oldest is the first retained span, nil that at the zero Pos; written by whoever
	// opens the log or evicts from it.
	oldest atomic.Pointer[Pos]
	// tail is what of the end of the log is not in a final segment yet. The
	// committer's alone.
	tail tail
	// written is what was written, if syncs are put off. The committer's alone.
	written extent

	mu       sync.Mutex
	end      Pos    // behind the last frame appended
	durable  Pos    // behind the last frame that survives the process
	synced   extent // and, under Options.SyncEvery, the machine
	span     Pos    // where the current span began
	needFull bool   // a full checkpoint must come before anything else
	removed  bool   // nothing of the log is to be written any more
	busy     bool   // it wrote much lately
	clock    int64  // largest wall time appended
	pending  pending
	waitC    chan struct{}
	retain   uint64 // bytes to keep; 0 is the store's
}

// tail describes the records of frames at the end of a log that are to be
// merged: count tails, of raw bytes in all, the first of them at first, all
// in span.
type tail struct {
	span, first Pos
	raw, count  int
	frames      int
}

// Pane is the number that the log was created with.
func (l *Log) Pane() uint64 { return l.pane }

// Append adds a frame and returns the position behind it. It copies data (at
// most MaxFrame bytes), never blocks and never waits for the disk. It panics
// on what only a program with a mistake does: the kind 0 or Gap, data over
// MaxFrame, a frame before the first full checkpoint of the log or of what
// follows a gap.
func (l *Log) Append(kind Kind, t Time, data []byte) Pos {
	if kind == 0 || kind == Gap {
		panic(fmt.Sprintf("store: Append of kind %d", kind))
	}
	return l.append(kind, t, 0, data)
}

// AppendGap adds a frame that stands for lost bytes of the stream which are
// not there, and returns the position behind it. The next thing appended must
// be a full checkpoint.
func (l *Log) AppendGap(t Time, lost uint64, reason []byte) Pos {
	return l.append(Gap, t, lost, reason)
}

func (l *Log) append(kind Kind, t Time, lost uint64, data []byte) Pos {
	if len(data) > MaxFrame || l.s.opts.ReadOnly {
		panic(fmt.Sprintf("store: frame of %d bytes", len(data)))
	}
	l.mu.Lock()
	if l.removed {
		defer l.mu.Unlock()
		return l.end
	}
	if l.needFull && (kind != Gap || l.end == Pos{}) {
		l.mu.Unlock()
		panic(fmt.Sprintf("store: pane %d: frame without a full checkpoint", l.pane))
	}
	c, filled := l.chunkLocked(len(data), l.span)
	c.add(l.end.Offset, kind, t, lost, data)
	l.pending.inflight += len(data) + frameCost
	l.clock = max(l.clock, t.Wall)
	l.end = c.end()
	l.pending.total++
	l.needFull = kind == Gap
	end := l.end
	l.mu.Unlock()
	l.s.committer.wake(l, filled)
	return end
}

// AppendCheckpoint adds a checkpoint at the current end and returns its
// position. It copies blob (at most MaxCheckpoint bytes). A full one begins a
// new span and is the first thing of every log and the first thing after a
// gap; anything else there panics.
func (l *Log) AppendCheckpoint(blob []byte, full bool) Pos {
	if len(blob) > MaxCheckpoint || l.s.opts.ReadOnly {
		panic(fmt.Sprintf("store: checkpoint of %d bytes", len(blob)))
	}
	l.mu.Lock()
	if l.needFull && !full && !l.removed {
		l.mu.Unlock()
		panic(fmt.Sprintf("store: pane %d: checkpoint without a full one before", l.pane))
	}
	at := l.end
	if l.removed || !full && at == l.span {
		l.mu.Unlock()
		return at // the full one is right here, or nothing will ever be
	}
	if full {
		l.span = at
		l.needFull = false
	}
	c, filled := l.chunkLocked(0, l.span)
	c.cps = append(c.cps, pendingCheckpoint{at, full, l.clock, append([]byte(nil), blob...)})
	c.cost += len(blob) + frameCost
	l.pending.inflight += len(blob) + frameCost
	l.pending.total++
	l.mu.Unlock()
	l.s.committer.wake(l, filled)
	return at
}

// chunkLocked returns the chunk of span that takes n more bytes, and whether
// that meant to close a large one.
func (l *Log) chunkLocked(n int, span Pos) (c *chunk, filled bool) {
	if len(l.pending.chunks) > l.pending.taken {
		c = l.pending.chunks[len(l.pending.chunks)-1]
		if c.span == span && c.fits(n) {
			return c, false
		}
		filled = len(c.data) > smallChunk
	}
	c = l.s.pool.get(n, l.busy || filled || len(l.pending.chunks) > l.pending.taken)
	c.span, c.first, c.clock = span, l.end, l.clock
	l.pending.chunks = append(l.pending.chunks, c)
	return c, filled
}

// Room is how many bytes may be appended before the caller should wait; 0 or
// less means to stop reading the PTY until RoomC says so. A failed store has
// none.
func (l *Log) Room() int {
	if l.s.Err() != nil || l.s.opts.ReadOnly {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.opts.InFlight - l.pending.inflight
}

// Err is nil, or why the store failed, and the log with it (errors.Is
// ErrFailed).
func (l *Log) Err() error { return l.s.Err() }

// MaxRoom is what Room is while nothing is pending, in bytes.
func (l *Log) MaxRoom() int { return l.s.opts.InFlight }

// RoomC receives after a commit that may have made room.
func (l *Log) RoomC() <-chan struct{} { return l.room }

// Oldest is the offset at which the retained log begins, always that of a
// full checkpoint (0 for an empty log).
func (l *Log) Oldest() uint64 { return l.beginning().Offset }

// beginning is the position of the first retained span. Another one that was
// evicted may have been at the same offset.
func (l *Log) beginning() Pos {
	if p := l.oldest.Load(); p != nil {
		return *p
	}
	return Pos{}
}

// End is the position behind the last frame appended.
func (l *Log) End() Pos {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Waiting is the wall time of the oldest frame that is not durable yet (ns since the
// epoch), as it was appended; 0 if all are.
func (l *Log) Waiting() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.pending.chunks {
		if len(c.frames) > 0 {
			return c.frames[0].time.Wall
		}
	}
	return 0
}

// NeedsFull reports whether the next thing appended must be a full
// checkpoint: the log is new, or ends in a gap.
func (l *Log) NeedsFull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.needFull
}

// take hands the committer up to limit bytes of chunks, at least one if there
// is any. While large chunks are waiting, the open one is left to fill up. It
// reports whether any are left.
func (l *Log) take(dst []*chunk, limit int) (_ []*chunk, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.pending.chunks)
	if l.removed {
		return dst, false
	}
	if n-l.pending.taken > 1 && len(l.pending.chunks[n-1].data) < l.s.opts.SegmentBytes/2 && l.pending.chunks[n-1].cps == nil {
		n--
	}
	first := l.pending.taken
	for l.pending.taken < n && (limit > 0 || l.pending.taken == first) {
		c := l.pending.chunks[l.pending.taken]
		limit -= c.cost
		dst = append(dst, c)
		l.pending.taken++
	}
	more = l.pending.taken < len(l.pending.chunks)
	bytes := 0
	for _, c := range dst {
		bytes += len(c.data)
	}
	l.busy = bytes >= l.s.opts.SegmentBytes/4
	return dst, more
}

// committed says that the first n taken chunks are durable.
func (l *Log) committed(n int) {
	l.mu.Lock()
	freed := append([]*chunk(nil), l.pending.chunks[:n]...)
	for _, c := range freed {
		l.durable = c.end()
		l.pending.inflight -= c.cost
		l.pending.done += uint64(len(c.frames) + len(c.cps))
	}
	l.pending.chunks = append(l.pending.chunks[:0], l.pending.chunks[n:]...)
	clear(l.pending.chunks[len(l.pending.chunks) : len(l.pending.chunks)+n])
	l.pending.taken -= n
	waitC := l.waitC
	l.waitC = nil
	room := l.pending.inflight < l.s.opts.InFlight
	l.mu.Unlock()
	for _, c := range freed {
		l.s.pool.put(c)
	}
	if waitC != nil {
		close(waitC)
	}
	if room {
		select {
		case l.room <- struct{}{}:
		default:
		}
	}
}
