package store

import (
	"bytes"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// readAhead is how much a reader copies at once of what is not durable yet.
const readAhead = 256 << 10

// Reader reads a log from a position on. One goroutine uses it. It holds no
// iterator between two calls, so that a slow reader keeps nothing on disk.
type Reader struct {
	l    *Log
	at   Pos    // of the next frame
	skip uint64 // ReadOffset: frames before this offset are passed over

	seg   segment // frames [i, len) are next; data of frame i starts at pos
	i     int
	pos   uint32
	first Pos    // of frame 0
	buf   []byte // the record as read

	span   Pos // of the last record read from disk
	inSpan bool
}

// Read returns a reader whose first frame is from.Seq. from is a position
// that the log gave: of a frame, a checkpoint, or its end. Errors: ErrEvicted.
func (l *Log) Read(from Pos) (*Reader, error) {
	if from.Before(l.beginning()) {
		return nil, ErrEvicted
	}
	return &Reader{l: l, at: from}, nil
}

// ReadOffset returns a reader whose first frame is the first one that
// contains the stream byte at off, or begins at or behind it: marks exactly at
// off come first. Errors: ErrEvicted, *DamagedError.
func (l *Log) ReadOffset(off uint64) (*Reader, error) {
	r := &Reader{l: l}
	if err := r.SeekOffset(off); err != nil {
		return nil, err
	}
	return r, nil
}

// SeekOffset moves the reader to where [Log.ReadOffset] places a new one. It reads
// nothing from disk if off is within the record that was read last. Errors:
// ErrEvicted, *DamagedError.
func (r *Reader) SeekOffset(off uint64) error {
	if r.l == nil {
		return ErrClosed
	}
	if off < r.l.Oldest() {
		return ErrEvicted
	}
	if r.holds(off) {
		r.i, r.pos, r.at, r.skip = 0, 0, r.first, off
		return nil
	}
	at, err := r.l.seekOffset(off)
	if err != nil {
		return err
	}
	if first := r.l.beginning(); at.Before(first) {
		at = first // marks at the same offset are gone
	}
	r.drop()
	r.at, r.skip, r.inSpan = at, off, false
	return nil
}

// holds says whether all frames that a reader at off begins with are loaded: those
// at the first one's offset may have others in front of them.
func (r *Reader) holds(off uint64) bool {
	n := len(r.seg.frames)
	if n == 0 || off <= r.first.Offset {
		return false
	}
	last := &r.seg.frames[n-1]
	size := last.end
	if n > 1 {
		size -= r.seg.frames[n-2].end
	}
	return off < last.offset+last.advance(size)
}

// drop forgets the frames that are loaded.
func (r *Reader) drop() { r.seg.frames, r.i, r.pos = r.seg.frames[:0], 0, 0 }

// Close releases the reader.
func (r *Reader) Close() error {
	r.l = nil
	r.seg, r.buf = segment{}, nil
	return nil
}

// Next returns the next frame; its Data is valid until the next call. At the
// end of what was appended so far it returns io.EOF, and a later call may find
// more. ErrEvicted says that the place is no longer retained. After a
// *DamagedError the reader stands behind the damage: the next call goes on
// with the first frame there.
func (r *Reader) Next() (Frame, error) {
	if r.l == nil {
		return Frame{}, ErrClosed
	}
	for {
		for r.i < len(r.seg.frames) {
			f := r.pop()
			if r.skip > f.Offset && f.End().Offset <= r.skip {
				continue // neither contains skip nor begins at or behind it
			}
			r.skip = 0
			return f, nil
		}
		if err := r.fill(); err != nil {
			return Frame{}, err
		}
	}
}

// At is the position of the frame that Next will return.
func (r *Reader) At() Pos { return r.at }

// pop takes the next frame out of the segment.
func (r *Reader) pop() Frame {
	m := &r.seg.frames[r.i]
	f := Frame{
		Pos:  Pos{Offset: m.offset, Seq: r.at.Seq},
		Kind: m.kind, Time: m.time, Lost: m.lost,
		Data: r.seg.data[r.pos:m.end:m.end],
	}
	r.i++
	r.pos = m.end
	r.at = f.End()
	return f
}

// fill loads the segment that holds the frame at r.at, or returns io.EOF.
func (r *Reader) fill() error {
	r.drop()
	if r.at.Before(r.l.beginning()) {
		return ErrEvicted
	}
	inMemory, err := r.fillPending()
	if inMemory || err != nil {
		return err
	}
	err = r.l.s.view(r.l.pane, r.fillStored)
	if err != nil && r.at.Before(r.l.beginning()) {
		err = ErrEvicted // while we looked
	}
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		r.pass(damaged)
	}
	return err
}

// fillPending copies frames that are not durable yet. It reports false if
// the next one is on disk.
func (r *Reader) fillPending() (bool, error) {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.at.Seq >= l.end.Seq {
		if r.at != l.end {
			return true, ErrPosition
		}
		return true, io.EOF
	}
	for _, c := range l.pending.chunks {
		if r.at.Seq < c.first.Seq {
			return false, nil
		}
		i := r.at.Seq - c.first.Seq
		if i >= uint64(len(c.frames)) {
			continue
		}
		m, data := c.frame(int(i))
		if m.offset != r.at.Offset {
			return true, ErrPosition
		}
		start := m.end - uint32(len(data))
		r.seg.data = r.seg.data[:0]
		r.first = r.at
		for ; i < uint64(len(c.frames)) && len(r.seg.data) < readAhead; i++ {
			m, data := c.frame(int(i))
			r.seg.data = append(r.seg.data, data...)
			f := *m
			f.end -= start
			r.seg.frames = append(r.seg.frames, f)
		}
		return true, nil
	}
	return false, nil
}

// fillStored reads and decodes the record that holds the frame at r.at.
func (r *Reader) fillStored(it *pebble.Iterator) error {
	k, err := r.next(it)
	if err != nil {
		return err
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return &DamagedError{r.l.pane, k.at.Offset, err}
	}
	// The data of a stored record is used in place, so it must be ours.
	r.buf = append(r.buf[:0], v...)
	if err := r.seg.decode(r.buf); err != nil {
		r.seg.frames = r.seg.frames[:0]
		return &DamagedError{r.l.pane, k.at.Offset, err}
	}
	n := r.at.Seq - r.seg.first.Seq
	if r.seg.first != k.at || n >= uint64(r.seg.header.frames) {
		r.seg.frames = r.seg.frames[:0]
		return &DamagedError{r.l.pane, r.at.Offset, errMissing}
	}
	if r.seg.frames[n].offset != r.at.Offset {
		r.seg.frames = r.seg.frames[:0]
		return ErrPosition
	}
	r.i, r.first = int(n), k.at
	if n > 0 {
		r.pos = r.seg.frames[n-1].end
	}
	return nil
}

// recordAt puts the iterator on the record of frames that holds position at.
func (l *Log) recordAt(it *pebble.Iterator, at Pos) (dataKey, error) {
	span, err := l.spanAt(it, at)
	if errors.Is(err, ErrNoCheckpoint) {
		err = l.broken(at.Offset, errMissing)
	}
	if err != nil {
		return dataKey{}, err
	}
	return l.recordIn(it, span, at)
}

// recordIn is recordAt for a position that is known to be in span.
func (l *Log) recordIn(it *pebble.Iterator, span, at Pos) (dataKey, error) {
	if !it.SeekLT(dataKey{l.pane, span, classData, Pos{at.Offset, at.Seq + 1}}.encode()) {
		key := func(p Pos) []byte { return dataKey{l.pane, span, classData, p}.encode() }
		if k, ok := l.floor(it, span, at, key); ok && it.SeekGE(k.encode()) {
			return k, nil
		}
		return dataKey{}, l.notFound(it, at)
	}
	k, err := decodeDataKey(it.Key())
	if err == nil && (k.class != classData || k.span != span) {
		err = errMissing
	}
	return k, l.broken(at.Offset, err)
}

// next puts the iterator on the record of frames that holds r.at: mostly that
// which follows the last one in the same span.
func (r *Reader) next(it *pebble.Iterator) (dataKey, error) {
	if r.inSpan {
		k := dataKey{r.l.pane, r.span, classData, r.at}
		if it.SeekGE(k.encode()) && bytes.Equal(it.Key(), k.encode()) {
			return k, nil
		}
	}
	k, err := r.l.recordAt(it, r.at)
	r.span, r.inSpan = k.span, err == nil
	return k, err
}

// pass moves the reader behind the damage d, to the next record that can be
// read, or to what is not durable yet.
func (r *Reader) pass(d *DamagedError) {
	r.drop()
	k, ok := dataKey{at: r.l.memoryStart()}, false // before the iterator, see seekOffset
	_ = r.l.s.view(r.l.pane, func(it *pebble.Iterator) error {
		if next, found := r.l.nextRecord(it, max(d.Offset, r.at.Offset), r.at.Seq); found {
			k, ok = next, true
		}
		return nil
	})
	r.at, r.span, r.inSpan = k.at, k.span, ok
	r.skip = 0
}

// memoryStart is the position of the first frame that is not durable.
func (l *Log) memoryStart() Pos {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending.chunks) > 0 {
		return l.pending.chunks[0].first
	}
	return l.end
}
