package store_test

// A second reader of the format, written from docs/format.md. It shares no
// code with the package: it opens the database with Pebble and decodes keys
// and values itself.

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/klauspost/compress/zstd"

	"looptape/store"
)

type dump struct {
	frames map[uint64][]store.Frame
	blobs  map[uint64][]string
	record map[string]string
	logs   map[uint64]bool
	sealed int
	tails  int
	lag    uint64
	ends   map[uint64]store.Pos
}

func sum(b ...[]byte) uint32 {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for _, p := range b {
		h.Write(p)
	}
	return h.Sum32()
}

func dumpStore(t *testing.T, dir string) dump {
	t.Helper()
	head, err := os.ReadFile(filepath.Join(dir, "STORE"))
	if err != nil || len(head) != 36 || string(head[:8]) != "looptape" || sum(head[:32]) != binary.LittleEndian.Uint32(head[32:]) {
		t.Fatalf("header %x: %v", head, err)
	}
	db, err := pebble.Open(filepath.Join(dir, "db"), &pebble.Options{FormatMajorVersion: pebble.FormatNewest, ReadOnly: true, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := dump{map[uint64][]store.Frame{}, map[uint64][]string{}, map[string]string{}, map[uint64]bool{}, 0, 0, 0, map[uint64]store.Pos{}}
	for _, name := range []string{"records.a", "records.b"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		d.record = map[string]string{}
		if err := d.journal(head[16:32], b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		k, v := it.Key(), it.Value()
		switch k[0] {
		case 0:
			if v[0] != 'M' || !bytes.Equal(v[2:18], head[16:32]) {
				t.Errorf("meta %x", v)
			}
		case 3:
			if err := d.content(k, v); err != nil {
				t.Errorf("%x: %v", k, err)
			}
		default:
			t.Errorf("key %x", k)
		}
	}
	return d
}

type silent struct{}

func (silent) Infof(string, ...any)           {}
func (silent) Errorf(string, ...any)          {}
func (silent) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// journal reads one file of the journal, in which nothing is damaged.
func (d *dump) journal(id, b []byte) error {
	le := binary.LittleEndian
	for number := le.Uint64(b[8:]); len(b) > 0; number++ {
		key := b[32 : 32+le.Uint16(b[2:])]
		value := b[32+len(key) : 32+len(key)+int(le.Uint32(b[4:]))]
		if b[1] != 1 || le.Uint64(b[8:]) != number || sum(id, b[:24], key) != le.Uint32(b[24:]) || sum(id, b[:28], value) != le.Uint32(b[28:]) {
			return fmt.Errorf("entry %x", b[:32])
		}
		switch b[0] {
		case 'P':
			d.record[string(key)] = string(value)
		case 'L':
			d.logs[binary.BigEndian.Uint64(key)] = true
		case 'W':
			d.lag = le.Uint64(value)
		case 'R':
			if len(value) != 32 || le.Uint64(value) != 0 || le.Uint64(value[8:]) != 0 {
				return fmt.Errorf("a log begins at %x", value)
			}
			d.ends[binary.BigEndian.Uint64(key)] = store.Pos{Offset: le.Uint64(value[16:]), Seq: le.Uint64(value[24:])}
		}
		b = b[(32+len(key)+len(value)+7)/8*8:]
	}
	return nil
}

func (d *dump) content(k, v []byte) error {
	be, le := binary.BigEndian, binary.LittleEndian
	pane, class := be.Uint64(k[1:]), k[25]
	offset, seq := be.Uint64(k[26:]), be.Uint64(k[34:])
	size := 72
	if v[0] == 'C' {
		size = 40
	}
	if sum(v[:4], v[8:size]) != le.Uint32(v[4:]) || sum(v[size:]) != le.Uint32(v[32:]) {
		return fmt.Errorf("checksums")
	}
	if le.Uint64(v[8:]) != seq || le.Uint64(v[16:]) != offset {
		return fmt.Errorf("key and header differ")
	}
	raw := v[size:]
	if v[2] == 1 {
		z, _ := zstd.NewReader(nil)
		defer z.Close()
		var err error
		if raw, err = z.DecodeAll(raw, nil); err != nil {
			return err
		}
	}
	raw = bytes.Clone(raw)
	if len(raw) != int(le.Uint32(v[36:])) {
		return fmt.Errorf("length")
	}
	if class < 2 {
		d.blobs[pane] = append(d.blobs[pane], fmt.Sprint(class, offset, seq, string(raw)))
		return nil
	}
	if v[0] == 'S' {
		d.sealed++
	} else {
		d.tails++
	}
	wall, mono := int64(le.Uint64(v[40:])), int64(le.Uint64(v[48:]))
	table := bytes.NewReader(raw[le.Uint32(v[68:]):])
	for range le.Uint32(v[64:]) {
		f := store.Frame{Pos: store.Pos{Offset: offset, Seq: seq}}
		kind, _ := table.ReadByte()
		dw, _ := binary.ReadVarint(table)
		drift, _ := binary.ReadVarint(table)
		n, err := binary.ReadUvarint(table)
		if err != nil {
			return err
		}
		if kind == 2 {
			f.Lost, _ = binary.ReadUvarint(table)
		}
		wall, mono = wall+dw, mono+dw+drift
		f.Kind, f.Time, f.Data = store.Kind(kind), store.Time{Wall: wall, Mono: mono}, raw[:n]
		raw = raw[n:]
		d.frames[pane] = append(d.frames[pane], f)
		seq++
		switch kind {
		case 1:
			offset += n
		case 2:
			offset += f.Lost
		}
	}
	if table.Len() != 0 {
		return fmt.Errorf("%d bytes behind the table", table.Len())
	}
	return nil
}

func TestIndependentReader(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := store.Open(dir, store.Options{SegmentBytes: 8 << 10, SyncEvery: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	want := dump{map[uint64][]store.Frame{}, map[uint64][]string{}, map[string]string{"a": "1", "b/c": "2"}, map[uint64]bool{0: true, 1: true, 2: true}, 0, 0, 0, map[uint64]store.Pos{}}
	for k, v := range want.record {
		if err := s.Put(k, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	for pane := range uint64(3) {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		add := func(f store.Frame, end store.Pos) {
			want.frames[pane] = append(want.frames[pane], f)
			want.ends[pane] = store.Pos{Offset: f.Offset + f.Lost, Seq: f.Seq + 1}
			if f.Kind == store.Output {
				want.ends[pane] = store.Pos{Offset: f.Offset + uint64(len(f.Data)), Seq: f.Seq + 1}
			}
		}
		cp := func(blob string, full bool) {
			at := l.AppendCheckpoint([]byte(blob), full)
			class := 1
			if full {
				class = 0
			}
			want.blobs[pane] = append(want.blobs[pane], fmt.Sprint(class, at.Offset, at.Seq, blob))
		}
		cp("zero", true)
		for i := range int64(400) {
			tm := store.Time{Wall: i*1000 + rng.Int64N(500), Mono: i * 1000}
			f := store.Frame{Pos: l.End(), Kind: store.Output, Time: tm, Data: bytes.Repeat([]byte("log line\n"), rng.IntN(20))}
			add(f, l.Append(f.Kind, tm, f.Data))
			if i%100 == 50 {
				cp(fmt.Sprint("delta ", i), false)
			}
			if i == 200 {
				g := store.Frame{Pos: l.End(), Kind: store.Gap, Time: tm, Lost: 12345, Data: []byte("why")}
				add(g, l.AppendGap(tm, g.Lost, g.Data))
				cp("after the gap", true)
			}
			if rng.IntN(10) == 0 {
				if err := l.Sync(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got := dumpStore(t, dir)
	if got.lag != 8<<20 {
		t.Errorf("a power cut may take %d bytes more", got.lag)
	}
	if got.sealed == 0 || got.tails == 0 {
		t.Errorf("%d segments, %d tails", got.sealed, got.tails)
	}
	if fmt.Sprint(got.frames) != fmt.Sprint(want.frames) {
		t.Error("frames differ")
	}
	for pane := range want.blobs {
		// In the order of the keys: per span the full one, then the others.
		if fmt.Sprint(got.blobs[pane]) != fmt.Sprint(want.blobs[pane]) {
			t.Errorf("checkpoints of pane %d: %v, want %v", pane, got.blobs[pane], want.blobs[pane])
		}
	}
	if fmt.Sprint(got.record) != fmt.Sprint(want.record) {
		t.Errorf("records %v", got.record)
	}
	if fmt.Sprint(got.ends) != fmt.Sprint(want.ends) {
		t.Errorf("logs reached %v, want %v", got.ends, want.ends)
	}
	if fmt.Sprint(got.logs) != fmt.Sprint(want.logs) {
		t.Errorf("logs %v", got.logs)
	}
}
