package store

import (
	"hash/crc32"
	"math"
)

// block is a record of the log being put together: frames, or the blob of a
// checkpoint. It belongs to the committer, and to one encoder while that
// encodes it.
type block struct {
	header
	content []byte // the data of the frames, or the blob
	table   []byte
	last    Time   // of the last frame
	out     []byte // the record, once encoded
}

func (b *block) reset(typ byte, first Pos) {
	*b = block{header: header{typ: typ, first: first}, table: b.table[:0], content: b.content[:0], out: b.out[:0]}
}

// resetCheckpoint makes b the record of a checkpoint; blob is not kept beyond
// encode.
func (b *block) resetCheckpoint(cp *pendingCheckpoint) {
	b.reset(recCheckpoint, cp.at)
	b.clock = cp.clock
	if cp.full {
		b.flags = flagFull
	}
	b.content = append(b.content, cp.blob...)
}

// add appends a frame. clock is the largest wall time up to and including it.
func (b *block) add(m *frameMeta, data []byte, clock int64) {
	n := uint32(len(data))
	if b.frames == 0 {
		b.wall, b.mono, b.clock = m.time.Wall, m.time.Mono, clock
		b.last = m.time
	}
	b.table = appendTable(b.table, m, n, b.last)
	b.content = append(b.content, data...)
	b.last = m.time
	b.frames++
	b.data += n
	b.advance += m.advance(n)
}

func (b *block) bytes() int { return len(b.content) + len(b.table) }

// fits reports whether a frame of n bytes may be added without passing limit
// bytes of data; an empty block takes any frame.
func (b *block) fits(n, limit int) bool {
	return b.frames == 0 || b.frames < maxBlockFrames && len(b.content)+n <= limit
}

// encode makes the record in b.out. It reads nothing but b.
func (b *block) encode(z compressor) {
	raw := append(b.content, b.table...)
	if len(raw) > math.MaxUint32 {
		panic("store: record too long")
	}
	b.content = raw[:len(b.content)]
	b.raw = uint32(len(raw))
	size := b.size()
	if cap(b.out) < size {
		b.out = make([]byte, 0, size+len(raw)/2)
	}
	b.out = b.out[:size]
	b.codec = codecStored
	if b.typ != recTail && z != nil {
		b.codec = codecZstd
		b.out = z.EncodeAll(raw, b.out)
	}
	if b.codec == codecStored || len(b.out)-size >= len(raw) {
		b.codec = codecStored
		b.out = append(b.out[:size], raw...)
	}
	b.sum = crc32.Checksum(b.out[size:], castagnoli)
	b.put(b.out[:size])
}
