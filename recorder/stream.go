package recorder

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"looptape/replay"
	"looptape/store"
)

const (
	// MaxBacklog bounds what waits for one subscriber, in bytes; what it takes at
	// the moment comes on top, one batch at most.
	MaxBacklog = 1 << 20
	// itemBytes is what an item takes beside its data.
	itemBytes = 128
	// sharedBacklog bounds what waits for all subscribers of the process. While so
	// much does, one batch may wait for each.
	sharedBacklog = 128 << 20
	// maxRedraw bounds the snapshot that goes along with a resize, in bytes.
	maxRedraw = batchBytes
)

// The ends of a Stream.
var (
	// ErrBacklog says that a subscriber was too slow: what waited for it is thrown
	// away, and nothing more comes.
	ErrBacklog = errors.New("the subscriber is too slow")
)

// ItemKind is what an Item tells.
type ItemKind uint8

// The kinds of Item.
const (
	ItemOutput ItemKind = iota // Data are bytes of the stream, the first one at Offset
	ItemResize                 // to Cols and Rows, which began Epoch; Data is a snapshot of the screen then
	ItemExit                   // the program has exited; Closed: nothing more comes
)

// Item is something that happened in a pane, at an offset of its stream.
type Item struct {
	Kind       ItemKind
	Offset     uint64
	Data       []byte // shared: it must not be changed, nor used behind Release
	Cols, Rows int
	Epoch      uint32
	Closed     bool

	shared *shared
}

// Release says that Data is not needed any more.
func (i *Item) Release() { i.shared.release() }

// cost is what an item takes of a subscriber's backlog.
func (i *Item) cost() int { return len(i.Data) + itemBytes }

// shared is data that several subscribers hold.
type shared struct {
	size    int64
	holders atomic.Int32
}

// backlog is how many bytes of shared data there are.
var backlog atomic.Int64

// share makes data that its maker holds.
func share(size int) *shared {
	s := &shared{size: int64(size)}
	s.holders.Store(1)
	backlog.Add(s.size)
	return s
}

func (s *shared) release() {
	if s != nil && s.holders.Add(-1) == 0 {
		backlog.Add(-s.size)
	}
}

// Stream is what happens in a pane from one instant on, for one subscriber. Its
// methods are for one goroutine at a time, but Close.
type Stream struct {
	pane  *Pane
	ready chan struct{} // holds one: there is something to take

	mu    sync.Mutex
	items []Item // oldest first
	bytes int    // their costs
	end   error  // why no more come: behind the items, but ErrBacklog at once
}

// Subscribe calls read as View does, and returns the stream of what happens in the
// pane from that instant on. An item about a program that has exited comes first.
func (p *Pane) Subscribe(ctx context.Context, read func(t *replay.Terminal)) (*Stream, error) {
	s := &Stream{pane: p, ready: make(chan struct{}, 1)}
	err := p.do(ctx, func(l *loop) error {
		if err := p.guard(func() { read(l.term) }); err != nil {
			return err
		}
		if l.exited {
			s.push(Item{Kind: ItemExit, Offset: l.term.Offset(), Closed: l.closed}, MaxBacklog)
		}
		l.streams = append(l.liveStreams(), s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Ready receives when Next may have something new.
func (s *Stream) Ready() <-chan struct{} { return s.ready }

// Next takes the oldest item, which the caller releases. ok is false while there is
// none. The error is ErrBacklog, or ErrStopped when the pane is no longer recorded
// and everything was taken.
func (s *Stream) Next() (i Item, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.items) == 0 {
		return Item{}, false, s.end
	}
	i = s.items[0]
	s.items[0] = Item{}
	s.items = s.items[1:]
	s.bytes -= i.cost()
	return i, true, nil
}

// Close ends the subscription.
func (s *Stream) Close() { s.stop(ErrStopped, true) }

// stop says why no more items come; drop throws away those that wait.
func (s *Stream) stop(why error, drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked(why, drop)
}

func (s *Stream) stopLocked(why error, drop bool) {
	if s.end == nil {
		s.end = why
	}
	if drop {
		for _, i := range s.items {
			i.Release()
		}
		s.items, s.bytes = nil, 0
	}
	s.signal()
}

func (s *Stream) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// push adds an item to what waits, which is one item or takes at most limit bytes.
// false means that the stream has ended, now if not before.
func (s *Stream) push(i Item, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil && len(s.items) > 0 && s.bytes+i.cost() > limit {
		s.stopLocked(ErrBacklog, true)
	}
	if s.end != nil {
		return false
	}
	if i.shared != nil {
		i.shared.holders.Add(1)
	}
	s.items = append(s.items, i)
	s.bytes += i.cost()
	s.signal()
	return true
}

// ended says whether nothing can be pushed any more.
func (s *Stream) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end != nil
}

// liveStreams are the streams that have not ended.
func (l *loop) liveStreams() []*Stream {
	live := l.streams[:0]
	for _, s := range l.streams {
		if !s.ended() {
			live = append(live, s)
		}
	}
	clear(l.streams[len(live):])
	return live
}

// publish hands an item to all subscribers, with one copy of data for all of them.
// A subscriber for whom too much waits already loses all of that.
func (l *loop) publish(i Item, data []byte) {
	limit := MaxBacklog
	if backlog.Load() > sharedBacklog {
		limit = 0
	}
	if len(data) > 0 {
		i.Data, i.shared = bytes.Clone(data), share(len(data))
		defer i.shared.release()
	}
	live := l.streams[:0]
	for _, s := range l.streams {
		if s.push(i, limit) {
			live = append(live, s)
		}
	}
	clear(l.streams[len(live):])
	l.streams = live
}

// tell tells the subscribers what a frame has done to the Terminal.
func (l *loop) tell(f store.Frame) {
	at := l.term.Offset()
	switch f.Kind {
	case store.Output:
		l.publish(Item{Kind: ItemOutput, Offset: at - uint64(len(f.Data))}, f.Data)
	case replay.MarkResize:
		screen, ok := l.term.AppendSnapshotWithin(nil, 0, maxRedraw)
		if !ok { // they ask for it, when there is memory
			l.endStreams(ErrBacklog, true)
			return
		}
		b := l.term.Bounds()
		l.publish(Item{Kind: ItemResize, Offset: at, Cols: b.Cols, Rows: b.Rows, Epoch: b.Epoch}, screen)
	}
}

// tellExit tells the subscribers that the program has exited, or that nobody holds
// its terminal any more.
func (l *loop) tellExit() {
	if len(l.streams) > 0 {
		l.publish(Item{Kind: ItemExit, Offset: l.term.Offset(), Closed: l.closed}, nil)
	}
}

// endStreams ends all streams.
func (l *loop) endStreams(why error, drop bool) {
	for _, s := range l.streams {
		s.stop(why, drop)
	}
	l.streams = nil
}
