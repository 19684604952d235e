package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Records of the log, all integers little-endian. A segment ('S') and a tail
// ('T') are the same container of frames; a tail is small, not compressed and
// will be merged into a segment, a segment is final. A checkpoint ('C') holds
// one opaque blob.
//
//	 0  u8   type           recSegment 'S', recTail 'T', recCheckpoint 'C'
//	 1  u8   version        recVersion, 1
//	 2  u8   codec          codecStored 0, codecZstd 1
//	 3  u8   flags          of 'C': bit 0 flagFull; else 0
//	 4  u32  header sum     CRC-32C of the header without these four bytes
//	 8  u64  seq            of the first frame; of the frame behind the checkpoint
//	16  u64  offset         of the first frame; of the checkpoint
//	24  i64  clock          ns, largest wall time of the log so far, up to and
//	                        including the first frame: never falls along a log
//	32  u32  payload sum    CRC-32C of the payload as stored
//	36  u32  raw            bytes of the payload decoded, at most maxRaw
//	40  -    'C': end of the header (checkpointHeader); payload = blob
//	40  i64  wall           ns since the epoch, of the first frame
//	48  i64  mono           ns, of the first frame
//	56  u64  advance        bytes of the stream that the frames cover
//	64  u32  frames         number of frames, at least 1
//	68  u32  data           bytes of frame data, at most raw
//	72  -    'S', 'T': end of the header (segmentHeader); payload decoded =
//	         the data of all frames, then the frame table (raw-data bytes)
const (
	recSegment    = 'S'
	recTail       = 'T'
	recCheckpoint = 'C'
	recVersion    = 1

	codecStored = 0
	codecZstd   = 1

	flagFull = 1

	checkpointHeader = 40
	segmentHeader    = 72

	// maxRaw bounds what a decoder allocates for one record.
	maxRaw = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is a decoded record header. For a checkpoint the fields from wall on
// are zero.
type header struct {
	typ     byte
	codec   byte
	flags   byte
	first   Pos
	clock   int64
	sum     uint32 // of the payload
	raw     uint32
	wall    int64
	mono    int64
	advance uint64
	frames  uint32
	data    uint32
}

// end is the position behind the record's last frame.
func (h *header) end() Pos {
	return Pos{Offset: h.first.Offset + h.advance, Seq: h.first.Seq + uint64(h.frames)}
}

func (h *header) size() int {
	if h.typ == recCheckpoint {
		return checkpointHeader
	}
	return segmentHeader
}

// put writes the header over the first size bytes of b.
func (h *header) put(b []byte) {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = h.typ, recVersion, h.codec, h.flags
	le.PutUint64(b[8:], h.first.Seq)
	le.PutUint64(b[16:], h.first.Offset)
	le.PutUint64(b[24:], uint64(h.clock))
	le.PutUint32(b[32:], h.sum)
	le.PutUint32(b[36:], h.raw)
	if h.typ != recCheckpoint {
		le.PutUint64(b[40:], uint64(h.wall))
		le.PutUint64(b[48:], uint64(h.mono))
		le.PutUint64(b[56:], h.advance)
		le.PutUint32(b[64:], h.frames)
		le.PutUint32(b[68:], h.data)
	}
	le.PutUint32(b[4:], headerSum(b[:h.size()]))
}

func headerSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:4], castagnoli), castagnoli, b[8:])
}

// decodeHeader reads and checks the header of b, and that what it says is
// possible. It does not look at the payload.
func decodeHeader(b []byte) (h header, err error) {
	le := binary.LittleEndian
	if len(b) < checkpointHeader {
		return h, errShort
	}
	h.typ, h.codec, h.flags = b[0], b[2], b[3]
	switch h.typ {
	case recSegment, recTail, recCheckpoint:
	default:
		return h, fmt.Errorf("%w: record type %#x", errRecord, h.typ)
	}
	if len(b) < h.size() {
		return h, errShort
	}
	if headerSum(b[:h.size()]) != le.Uint32(b[4:]) {
		return h, errChecksum
	}
	if b[1] != recVersion {
		return h, fmt.Errorf("%w: record version %d", errRecord, b[1])
	}
	h.first = Pos{Seq: le.Uint64(b[8:]), Offset: le.Uint64(b[16:])}
	h.clock = int64(le.Uint64(b[24:]))
	h.sum, h.raw = le.Uint32(b[32:]), le.Uint32(b[36:])
	if h.codec > codecZstd || h.raw > maxRaw {
		return h, fmt.Errorf("%w: codec %d, %d bytes", errRecord, h.codec, h.raw)
	}
	if h.typ == recCheckpoint {
		if h.flags > flagFull {
			return h, fmt.Errorf("%w: flags %#x", errRecord, h.flags)
		}
		return h, nil
	}
	h.wall, h.mono = int64(le.Uint64(b[40:])), int64(le.Uint64(b[48:]))
	h.advance, h.frames, h.data = le.Uint64(b[56:]), le.Uint32(b[64:]), le.Uint32(b[68:])
	if h.flags != 0 || h.frames == 0 || h.data > h.raw ||
		uint64(h.frames)*minTableEntry > uint64(h.raw-h.data) {
		return h, fmt.Errorf("%w: %d frames in %d bytes", errRecord, h.frames, h.raw)
	}
	if e := h.end(); e.Offset < h.first.Offset || e.Seq < h.first.Seq {
		return h, fmt.Errorf("%w: position runs over", errRecord)
	}
	return h, nil
}

// decodePayload returns the decoded payload of record b, whose header is h,
// in dst's memory if it fits; of a stored record it may be b's own memory.
func decodePayload(dst, b []byte, h *header) ([]byte, error) {
	p := b[h.size():]
	if crc32.Checksum(p, castagnoli) != h.sum {
		return nil, errChecksum
	}
	if h.codec == codecZstd {
		var err error
		if p, err = decompress(dst[:0], p, int(h.raw)); err != nil {
			return nil, fmt.Errorf("%w: %v", errRecord, err)
		}
	}
	if len(p) != int(h.raw) {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", errRecord, len(p), h.raw)
	}
	return p, nil
}

// segment is a decoded segment or tail. Its slices are reused by the next
// decode into it.
type segment struct {
	header
	frames []frameMeta
	data   []byte
	buf    []byte // what a compressed payload is decoded into
}

// decode reads a whole record of frames. data may alias b.
func (s *segment) decode(b []byte) error {
	h, err := decodeHeader(b)
	if err != nil {
		return err
	}
	if h.typ == recCheckpoint {
		return fmt.Errorf("%w: a checkpoint among frames", errRecord)
	}
	p, err := decodePayload(s.buf, b, &h)
	if err != nil {
		return err
	}
	if h.codec == codecZstd {
		s.buf = p
	}
	frames, err := decodeTable(s.frames[:0], p[h.data:], &h)
	if err != nil {
		return err
	}
	s.header, s.frames, s.data = h, frames, p[:h.data]
	return nil
}

// decodeCheckpoint reads a whole checkpoint record; the blob shares no memory with b.
func decodeCheckpoint(b []byte) (header, []byte, error) {
	h, err := decodeHeader(b)
	if err != nil {
		return h, nil, err
	}
	if h.typ != recCheckpoint {
		return h, nil, fmt.Errorf("%w: frames instead of a checkpoint", errRecord)
	}
	p, err := decodePayload(nil, b, &h)
	if err != nil {
		return h, nil, err
	}
	if h.codec == codecStored {
		p = append([]byte(nil), p...)
	}
	return h, p, nil
}
