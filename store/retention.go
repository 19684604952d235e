package store

import (
	"context"
	"errors"
	"sort"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	defaultRetain  = 256 << 20
	minRetain      = 4 << 20
	defaultDiskCap = 4 << 30
	evictPace      = time.Second
	// evictBytes is the least that is worth an excise, compressed.
	evictBytes = 4 << 20
	// garbageBytes is how much of evicted spans may stay in tables that other
	// spans live in, before these are rewritten.
	garbageBytes = 32 << 20
)

// retainer takes away the oldest spans: of each log what is beyond its
// retain or older than it is kept for, and while the store is larger than its cap,
// more. It runs one pass a second for the whole store.
//
// The order is: a span goes only if a durable full checkpoint begins the next
// one, and is synced if that was put off; Oldest moves on first, then the keys
// go. A crash in between leaves more than was asked for, never less.
type retainer struct {
	s    *Store
	aged time.Time     // when it looked for what is too old; run's alone
	stop chan struct{} // closed by Close
	done chan struct{} // closed when run has returned
}

// run is the retainer's goroutine. It ends when stop is closed and the last pass is
// over, or when the store fails; Close waits for done.
func (r *retainer) run() {
	defer close(r.done)
	t := time.NewTicker(r.s.opts.EvictPace)
	defer t.Stop()
	idle := make(chan struct{}, 1) // holds one while there is no pass
	idle <- struct{}{}
	for {
		select {
		case <-t.C:
		case <-r.stop:
			select {
			case <-idle:
			case <-r.s.failed:
			}
			return
		case <-r.s.failed:
			return
		}
		// A pass may wait for a full disk, and that for the ballast to be back.
		r.s.fs.restore()
		select {
		case <-idle:
			go r.pass(idle)
		default:
		}
	}
}

// pass takes away what is to go. It ends with the disk's answer, or when the store fails;
// run waits for it.
func (r *retainer) pass(idle chan<- struct{}) {
	err := errors.Join(r.s.evict(), r.agePass(time.Now()))
	if err != nil && !errors.Is(err, ErrClosed) && r.s.damage.first(firstLine(err)) {
		r.s.opts.Logger.Warn("store: eviction", "err", firstLine(err))
	}
	idle <- struct{}{}
}

// SetRetain sets how many bytes of the stream the log keeps at least, if there
// are so many; at least 4 MiB. 0 is Options.Retain.
func (l *Log) SetRetain(bytes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retain = bytes
}

// evict makes one pass.
func (s *Store) evict() error {
	var errs []error // a log that is damaged keeps nothing of another from going
	for _, l := range s.openLogs() {
		errs = append(errs, s.evictLog(l))
	}
	errs = append(errs, s.evictToCap(), s.rewrite())
	return errors.Join(errs...)
}

// openLogs are the logs in use, in no order that matters.
func (s *Store) openLogs() []*Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs := make([]*Log, 0, len(s.logs))
	for _, l := range s.logs {
		if l != nil {
			logs = append(logs, l)
		}
	}
	return logs
}

// evictLog takes what l has beyond its retain, if that is worth it.
func (s *Store) evictLog(l *Log) error {
	l.mu.Lock()
	retain, end := l.retain, l.durable
	l.mu.Unlock()
	if retain == 0 {
		retain = s.opts.Retain
	}
	retain = max(retain, s.opts.minRetain)
	oldest := l.Oldest()
	if end.Offset < retain || end.Offset-retain <= oldest {
		return nil
	}
	spans, err := s.spans(l, end)
	if err != nil {
		return err
	}
	// The last span that begins far enough back is the first to stay.
	n := sort.Search(len(spans), func(i int) bool { return spans[i].Offset > end.Offset-retain })
	if n < 2 {
		return nil
	}
	size, err := s.sizeOf(l, spans[0], spans[n-1])
	if err != nil {
		return err
	}
	if size < evictBytes && spans[n-1].Offset-oldest < retain/4 {
		return nil
	}
	return s.evictBefore(l, spans[n-1])
}

// spans are the spans of l whose full checkpoints are durable and can be read,
// oldest first; end is the durable position.
func (s *Store) spans(l *Log, end Pos) (spans []Pos, err error) {
	err = s.view(l.pane, func(it *pebble.Iterator) error {
		for k, ok := l.first(it); ok; {
			if !k.span.Before(end) {
				break // visible, but perhaps not synced
			}
			if k.class == classFull {
				spans = append(spans, k.span)
			}
			k, ok = l.readableFrom(it, spanKey(l.pane, Pos{k.span.Offset, k.span.Seq + 1}))
		}
		return nil
	})
	return spans, err
}

// sizeOf is about what the spans in [from, to) take on disk; of those that
// cannot be read, enough to be taken away.
func (s *Store) sizeOf(l *Log, from, to Pos) (uint64, error) {
	if !s.gate.enter() {
		return 0, ErrClosed
	}
	defer s.gate.leave()
	n, err := s.db.EstimateDiskUsage(spanKey(l.pane, from), spanKey(l.pane, to))
	if pebble.IsCorruptionError(err) {
		return evictBytes, nil
	}
	return n, err
}

// evictBefore takes away all spans of l before that at to.
func (s *Store) evictBefore(l *Log, to Pos) error {
	from := l.Oldest()
	l.oldest.Store(&to)
	signal(s.keeper.due)
	s.stats.evictions.Add(1)
	if told := s.onEvict.Load(); told != nil && from < to.Offset {
		(*told)(l.pane, from, to.Offset)
	}
	lo, _ := paneBounds(l.pane)
	hi := spanKey(l.pane, to)
	defer s.Relieve()() // it makes space
	return s.guard(func() error {
		if s.deferral != nil {
			if err := s.deferral.sync(); err != nil {
				return err
			}
		}
		return s.excise(lo, hi)
	})
}

// OnEvict has told called from now on whenever the oldest bytes of a log go:
// those from offset from to offset to, which is its Oldest then. The goroutine
// that evicts calls it and waits for it.
func (s *Store) OnEvict(told func(pane, from, to uint64)) { s.onEvict.Store(&told) }

// evictToCap takes the oldest spans while the store is larger than its cap:
// first of logs that nobody appended to since the store was opened, those
// whose last output is oldest first, then of the others, each time the oldest
// span of the log that has most. The last span of a log stays.
func (s *Store) evictToCap() error {
	used := s.DiskBytes() + s.fs.ballastBytes()
	if used <= s.opts.DiskCap {
		return nil
	}
	excess := used - s.opts.DiskCap
	panes, err := s.Panes()
	if err != nil {
		return err
	}
	var archives, live []*Log
	for _, pane := range panes {
		l, err := s.Log(pane)
		if err != nil {
			continue // damaged, or being removed
		}
		if l.appended() {
			live = append(live, l)
		} else {
			archives = append(archives, l)
		}
	}
	var errs []error
	sort.Slice(archives, func(i, j int) bool { return archives[i].Newest() < archives[j].Newest() })
	for _, l := range archives {
		for excess > 0 {
			freed, err := s.evictOldest(l)
			errs = append(errs, err)
			if freed == 0 {
				break
			}
			excess -= min(excess, freed)
		}
	}
	for excess > 0 && len(live) > 0 {
		sort.Slice(live, func(i, j int) bool { return live[i].length() > live[j].length() })
		freed, err := s.evictOldest(live[0])
		errs = append(errs, err)
		if freed == 0 {
			live = live[1:]
		}
		excess -= min(excess, freed)
	}
	return errors.Join(errs...)
}

// evictOldest takes the oldest span of l and returns about how many bytes it
// had; 0 if it is the last one.
func (s *Store) evictOldest(l *Log) (uint64, error) {
	l.mu.Lock()
	end := l.durable
	l.mu.Unlock()
	spans, err := s.spans(l, end)
	if err != nil || len(spans) < 2 {
		return 0, err
	}
	size, err := s.sizeOf(l, spans[0], spans[1])
	if err != nil {
		return 0, err
	}
	if err := s.evictBefore(l, spans[1]); err != nil {
		return 0, err
	}
	return max(size, 1), nil
}

// appended reports whether anything was appended since the log was opened.
func (l *Log) appended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending.total > 0
}

// Newest is the largest wall time of a frame of the log, ns since the epoch;
// math.MinInt64 if it has none, or none that is known.
func (l *Log) Newest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock
}

// length is how much of the stream the log retains.
func (l *Log) length() uint64 { return l.End().Offset - min(l.Oldest(), l.End().Offset) }

// rewrite has Pebble rewrite tables of which most was excised. An excise
// leaves the file of a table as long as anything in it lives, so a busy pane's
// evicted spans would stay because of the few records of a quiet pane among
// them. On a full disk there is no space for that.
func (s *Store) rewrite() error {
	if s.fs.away() {
		return nil
	}
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	m := s.db.Metrics()
	onDisk, live := m.Table.Local.LiveSize, uint64(m.Total().TablesSize)
	if onDisk < live+max(s.opts.garbage, live/4) {
		return nil
	}
	levels, err := s.db.SSTables()
	if err != nil {
		return err
	}
	// Per file: what lives in it.
	living := make(map[uint64]uint64)
	for _, level := range levels {
		for _, t := range level {
			if t.Virtual {
				living[uint64(t.BackingSSTNum)] += t.Size
			}
		}
	}
	for _, level := range levels {
		for _, t := range level {
			if !t.Virtual || living[uint64(t.BackingSSTNum)] > uint64(s.opts.MemTable)/4 {
				continue
			}
			lo, hi := t.Smallest.UserKey, append(append([]byte(nil), t.Largest.UserKey...), 0)
			err := s.guard(func() error { return s.db.Compact(context.Background(), lo, hi, false) })
			if isFull(err) && s.Err() == nil {
				return nil // another pass does it
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
