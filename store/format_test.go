package store

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
)

// golden reads the records of testdata/golden/v1.txt.
func golden(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/golden/v1.txt")
	if err != nil {
		t.Fatal(err)
	}
	out, name := map[string][]byte{}, ""
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if n, ok := strings.CutPrefix(line, "record "); ok {
			name = n
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = append(out[name], b...)
	}
	return out
}

// goldenFrames are the frames of the golden segment and tail.
var goldenFrames = []Frame{
	{Pos{100, 3}, Output, Time{1000, 50}, 0, []byte("hi\n")},
	{Pos{103, 4}, 5, Time{1100, 150}, 0, []byte("80x24")},
	{Pos{103, 5}, Gap, Time{1050, 160}, 300, []byte("full")},
}

// framesOf are the frames of a decoded segment.
func framesOf(s *segment) (out []Frame) {
	start := uint32(0)
	for i, m := range s.frames {
		out = append(out, Frame{Pos{m.offset, s.first.Seq + uint64(i)}, m.kind, m.time, m.lost, s.data[start:m.end]})
		start = m.end
	}
	return out
}

// blockOf puts frames into a block.
func blockOf(typ byte, frames []Frame) *block {
	b := &block{}
	b.reset(typ, frames[0].Pos)
	clock := frames[0].Time.Wall
	for _, f := range frames {
		clock = max(clock, f.Time.Wall)
		b.add(&frameMeta{time: f.Time, kind: f.Kind, lost: f.Lost}, f.Data, clock)
	}
	return b
}

func goldenID() (id [16]byte) {
	for i := range id {
		id[i] = byte(i)
	}
	return id
}

func TestGolden(t *testing.T) {
	g := golden(t)
	id := goldenID()
	if h, err := decodeStoreHeader(g["store-header"]); err != nil || h.id != id || h.state != stateReady {
		t.Error(h, err)
	}
	tail := blockOf(recTail, goldenFrames)
	tail.encode(nil)
	cp := &block{}
	cp.resetCheckpoint(&pendingCheckpoint{Pos{403, 6}, true, 1100, []byte("state")})
	cp.encode(nil)
	h := storeHeader{stateReady, id}
	for name, got := range map[string][]byte{
		"store-header": h.encode(),
		"meta":         encodeMeta(id),
		"entry":        (&entry{typ: entryPut, number: 9, batch: 8, key: "a/1", value: []byte("{}")}).append(nil, id),
		"entry-reached": func() []byte {
			e := reach{Pos{403, 6}, Pos{100000, 9}}.entry(7)
			e.number, e.batch = 10, 10
			return e.append(nil, id)
		}(),
		"slot":       (&slot{7, 5, 64 << 20, 3}).encode(id),
		"tail":       tail.out,
		"checkpoint": cp.out,
		"key-full":   dataKey{7, Pos{403, 6}, classFull, Pos{403, 6}}.encode(),
		"key-data":   dataKey{7, Pos{}, classData, Pos{100, 3}}.encode(),
	} {
		if !bytes.Equal(got, g[name]) {
			t.Errorf("%s:\n got %x\nwant %x", name, got, g[name])
		}
	}
	for _, name := range []string{"segment", "tail"} {
		var s segment
		if err := s.decode(g[name]); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, f := range framesOf(&s) {
			if !sameFrame(f, goldenFrames[i]) {
				t.Errorf("%s: frame %d is %v", name, i, f)
			}
		}
		if s.end() != (Pos{403, 6}) {
			t.Errorf("%s: end %v", name, s.end())
		}
	}
	if h, blob, err := decodeCheckpoint(g["checkpoint"]); err != nil || string(blob) != "state" || h.first != (Pos{403, 6}) || h.clock != 1100 {
		t.Error(h, blob, err)
	}
	for _, name := range []string{"key-full", "key-data"} {
		if k, err := decodeDataKey(g[name]); err != nil || !bytes.Equal(k.encode(), g[name]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// decoders are all decoders of values, by the name of their golden record.
var decoders = map[string]func([]byte) error{
	"store-header": func(b []byte) error { _, err := decodeStoreHeader(b); return err },
	"meta":         func(b []byte) error { _, err := decodeMeta(b); return err },
	"slot": func(b []byte) error {
		if s, ok := decodeSlot(b, goldenID()); !ok || s != (slot{7, 5, 64 << 20, 3}) {
			return errRecord
		}
		return nil
	},
	"tail":       func(b []byte) error { return new(segment).decode(b) },
	"segment":    func(b []byte) error { return new(segment).decode(b) },
	"checkpoint": func(b []byte) error { _, _, err := decodeCheckpoint(b); return err },
}

// Every record cut at any place, with any bit flipped, with anything behind
// it is refused.
func TestEveryDamageIsSeen(t *testing.T) {
	for name, b := range golden(t) {
		decode := decoders[name]
		if decode == nil {
			continue
		}
		if err := decode(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range b {
			if decode(b[:i:i]) == nil {
				t.Errorf("%s: cut to %d bytes", name, i)
			}
			for bit := range 8 {
				c := bytes.Clone(b)
				c[i] ^= 1 << bit
				if decode(c) == nil {
					t.Errorf("%s: byte %d bit %d flipped", name, i, bit)
				}
			}
		}
		for _, tail := range []string{"\x00", "x", string(b)} {
			if decode(append(bytes.Clone(b), tail...)) == nil {
				t.Errorf("%s: %d bytes behind it", name, len(tail))
			}
		}
	}
	for _, name := range []string{"key-full", "key-data"} {
		b := golden(t)[name]
		for i := range b {
			if _, err := decodeDataKey(b[:i]); err == nil {
				t.Errorf("%s: cut to %d bytes", name, i)
			}
		}
		if _, err := decodeDataKey(append(b, 0)); err == nil {
			t.Errorf("%s: a byte behind it", name)
		}
	}
}

// resum makes the checksums of a record right again.
func resum(b []byte) []byte {
	size := segmentHeader
	if b[0] == recCheckpoint {
		size = checkpointHeader
	}
	binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b[size:], castagnoli))
	binary.LittleEndian.PutUint32(b[4:], headerSum(b[:size]))
	return b
}

// What a header claims is checked even if the checksums are right.
func TestImpossibleHeaders(t *testing.T) {
	le := binary.LittleEndian
	for name, change := range map[string]func(b []byte) []byte{
		"type":            func(b []byte) []byte { b[0] = 'X'; return b },
		"version":         func(b []byte) []byte { b[1] = 2; return b },
		"codec":           func(b []byte) []byte { b[2] = 2; return b },
		"flags":           func(b []byte) []byte { b[3] = 1; return b },
		"seq runs over":   func(b []byte) []byte { le.PutUint64(b[8:], ^uint64(0)); return b },
		"offset over":     func(b []byte) []byte { le.PutUint64(b[16:], ^uint64(0)-5); return b },
		"raw over limit":  func(b []byte) []byte { le.PutUint32(b[36:], maxRaw+1); return b },
		"raw too large":   func(b []byte) []byte { le.PutUint32(b[36:], le.Uint32(b[36:])+1); return b },
		"raw too small":   func(b []byte) []byte { le.PutUint32(b[36:], le.Uint32(b[36:])-1); return b },
		"advance":         func(b []byte) []byte { le.PutUint64(b[56:], 304); return b },
		"no frames":       func(b []byte) []byte { le.PutUint32(b[64:], 0); return b },
		"more frames":     func(b []byte) []byte { le.PutUint32(b[64:], 4); return b },
		"fewer frames":    func(b []byte) []byte { le.PutUint32(b[64:], 2); return b },
		"too many frames": func(b []byte) []byte { le.PutUint32(b[64:], ^uint32(0)); return b },
		"more data":       func(b []byte) []byte { le.PutUint32(b[68:], 13); return b },
		"data over":       func(b []byte) []byte { le.PutUint32(b[68:], ^uint32(0)); return b },
		"trailing bytes":  func(b []byte) []byte { return append(b, 0) },
		"kind 0":          func(b []byte) []byte { b[72+12] = 0; return b },
		"frame too long":  func(b []byte) []byte { b[72+12+3] = 200; return b },
	} {
		b := resum(change(bytes.Clone(golden(t)["tail"])))
		if err := new(segment).decode(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	enc, err := newEncoders(0)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.stop()
	rng := rngFor(5)
	for range 300 {
		m := &model{end: Pos{rng.Uint64N(1 << 60), rng.Uint64N(1 << 60)}}
		for range 1 + rng.IntN(50) {
			f := Frame{Pos: m.end, Kind: Kind(1 + rng.IntN(4)), Time: Time{rng.Int64() - 1<<62, rng.Int64()}, Data: words(rng, rng.IntN(300))}
			if f.Kind == Gap {
				f.Lost = rng.Uint64N(1 << 40)
			}
			m.add(f, f.End())
		}
		for _, typ := range []byte{recSegment, recTail} {
			b := blockOf(typ, m.frames)
			b.encode(enc.z)
			var s segment
			if err := s.decode(b.out); err != nil {
				t.Fatal(err)
			}
			got := framesOf(&s)
			if len(got) != len(m.frames) || s.end() != m.end {
				t.Fatalf("%d frames to %v", len(got), s.end())
			}
			for i := range got {
				if !sameFrame(got[i], m.frames[i]) {
					t.Fatalf("frame %d: %v, want %v", i, got[i], m.frames[i])
				}
			}
		}
	}
}

func addSeeds(f *testing.F, names ...string) {
	g := golden(f)
	for _, n := range names {
		f.Add(g[n])
	}
}

// Whatever the decoder accepts, it can encode again to the same frames; it
// never panics and never makes more than the record says.
func FuzzSegment(f *testing.F) {
	addSeeds(f, "segment", "tail", "checkpoint")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, fixed(b)} {
			var s segment
			if s.decode(b) != nil {
				continue
			}
			frames := framesOf(&s)
			again := blockOf(recTail, frames)
			again.encode(nil)
			var s2 segment
			if err := s2.decode(again.out); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(framesOf(&s2)) != fmt.Sprint(frames) {
				t.Fatal("frames differ")
			}
		}
	})
}

// fixed is b with the checksums of a segment, so that the fuzzer gets past
// them.
func fixed(b []byte) []byte {
	if len(b) < segmentHeader {
		return nil
	}
	return resum(bytes.Clone(b))
}

// The table decoder alone, with a header that promises what it likes.
func FuzzTable(f *testing.F) {
	b := golden(f)["tail"]
	f.Add(b[84:], uint32(3), uint32(12), uint64(303))
	f.Fuzz(func(t *testing.T, table []byte, frames, data uint32, advance uint64) {
		if uint64(frames)*minTableEntry > uint64(len(table)) {
			return
		}
		h := header{frames: frames, data: data, advance: advance}
		out, err := decodeTable(nil, table, &h)
		if err == nil && (len(out) != int(frames) || out[len(out)-1].end != data) && frames > 0 {
			t.Fatal("accepted what does not add up")
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	addSeeds(f, "checkpoint")
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, blob, err := decodeCheckpoint(b); err == nil && len(blob) > maxRaw {
			t.Fatal("over the limit")
		}
	})
}

func FuzzStoreHeader(f *testing.F) {
	addSeeds(f, "store-header", "meta", "entry")
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeStoreHeader(b); err == nil && !bytes.Equal(h.encode(), b) {
			t.Fatal("not what was written")
		}
		_, _ = decodeMeta(b)
		if e, n := decodeEntry(b, goldenID()); n > len(b) || !e.bad && n > 0 && !bytes.HasPrefix(b, e.append(nil, goldenID())[:entryHeader]) {
			t.Fatal("not what was written")
		}
		_, _ = decodeDataKey(b)
	})
}
