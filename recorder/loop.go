package recorder

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"looptape/replay"
	"looptape/store"
)

const (
	// drainBytes bounds what is read at one go before a mark: of an exit, a
	// resize or a stop. A program that floods the terminal must not put it off.
	drainBytes = 4 << 20
	// resizePause is the least time between two resizes.
	resizePause = 100 * time.Millisecond
	// hungUpPause is how often a PTY is tried whose slave nobody has open while
	// the program runs: it may open it again.
	hungUpPause = 50 * time.Millisecond
)

var batches = sync.Pool{New: func() any { b := make([]byte, batchBytes); return &b }}

// always is ready at once, for a select that must not wait for the waiter.
var always = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// loop is the state of a pane that only its own goroutine touches.
type loop struct {
	pane *Pane
	pty  *master
	term *replay.Terminal
	born time.Time
	mono int64 // ns of the log's monotonic clock when the loop was born

	arm      chan struct{} // holds one: the waiter is to wait
	readable chan struct{} // the waiter says so
	hot      bool          // there is more to read, without waiting
	batch    int           // the size of the next batch, leastBatch to batchBytes
	retry    <-chan time.Time

	reaped  <-chan struct{} // nil once the Exit mark is written or due
	exitDue bool            // the child is reaped; its Exit mark follows what can be read
	exited  bool            // the Exit mark is in the log
	closed  bool            // the Closed mark is in the log, and the PTY is closed
	over    bool            // run is to end
	gap     gap

	schedule schedule // of the checkpoints

	watch watch

	waiters map[chan struct{}]store.Pos // closed once the stream or the log is behind it
	streams []*Stream                   // of the subscribers

	resize      [2]int // cols and rows that are due
	resizeDue   <-chan time.Time
	resized     time.Time
	resizeWants []chan Size
}

func newLoop(p *Pane, pty *master, term *replay.Terminal, observe func(Observation)) *loop {
	l := &loop{
		pane: p, pty: pty, term: term, born: time.Now(),
		arm: make(chan struct{}, 1), readable: make(chan struct{}), hot: true, batch: batchBytes / 4,
		reaped:   p.child.reaped,
		schedule: schedule{distance: distances},
		watch:    watch{tell: observe},
		waiters:  make(map[chan struct{}]store.Pos),
	}
	if observe != nil {
		term.SetEventSink(l.watch.event)
	}
	return l
}

// run is the pane's loop. It ends by stop or by a panic; Stopped says so.
func (l *loop) run() {
	go l.waitReadable()
	defer l.end()
	for !l.over {
		l.step()
	}
}

// end closes what the loop owns. After a panic the program is hung up, since
// nobody reads its terminal any more; the log holds what came before.
func (l *loop) end() {
	if r := recover(); r != nil {
		l.pane.logger.Error("panic in a pane's loop", "panic", r, "stack", string(debug.Stack()))
		l.pane.mu.Lock()
		l.pane.fault = fmt.Errorf("panic at offset %d: %v", l.term.Offset(), r)
		l.pane.mu.Unlock()
	}
	if !l.closed {
		l.hangUp()
	}
	close(l.pane.stopped)
	l.endStreams(ErrStopped, false)
}

// hangUp closes the PTY, and with it the waiter and the writer.
func (l *loop) hangUp() {
	close(l.arm)
	l.pane.input.close()
	l.pty.Close()
}

// waitReadable is the waiter. It ends when the PTY is closed; nobody waits for it.
func (l *loop) waitReadable() {
	for range l.arm {
		if l.pty.waitReadable() != nil {
			return
		}
		select {
		case l.readable <- struct{}{}:
		case <-l.pane.stopped:
			return
		}
	}
}

// step handles one thing that happened.
func (l *loop) step() {
	readable := l.readable
	switch mayRead := l.watchLog(); {
	case l.closed || !mayRead: // the program waits until the log has room
		readable = nil
	case l.hot:
		readable = always
	}
	select {
	case <-readable:
		limit := l.batch
		if l.exitDue { // the log had no room when the child was reaped
			limit = drainBytes
		}
		l.drain(limit)
	case <-l.pane.log.RoomC():
	case <-l.gap.stalled:
		l.openGap()
	case request := <-l.pane.requests:
		request(l)
	case <-l.reaped:
		l.reaped, l.exitDue = nil, true
		l.drain(drainBytes)
	case <-l.retry:
		l.retry, l.hot = nil, true
	case <-l.resizeDue:
		l.applyResize()
	case <-l.watch.due:
		l.watch.release(l.now().Mono)
	}
	if len(l.waiters) > 0 {
		l.wakeWaiters()
	}
}

// drain records what can be read without waiting, at most limit bytes, and then
// the exit of the child if it is due. While the log has no room it reads
// nothing; step comes back to it.
func (l *loop) drain(limit int) {
	if l.closed {
		return
	}
	buf := batches.Get().(*[]byte)
	defer batches.Put(buf)
	var err error
	for n := 0; err == nil && limit > 0; n = 0 {
		if !l.watchLog() {
			l.hot = true
			return
		}
		for n < l.batch && err == nil {
			var k int
			k, err = l.pty.tryRead((*buf)[n:l.batch])
			if k == 0 && err == nil {
				err = unix.EIO // some systems report the end of a PTY as end of file
			}
			n += k
		}
		if n > 0 {
			l.record((*buf)[:n])
		}
		limit -= n
	}
	l.hot = err == nil
	exits := l.exitDue
	if exits {
		l.recordExit()
	}
	switch {
	case l.hot:
	case err == unix.EAGAIN:
		l.rearm()
	case l.exited:
		l.close()
	default:
		l.retry = time.After(hungUpPause)
	}
	if exits && !l.closed {
		l.tellExit()
	}
}

func (l *loop) rearm() {
	select {
	case l.arm <- struct{}{}:
	default: // armed already
	}
}

// record records a batch in frames: small ones as soon as one was slow.
func (l *loop) record(batch []byte) {
	for len(batch) > 0 {
		n := frameBytes(batch[:min(len(batch), l.batch)], l.term)
		l.recordFrame(batch[:n])
		batch = batch[n:]
	}
}

// recordFrame appends output to the log, feeds it to the Terminal, and passes on what
// comes of it.
func (l *loop) recordFrame(data []byte) {
	began := time.Now()
	l.append(store.Output, data)
	l.batch = nextBatch(l.batch, len(data), time.Since(began))
	if replies := l.term.TakeReplies(); len(replies) > 0 {
		l.pane.input.reply(replies)
	}
	if l.gap.open {
		l.reserve()
	} else {
		l.maybeCheckpoint()
	}
}

// now is the time of a frame.
func (l *loop) now() store.Time {
	now := time.Now()
	return store.Time{Wall: now.UnixNano(), Mono: l.mono + int64(now.Sub(l.born))}
}

// append adds one frame to the log and to the Terminal, in this order. In a gap
// it reaches the Terminal only.
func (l *loop) append(kind store.Kind, data []byte) {
	f := store.Frame{Kind: kind, Time: l.now(), Data: data}
	l.watch.at = f.Time
	if l.gap.open {
		f.Offset = l.term.Offset()
		l.gap.owe(f)
	} else {
		l.pane.log.Append(f.Kind, f.Time, f.Data)
	}
	if err := replay.Apply(l.term, f); err != nil {
		panic(err) // a frame that was just made is well formed
	}
	if len(l.streams) > 0 {
		l.tell(f)
	}
}

func (l *loop) wakeWaiters() {
	frames := l.pane.log.End().Seq
	for waiter, at := range l.waiters {
		if l.closed || l.term.Offset() > at.Offset || frames > at.Seq {
			close(waiter)
			delete(l.waiters, waiter)
		}
	}
}

func (l *loop) recordExit() {
	l.append(replay.MarkExit, replay.AppendExit(nil, l.pane.child.exit))
	l.exitDue, l.exited = false, true
	l.pane.ended = time.Now()
	l.observe(Observation{Kind: Exited, Exit: l.pane.child.exit})
	close(l.pane.exited)
}

// close ends the pane: the last process has let go of its terminal. Unless a
// mark is still owed to the log, the loop ends with it, and the Terminal goes:
// the checkpoint makes it again for whoever wants to read.
func (l *loop) close() {
	l.append(replay.MarkClosed, nil)
	l.closed, l.hot = true, false
	l.hangUp()
	l.observe(Observation{Kind: Closed})
	l.tellExit()
	if !l.gap.open {
		l.checkpoint()
		l.over = true
	}
}

// requestResize makes a resize due: at once, or when resizePause has passed
// since the last one. A later request replaces one that is due.
func (l *loop) requestResize(cols, rows int, result chan Size) {
	l.resize = [2]int{cols, rows}
	l.resizeWants = append(l.resizeWants, result)
	if wait := resizePause - time.Since(l.resized); wait > 0 {
		if l.resizeDue == nil {
			l.resizeDue = time.After(wait)
		}
		return
	}
	l.applyResize()
}

// applyResize records what the program wrote for the old size, then the mark,
// and tells the program last.
func (l *loop) applyResize() {
	l.drain(drainBytes)
	cols, rows := l.resize[0], l.resize[1]
	if b := l.term.Bounds(); !l.closed && (b.Cols != cols || b.Rows != rows) {
		l.append(replay.MarkResize, replay.AppendResize(nil, cols, rows))
		if err := l.pty.setSize(cols, rows); err != nil {
			l.pane.logger.Error("resize of a PTY", "err", err)
		}
		l.resized = time.Now()
		l.observe(Observation{Kind: Resized, Cols: cols, Rows: rows, Epoch: l.term.Bounds().Epoch})
		if !l.gap.open {
			l.maybeCheckpoint() // cutting a history anew takes as long as some output
		}
	}
	b := l.term.Bounds()
	for _, want := range l.resizeWants {
		want <- Size{Offset: l.term.Offset(), Epoch: b.Epoch, Cols: b.Cols, Rows: b.Rows}
	}
	l.resizeWants, l.resizeDue = nil, nil
}

// stop ends the recording, see Pane.Stop.
func (l *loop) stop() {
	l.drain(drainBytes)
	if l.gap.open && l.pane.log.Err() == nil {
		l.closeGap() // in memory at least: the store may still get it to disk
	}
	l.checkpoint()
	l.watch.release(l.now().Mono)
	l.append(replay.MarkRestart, replay.AppendRestart(nil, 0))
	l.over = true
}
