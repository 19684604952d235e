package store

import (
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// The time index. The time of a frame counts as the largest wall time of the
// log up to it, so that it never falls, whatever the clock did. The header of
// each segment has that of its first frame, so a search bisects the segments
// and then looks into one.

// OffsetAt is the offset of the log at a moment, ns since the epoch: that
// behind the last frame whose time is not later. A moment before the first
// retained frame gives Oldest. Errors: *DamagedError.
func (l *Log) OffsetAt(wall int64) (uint64, error) {
	p, err := l.PosAt(wall)
	return p.Offset, err
}

// PosAt is OffsetAt as a position, which also tells marks at the same offset
// apart.
func (l *Log) PosAt(wall int64) (Pos, error) {
	if p, ok := l.timePending(wall); ok {
		return p, nil
	}
	for {
		var p Pos
		oldest := l.beginning()
		err := l.s.view(l.pane, func(it *pebble.Iterator) (err error) {
			p, err = l.timeStored(it, wall)
			return err
		})
		if err == nil { // outside of the view: a reader has one of its own
			p, err = l.scanTime(p, wall)
		}
		if err == nil || l.beginning() == oldest {
			return p, err
		}
		// Spans went while we looked.
	}
}

// timePending answers for what is not durable yet.
func (l *Log) timePending(wall int64) (Pos, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock <= wall {
		return l.end, true
	}
	for i := len(l.pending.chunks) - 1; i >= 0; i-- {
		c := l.pending.chunks[i]
		if c.clock > wall {
			continue
		}
		for j := range c.frames {
			if c.frames[j].time.Wall > wall {
				return Pos{Offset: c.frames[j].offset, Seq: c.first.Seq + uint64(j)}, true
			}
		}
		return c.end(), true
	}
	return Pos{}, false
}

// timeStored finds a frame on disk from which on the first that is too late is soon
// found.
func (l *Log) timeStored(it *pebble.Iterator, wall int64) (Pos, error) {
	k, ok := l.first(it)
	if !ok {
		return Pos{}, l.broken(0, it.Error())
	}
	best := k.span // some frame at or behind it is the first that is too late
	lo, hi := k.span.Offset, l.memoryStart().Offset
	for lo < hi {
		mid := lo + (hi-lo)/2
		k, err := l.recordAt(it, Pos{Offset: mid, Seq: math.MaxUint64 - 1})
		if err != nil {
			hi = mid // nothing here: what is before it will do
			continue
		}
		h, err := l.headerAt(it, k)
		if err != nil {
			return Pos{}, err
		}
		if h.clock > wall {
			hi = min(mid, h.first.Offset)
			continue
		}
		best = h.first
		lo = max(mid+1, h.end().Offset)
	}
	return best, nil
}

// scanTime reads from a position until a frame is later than wall.
func (l *Log) scanTime(from Pos, wall int64) (Pos, error) {
	r, err := l.Read(from)
	if err != nil {
		return Pos{}, err
	}
	defer r.Close()
	for {
		at := r.At()
		f, err := r.Next()
		var damaged *DamagedError
		switch {
		case errors.As(err, &damaged):
			continue
		case err != nil: // io.EOF: the end is not too late
			return at, ignoreEOF(err)
		case f.Time.Wall > wall:
			return f.Pos, nil
		}
	}
}

// headerAt decodes the header of the record under the iterator.
func (l *Log) headerAt(it *pebble.Iterator, k dataKey) (header, error) {
	v, err := it.ValueAndErr()
	if err != nil {
		return header{}, l.broken(k.at.Offset, err)
	}
	h, err := decodeHeader(v)
	if err == nil && (h.typ == recCheckpoint || h.first != k.at) {
		err = errRecord
	}
	return h, l.broken(k.at.Offset, err)
}
