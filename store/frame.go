package store

import (
	"encoding/binary"
	"fmt"
)

// Kind says what a frame is. The store interprets the two kinds below; every
// other value but 0 is a mark of the caller's, which does not advance the
// offset.
type Kind uint8

const (
	// Output: Data are bytes of the stream and advance the offset.
	Output Kind = 1
	// Gap: Lost bytes of the stream are missing here and advance the offset;
	// Data may say why.
	Gap Kind = 2
)

// Time is when a frame was read: nanoseconds since the Unix epoch, and
// nanoseconds of a clock that never jumps.
type Time struct{ Wall, Mono int64 }

// Pos is the place in front of frame Seq (frames of a log are numbered from
// 0), at stream offset Offset.
type Pos struct{ Offset, Seq uint64 }

// Before reports whether p lies in front of q in the same log.
func (p Pos) Before(q Pos) bool {
	return p.Offset < q.Offset || p.Offset == q.Offset && p.Seq < q.Seq
}

// Frame is one entry of a log.
type Frame struct {
	Pos
	Kind Kind
	Time Time
	Lost uint64 // of a Gap: stream bytes missing here
	Data []byte
}

// End is the position behind the frame.
func (f *Frame) End() Pos {
	p := Pos{Offset: f.Offset, Seq: f.Seq + 1}
	switch f.Kind {
	case Output:
		p.Offset += uint64(len(f.Data))
	case Gap:
		p.Offset += f.Lost
	}
	return p
}

// frameMeta is a frame without its data and its number, both of which follow
// from where it stands in a block.
type frameMeta struct {
	time   Time
	offset uint64
	lost   uint64
	end    uint32 // where its data ends in the data of the block
	kind   Kind
}

// advance is what the frame adds to the offset, n being the length of its
// data.
func (m *frameMeta) advance(n uint32) uint64 {
	switch m.kind {
	case Output:
		return uint64(n)
	case Gap:
		return m.lost
	}
	return 0
}

// The frame table, one entry a frame:
//
//	kind   1 byte, not 0
//	wall   zigzag varint: ns since the frame before (the first: since the
//	       header's wall, so 0)
//	drift  zigzag varint: ns that mono went on beyond wall since then
//	len    uvarint: bytes of data
//	lost   uvarint, only of a Gap
const (
	minTableEntry = 4
	maxTableEntry = 1 + 3*binary.MaxVarintLen64 + binary.MaxVarintLen32
)

// appendTable appends the entry of m, whose data is n bytes long, to dst;
// prev is the time of the frame before.
func appendTable(dst []byte, m *frameMeta, n uint32, prev Time) []byte {
	dw, dm := m.time.Wall-prev.Wall, m.time.Mono-prev.Mono
	dst = append(dst, byte(m.kind))
	dst = binary.AppendVarint(dst, dw)
	dst = binary.AppendVarint(dst, dm-dw)
	dst = binary.AppendUvarint(dst, uint64(n))
	if m.kind == Gap {
		dst = binary.AppendUvarint(dst, m.lost)
	}
	return dst
}

// decodeTable appends the frames of a table to dst. h says how many there
// are, how long their data is and what they advance; anything else is an
// error.
func decodeTable(dst []frameMeta, table []byte, h *header) ([]frameMeta, error) {
	t, offset, end := Time{h.wall, h.mono}, h.first.Offset, uint64(0)
	for i := range h.frames {
		m := frameMeta{offset: offset}
		d := tableReader{b: table}
		m.kind = Kind(d.byte())
		dw := d.varint()
		dm := d.varint() + dw
		n := d.uvarint()
		if m.kind == Gap {
			m.lost = d.uvarint()
		}
		if d.bad || m.kind == 0 || n > uint64(h.data)-end || i == 0 && (dw != 0 || dm != 0) {
			return nil, fmt.Errorf("%w: frame %d", errRecord, i)
		}
		table = d.b
		end += n
		t.Wall += dw
		t.Mono += dm
		m.time, m.end = t, uint32(end)
		adv := m.advance(uint32(n))
		if offset+adv < offset {
			return nil, fmt.Errorf("%w: frame %d runs over", errRecord, i)
		}
		offset += adv
		dst = append(dst, m)
	}
	if len(table) != 0 || end != uint64(h.data) || offset-h.first.Offset != h.advance {
		return nil, fmt.Errorf("%w: frames and header differ", errRecord)
	}
	return dst, nil
}

// tableReader reads the fields of a table; bad is set by the first that is
// not there.
type tableReader struct {
	b   []byte
	bad bool
}

func (d *tableReader) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *tableReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *tableReader) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}
