package store

import (
	"errors"
	"io"
	"iter"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Checkpoint is an opaque state at a position of a log. A full one stands for
// itself; any other may need those before it in its span.
type Checkpoint struct {
	Pos
	Full bool
	Blob []byte
}

func (cp *pendingCheckpoint) key(pane uint64, span Pos) dataKey {
	if cp.full {
		return dataKey{pane, span, classFull, span}
	}
	return dataKey{pane, span, classDelta, cp.at}
}

func (cp *pendingCheckpoint) public() Checkpoint {
	return Checkpoint{cp.at, cp.full, append([]byte(nil), cp.blob...)}
}

// Checkpoint returns the last checkpoint at or before at. Errors:
// ErrNoCheckpoint if there is none, ErrEvicted, *DamagedError.
func (l *Log) Checkpoint(at Pos) (Checkpoint, error) { return l.checkpoint(at, false) }

// FullCheckpoint returns the last full checkpoint at or before at; errors as
// for Checkpoint.
func (l *Log) FullCheckpoint(at Pos) (Checkpoint, error) { return l.checkpoint(at, true) }

// Checkpoints yields the checkpoints from position from on, in order. (Where
// one that is not full and a full one stand at the same position, the full one
// comes second, and alone if that position is from.) An error is yielded last;
// a damaged checkpoint is reported and passed over, unless the damage hides the way on.
func (l *Log) Checkpoints(from Pos) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		past := false // the one at from that is not full was yielded
		for {
			if first := l.beginning(); from.Before(first) {
				from, past = first, false
			}
			cp, err := l.nextCheckpoint(from, past)
			if errors.Is(err, io.EOF) {
				return
			}
			var damaged *DamagedError
			if !yield(cp, err) || err != nil && !errors.As(err, &damaged) {
				return
			}
			next := cp.Pos
			if cp.Full {
				next.Seq++
			}
			if next.Before(from) || next == from && (past || cp.Full) {
				return
			}
			from, past = next, !cp.Full
		}
	}
}

// CheckpointsBack yields the checkpoints at or before at, the last one first, up to
// the full one that begins their span. An error, of those of Checkpoint, is yielded
// last. While it runs, nothing else may be asked of the store.
func (l *Log) CheckpointsBack(at Pos) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		at.Seq = min(at.Seq, math.MaxUint64-1)
		for cp, ok := l.pendingBefore(at, false); ok; cp, ok = l.pendingBefore(at, false) {
			if !yield(cp, nil) || cp.Full {
				return
			}
			at = Pos{cp.Offset, cp.Seq - 1}
		}
		err := l.s.view(l.pane, func(it *pebble.Iterator) error { return l.storedBack(it, at, yield) })
		if err != nil && at.Offset < l.Oldest() {
			err = ErrEvicted
		}
		if err != nil {
			yield(Checkpoint{}, err)
		}
	}
}

// storedBack is CheckpointsBack for what is on disk. Stepping back reads each record
// once, where a seek would read the one before as well.
func (l *Log) storedBack(it *pebble.Iterator, at Pos, yield func(Checkpoint, error) bool) error {
	span, err := l.spanAt(it, at)
	if err != nil {
		return err
	}
	hi := dataKey{l.pane, span, classDelta, Pos{at.Offset, at.Seq + 1}}
	for ok := it.SeekLT(hi.encode()); ; ok = it.Prev() {
		if !ok {
			return l.notFound(it, span)
		}
		k, err := decodeDataKey(it.Key())
		if err == nil && k.span != span {
			err = errMissing
		}
		if err != nil {
			return &DamagedError{l.pane, span.Offset, err}
		}
		cp, err := l.readCheckpoint(it, k)
		if err != nil {
			return err
		}
		if !yield(cp, nil) || cp.Full {
			return nil
		}
	}
}

// checkpoint is the last checkpoint, or the last full one, at or before at.
func (l *Log) checkpoint(at Pos, full bool) (Checkpoint, error) {
	at.Seq = min(at.Seq, math.MaxUint64-1) // there is no position behind the last one
	empty := l.End() == Pos{}
	if cp, ok := l.pendingBefore(at, full); ok {
		return cp, nil
	}
	var cp Checkpoint
	err := l.s.view(l.pane, func(it *pebble.Iterator) error {
		span, err := l.spanAt(it, at)
		if err != nil {
			return err
		}
		k := dataKey{l.pane, span, classFull, span}
		if !full {
			hi := dataKey{l.pane, span, classDelta, Pos{at.Offset, at.Seq + 1}}
			if !it.SeekLT(hi.encode()) {
				return l.notFound(it, span)
			}
			if k, err = decodeDataKey(it.Key()); err != nil {
				return &DamagedError{l.pane, span.Offset, err}
			}
		} else if !it.SeekGE(k.encode()) {
			return l.notFound(it, span)
		}
		cp, err = l.readCheckpoint(it, k)
		return err
	})
	switch oldest := l.beginning(); {
	case err != nil && at.Before(oldest):
		err = ErrEvicted
	case errors.Is(err, ErrNoCheckpoint) && !empty: // a log begins with one
		err = &DamagedError{l.pane, oldest.Offset, errMissing}
	}
	return cp, err
}

// nextCheckpoint is the first checkpoint at or behind from, or io.EOF; past
// leaves out one at from that is not full. Of a damaged one the position is
// returned too.
func (l *Log) nextCheckpoint(from Pos, past bool) (cp Checkpoint, err error) {
	// First what is in memory: it may be on disk before we look there, but
	// not the other way round.
	pending, ok := l.pendingFrom(from, past)
	var over *Pos // the span that has no more
	err = l.s.view(l.pane, func(it *pebble.Iterator) error {
		k, full := dataKey{pane: l.pane}, true
		span, err := l.spanAt(it, from)
		switch {
		case errors.Is(err, ErrNoCheckpoint): // before the oldest
		case err != nil:
			return err
		case from == span:
			k.span, k.at = span, span
		default:
			full = false
			k.span, k.class, k.at = span, classDelta, from
			if past {
				k.at.Seq++
			}
		}
		if !it.SeekGE(k.encode()) {
			return eof(it)
		}
		k, err = decodeDataKey(it.Key())
		switch {
		case err != nil:
			return &DamagedError{l.pane, from.Offset, err}
		case full && k.class != classFull:
			cp = Checkpoint{Pos: k.span, Full: true}
			return &DamagedError{l.pane, k.span.Offset, errMissing}
		case k.class == classData:
			over = &span
			return nil
		}
		cp, err = l.readCheckpoint(it, k)
		return err
	})
	if over != nil {
		// With an iterator of its own: one that stands near steps from block to block
		// instead of seeking, and into one that cannot be read.
		err = l.s.view(l.pane, func(it *pebble.Iterator) error {
			k, err := l.spanBehind(it, *over)
			if err == nil {
				cp, err = l.readCheckpoint(it, k)
			} else if k.pane == l.pane {
				cp = Checkpoint{Pos: k.at, Full: true}
			}
			return err
		})
		if err == nil && cp.Pos.Before(from) { // it became durable in between
			return l.nextCheckpoint(from, past)
		}
	}
	if ok && (errors.Is(err, io.EOF) || err == nil && pending.Pos == cp.Pos && pending.Full == cp.Full) {
		return pending, nil // the only one, or in place of that on disk
	}
	return cp, err
}

// spanBehind puts the iterator on the full checkpoint of the first span behind the
// one at span; its key is returned also if it is damaged. Seeking to where it may
// begin looks at the last block of the span before, which may not be readable.
func (l *Log) spanBehind(it *pebble.Iterator, span Pos) (dataKey, error) {
	next := func(delta uint64) []byte {
		return spanKey(l.pane, Pos{Offset: satAdd(span.Offset, delta), Seq: span.Seq + 1})
	}
	full := func(span Pos) dataKey { return dataKey{l.pane, span, classFull, span} }
	if it.SeekGE(next(0)) {
		k, err := decodeDataKey(it.Key())
		if err == nil && k.class != classFull {
			k, err = full(k.span), errMissing
		}
		return k, l.broken(k.span.Offset, err)
	}
	err := it.Error()
	if err == nil {
		return dataKey{}, io.EOF
	}
	k, ok := l.bisect(it, next)
	if !ok {
		return dataKey{}, err
	}
	// Between the two there is a span whose beginning cannot be read, or none.
	if it.SeekLT(full(k.span).encode()) {
		if p, err := decodeDataKey(it.Key()); err == nil && p.span != span {
			return full(p.span), &DamagedError{l.pane, p.span.Offset, errBlock}
		}
	}
	if k = full(k.span); !it.SeekGE(k.encode()) {
		return dataKey{}, eof(it)
	}
	return k, nil
}

func eof(it *pebble.Iterator) error {
	if err := it.Error(); err != nil {
		return err
	}
	return io.EOF
}

// readCheckpoint decodes the record under the iterator, which must be k. Its
// position is returned even with an error.
func (l *Log) readCheckpoint(it *pebble.Iterator, k dataKey) (Checkpoint, error) {
	cp := Checkpoint{Pos: k.at, Full: k.class == classFull}
	v, err := it.ValueAndErr()
	var h header
	if err == nil {
		h, cp.Blob, err = decodeCheckpoint(v)
	}
	if err == nil && (h.first != k.at || (h.flags == flagFull) != cp.Full) {
		err = errRecord
	}
	if err == nil {
		var got dataKey
		if got, err = decodeDataKey(it.Key()); err == nil && got != k {
			err = errMissing
		}
	}
	if err != nil {
		return Checkpoint{Pos: k.at, Full: cp.Full}, &DamagedError{l.pane, k.at.Offset, err}
	}
	return cp, nil
}

// notFound says why a seek inside a span that is there found nothing.
func (l *Log) notFound(it *pebble.Iterator, span Pos) error {
	err := it.Error()
	if err == nil {
		err = errMissing
	}
	return &DamagedError{l.pane, span.Offset, err}
}

// pendingBefore looks for the last checkpoint at or before at among those
// that are not durable yet.
func (l *Log) pendingBefore(at Pos, full bool) (Checkpoint, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.pending.chunks) - 1; i >= 0; i-- {
		cps := l.pending.chunks[i].cps
		for j := len(cps) - 1; j >= 0; j-- {
			if !at.Before(cps[j].at) && (cps[j].full || !full) {
				return cps[j].public(), true
			}
		}
	}
	return Checkpoint{}, false
}

// pendingFrom looks for the first checkpoint at or behind from among those
// that are not durable yet.
func (l *Log) pendingFrom(from Pos, past bool) (Checkpoint, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var first *pendingCheckpoint
	for _, c := range l.pending.chunks {
		for i := range c.cps {
			cp := &c.cps[i]
			if cp.at.Before(from) || !cp.full && past && cp.at == from {
				continue
			}
			if first != nil && (cp.at != first.at || cp.full != first.full) {
				return first.public(), true
			}
			first = cp // or in its place
		}
	}
	if first == nil {
		return Checkpoint{}, false
	}
	return first.public(), true
}
