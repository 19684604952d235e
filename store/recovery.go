package store

import (
	"cmp"
	"encoding/binary"
	"log/slog"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

func (s *Store) newLog(pane uint64) *Log {
	return &Log{s: s, pane: pane, room: make(chan struct{}, 1), clock: math.MinInt64}
}

// recover finds the ends of the log from its keys and its last records: the
// oldest span is that of the first key, the end that of the last record of
// frames, unless it is known that the log went on behind it.
func (l *Log) recover(it *pebble.Iterator) error {
	err := l.recoverEnds(it)
	if err == nil {
		noted, _ := l.s.keeper.reached(l.pane)
		l.reachedTo(noted.end)
	}
	return err
}

// reachedTo says that the log went on at least to a position. It reports whether
// that is behind its end: then what is between is lost, and a full checkpoint must
// come first.
func (l *Log) reachedTo(at Pos) bool {
	if !l.end.Before(at) {
		return false
	}
	l.s.report(slog.LevelError, "store: the end of a log is lost", "pane", l.pane, "from", l.end.Offset, "to", at.Offset)
	l.end, l.durable, l.needFull, l.tail = at, at, true, tail{}
	return true
}

func (l *Log) recoverEnds(it *pebble.Iterator) error {
	if !it.First() {
		l.needFull = true
		if it.Error() == nil {
			return nil // new
		}
	}
	damage := it.Error() // costs what cannot be read, and what is behind it begins the log
	k, ok := l.first(it)
	if !ok {
		return &DamagedError{l.pane, k.at.Offset, cmp.Or(damage, errRecord)}
	}
	if k.class != classFull {
		l.s.report(slog.LevelError, "store: a log lacks the checkpoint that it begins with", "pane", l.pane, "offset", k.span.Offset)
	}
	l.needFull = false
	first := k.span
	if noted, ok := l.s.keeper.reached(l.pane); ok && damage != nil && noted.oldest.Before(first) {
		first = noted.oldest
	}
	l.oldest.Store(&first)
	if !it.Last() {
		return l.recoverUnreadable(it, k)
	}
	var err error
	if k, err = decodeDataKey(it.Key()); err != nil {
		return &DamagedError{l.pane, l.Oldest(), err}
	}
	l.span = k.span
	if k.class != classData {
		return l.recoverEmpty(it, k)
	}
	return l.recoverTail(it, k)
}

// broken makes a DamagedError of err, if there is one.
func (l *Log) broken(offset uint64, err error) error {
	if err == nil {
		return nil
	}
	return &DamagedError{l.pane, offset, err}
}

// recoverEmpty recovers a log whose last span has no frames.
func (l *Log) recoverEmpty(it *pebble.Iterator, k dataKey) error {
	l.end, l.durable = k.span, k.span
	l.reachedTo(k.at)
	v, err := it.ValueAndErr()
	if err != nil {
		return l.broken(k.at.Offset, err)
	}
	h, err := decodeHeader(v)
	if l.needFull = err != nil; err == nil {
		l.clock = h.clock
	}
	return nil
}

// recoverTail recovers a log whose last record of frames is k.
func (l *Log) recoverTail(it *pebble.Iterator, k dataKey) error {
	v, err := it.ValueAndErr()
	if err != nil {
		return l.broken(k.at.Offset, err)
	}
	var last segment
	if err := last.decode(append([]byte(nil), v...)); err != nil || last.first != k.at {
		l.recoverDamaged(v, k)
		return nil
	}
	l.end, l.durable = last.end(), last.end()
	l.clock = last.clock
	for i := range last.frames {
		l.clock = max(l.clock, last.frames[i].time.Wall)
	}
	l.needFull = last.frames[len(last.frames)-1].kind == Gap
	// A checkpoint says how far the frames in front of it went.
	if it.SeekLT(dataKey{l.pane, k.span, classData, Pos{}}.encode()) {
		cp, err := decodeDataKey(it.Key())
		if err == nil && cp.span == k.span && l.reachedTo(cp.at) {
			return nil
		}
	}
	return l.recoverTails(it, k)
}

// recoverTails finds the tails in front of and including the last record k.
func (l *Log) recoverTails(it *pebble.Iterator, k dataKey) error {
	next := l.end
	for ok := it.SeekGE(k.encode()); ok && l.tail.count <= maxTails; ok = it.Prev() {
		t, err := decodeDataKey(it.Key())
		if err != nil || t.class != classData || t.span != k.span {
			break
		}
		v, err := it.ValueAndErr()
		if err != nil {
			break
		}
		h, err := decodeHeader(v)
		if err != nil || h.typ != recTail || h.end() != next {
			break
		}
		next = h.first
		l.tail.span, l.tail.first = k.span, h.first
		l.tail.raw += int(h.raw)
		l.tail.frames += int(h.frames)
		l.tail.count++
	}
	return nil
}

// recoverDamaged recovers a log whose last record v is damaged: what is before
// it stays readable, and what is appended comes behind all it may have held. A
// full checkpoint must come first.
func (l *Log) recoverDamaged(v []byte, k dataKey) {
	l.needFull = true
	h, err := decodeHeader(v)
	if err == nil && h.first == k.at {
		l.end, l.clock = h.end(), h.clock
	} else {
		l.end = Pos{k.at.Offset + l.s.LossBound() + MaxFrame, k.at.Seq + l.s.LossBound()}
	}
	l.durable = l.end
	l.s.report(slog.LevelError, "store: last record damaged", "pane", l.pane, "offset", k.at.Offset)
}

// recoverUnreadable recovers a log of which the last block cannot be read.
// Seeking to before a key fails if that means to look into such a block, so
// the last key that can be read is found by bisection: first over the spans,
// then inside the one where it ends. first is the first key.
func (l *Log) recoverUnreadable(it *pebble.Iterator, first dataKey) error {
	last := first
	take := func() {
		if k, err := decodeDataKey(it.Key()); err == nil && !k.at.Before(last.at) {
			last = k
		}
	}
	good := func(key []byte) bool {
		if it.SeekLT(key) {
			take()
		}
		return it.Error() == nil
	}
	x := lastGood(first.span.Offset, func(x uint64) bool { return good(spanKey(l.pane, Pos{Offset: x})) })
	if it.SeekGE(spanKey(l.pane, Pos{Offset: x})) {
		take()
	}
	span := last.span
	lastGood(span.Offset, func(x uint64) bool {
		return good(dataKey{l.pane, span, classData, Pos{Offset: x}}.encode())
	})
	l.span = last.span
	l.recoverDamaged(nil, last)
	return nil
}

// lastGood is the largest x from lo on for which good holds, if it holds up to
// some x and not beyond.
func lastGood(lo uint64, good func(uint64) bool) uint64 {
	hi := uint64(math.MaxUint64)
	if good(hi) {
		return hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; good(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// paneOf is the pane in a key of log content.
func paneOf(key []byte) (uint64, bool) {
	if len(key) < paneKeySize {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// remove drops what is in memory and lets readers know. It returns how many frames and
// checkpoints will be durable once the committer has nothing of the log any more.
func (l *Log) remove() (last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = true
	l.pending.chunks = l.pending.chunks[:l.pending.taken]
	l.oldest.Store(&Pos{math.MaxUint64, math.MaxUint64})
	last = l.pending.done
	for _, c := range l.pending.chunks {
		last += uint64(len(c.frames) + len(c.cps))
	}
	return last
}
