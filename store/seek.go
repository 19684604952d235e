package store

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sort"

	"github.com/cockroachdb/pebble/v2"
)

// seekOffset is the position from which to read on to find the first frame
// that contains off or begins at or behind it. It lies at most one record
// before that frame.
func (l *Log) seekOffset(off uint64) (Pos, error) {
	if p, ok := l.seekPending(off); ok {
		return p, nil
	}
	// Before the iterator: what becomes durable meanwhile is in neither otherwise.
	memory := l.memoryStart()
	var at Pos
	err := l.s.view(l.pane, func(it *pebble.Iterator) (err error) {
		at, err = l.seekStored(it, off, memory)
		return err
	})
	if off < l.Oldest() {
		err = ErrEvicted // while we looked: what was found may lie behind
	}
	return at, err
}

// seekPending answers for what is in memory only: the frame sought must lie
// behind the first one there, because marks at that one's offset may be on
// disk.
func (l *Log) seekPending(off uint64) (Pos, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off > l.end.Offset || l.end.Seq == 0 {
		return l.end, true
	}
	for i := len(l.pending.chunks) - 1; i >= 0; i-- {
		c := l.pending.chunks[i]
		if off <= c.first.Offset || len(c.frames) == 0 {
			continue
		}
		j := sort.Search(len(c.frames), func(j int) bool {
			m, data := c.frame(j)
			return m.offset >= off || m.offset+m.advance(uint32(len(data))) > off
		})
		if j == len(c.frames) {
			return c.end(), true
		}
		return Pos{Offset: c.frames[j].offset, Seq: c.first.Seq + uint64(j)}, true
	}
	return Pos{}, false
}

// seekStored answers for what is on disk: the last record that begins before
// off, or the first one there is; memory if there is none.
func (l *Log) seekStored(it *pebble.Iterator, off uint64, memory Pos) (Pos, error) {
	if off > 0 {
		span, err := l.spanAt(it, Pos{Offset: off - 1, Seq: math.MaxUint64 - 1})
		if err == nil && it.SeekLT(dataKey{l.pane, span, classData, Pos{Offset: off}}.encode()) {
			k, err := decodeDataKey(it.Key())
			if err == nil && k.span == span && k.class == classData {
				return k.at, nil
			}
		}
		if err == nil {
			return span, l.broken(off, it.Error()) // its first frame begins there
		}
		if !errors.Is(err, ErrNoCheckpoint) {
			return Pos{}, err
		}
	}
	// Nothing begins before off: the oldest span begins at it.
	k, ok := l.first(it)
	if !ok {
		return memory, l.broken(off, it.Error())
	}
	if begins := l.beginning(); begins.Before(k.span) {
		return begins, nil // what is between is damaged
	}
	return k.span, nil
}

// spanAt is the position of the last span that begins at or before at, or
// ErrNoCheckpoint.
func (l *Log) spanAt(it *pebble.Iterator, at Pos) (Pos, error) {
	if it.SeekLT(spanKey(l.pane, Pos{at.Offset, at.Seq + 1})) {
		k, err := decodeDataKey(it.Key())
		return k.span, l.broken(at.Offset, err)
	}
	if it.Error() == nil {
		return Pos{}, ErrNoCheckpoint
	}
	k, ok := l.floor(it, Pos{}, at, func(p Pos) []byte { return spanKey(l.pane, p) })
	if !ok || k.at != k.span {
		return Pos{}, l.broken(at.Offset, errBlock)
	}
	return k.span, nil
}

// floor finds the last key at or before at among those that key makes, from
// lo on, by seeking forward only. Seeking backward is one seek instead of up
// to 64, but it looks at the key before as well, and at the last record of a
// span to find the span, and fails if that cannot be read.
func (l *Log) floor(it *pebble.Iterator, lo, at Pos, key func(Pos) []byte) (last dataKey, found bool) {
	try := func(p Pos) bool {
		if !it.SeekGE(key(p)) {
			return false
		}
		k, err := decodeDataKey(it.Key())
		if err != nil || at.Before(k.at) {
			return false
		}
		last, found = k, true
		return true
	}
	if !try(Pos{Offset: at.Offset}) && try(lo) {
		lastGood(lo.Offset, func(x uint64) bool { return x <= at.Offset && try(Pos{Offset: x}) })
	}
	for found && try(Pos{last.at.Offset, last.at.Seq + 1}) {
		// Several may stand at one offset.
	}
	return last, found
}

// nextRecord is the key of the first record of frames that begins behind
// (offset, seq) and whose block can be read. Blocks of Pebble that cannot be
// read hide how far they go; but a seek to any key inside one fails and to any
// key behind one does not, so the end of the damage is found by bisection.
func (l *Log) nextRecord(it *pebble.Iterator, offset, seq uint64) (dataKey, bool) {
	span, err := l.spanAt(it, Pos{offset, seq})
	if err == nil {
		if k, ok := l.bisect(it, func(delta uint64) []byte {
			at := Pos{Offset: offset, Seq: seq + 1}
			if delta > 0 {
				at = Pos{Offset: satAdd(offset, delta)}
			}
			return dataKey{l.pane, span, classData, at}.encode()
		}); ok {
			return k, true
		}
	}
	return l.bisect(it, func(delta uint64) []byte {
		return spanKey(l.pane, Pos{Offset: satAdd(offset, delta), Seq: seq + 1})
	})
}

// bisect finds the least delta for which seeking to key(delta) can be read,
// and from there the first record of frames.
func (l *Log) bisect(it *pebble.Iterator, key func(delta uint64) []byte) (dataKey, bool) {
	bad := func(delta uint64) bool {
		it.SeekGE(key(delta))
		return it.Error() != nil
	}
	lo, hi := uint64(0), uint64(0) // lo is bad, hi is not
	if bad(0) {
		for hi = 1; bad(hi); hi *= 2 {
			lo = hi
			if hi >= 1<<63 {
				return dataKey{}, false
			}
		}
		for hi-lo > 1 {
			if mid := lo + (hi-lo)/2; bad(mid) {
				lo = mid
			} else {
				hi = mid
			}
		}
	}
	for ok := it.SeekGE(key(hi)); ok; ok = it.Next() {
		k, err := decodeDataKey(it.Key())
		if err == nil && k.class == classData {
			return k, true
		}
	}
	return dataKey{}, false
}

// first puts the iterator on the first key of the log that can be read.
func (l *Log) first(it *pebble.Iterator) (dataKey, bool) {
	lo, _ := paneBounds(l.pane)
	return l.readableFrom(it, lo)
}

// readableFrom puts the iterator on the first key at or behind from that can
// be read. A seek to any key inside damage fails and to any key behind it does
// not, so where it ends is found field by field.
func (l *Log) readableFrom(it *pebble.Iterator, from []byte) (dataKey, bool) {
	k := dataKey{pane: l.pane}
	if !it.SeekGE(from) && it.Error() != nil {
		bad := func() bool {
			key := k.encode()
			return bytes.Compare(key, from) < 0 || !it.SeekGE(key) && it.Error() != nil
		}
		for _, field := range []*uint64{&k.span.Offset, &k.span.Seq} {
			*field = lastGood(0, func(x uint64) bool { *field = x; return bad() })
		}
		k.class = byte(lastGood(0, func(x uint64) bool { k.class = byte(x); return x <= classData && bad() }))
		for _, field := range []*uint64{&k.at.Offset, &k.at.Seq} {
			*field = lastGood(0, func(x uint64) bool { *field = x; return bad() })
		}
		it.SeekGE(successor(k.encode()))
	}
	if !it.Valid() {
		return dataKey{}, false
	}
	k, err := decodeDataKey(it.Key())
	return k, err == nil
}

// successor is the next key of the same length.
func successor(key []byte) []byte {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i]++; key[i] != 0 {
			break
		}
	}
	return key
}

// ignoreEOF is nil for io.EOF.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func satAdd(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}
