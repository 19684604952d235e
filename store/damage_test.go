package store

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// damagedStore is a log of one span with ten segments of 1000 bytes each, all
// flushed, and a second span with one.
func damagedStore(t *testing.T) (*Store, *Log, *vfs.MemFS) {
	t.Helper()
	mem := vfs.NewMem()
	s := mustOpen(t, "s", Options{FS: mem, SegmentBytes: 1000, Level: -1})
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	l.AppendCheckpoint([]byte("first"), true)
	for i := range uint64(10) {
		l.Append(Output, Time{int64(i), 0}, words(rngFor(i), 1000))
		mustSync(t, l)
	}
	l.AppendCheckpoint([]byte("second"), true)
	l.Append(Output, Time{10, 0}, words(rngFor(10), 1000))
	mustSync(t, l)
	return s, l, mem
}

// readOver reads a log to its end, over damage; it returns the numbers of the
// frames that it got and the offsets of the damage.
func readOver(t *testing.T, l *Log) (seqs []uint64, damage []uint64) {
	t.Helper()
	r, err := l.Read(Pos{})
	if err != nil {
		t.Fatal(err)
	}
	for len(damage) < 100 {
		f, err := r.Next()
		var d *DamagedError
		switch {
		case errors.Is(err, io.EOF):
			return seqs, damage
		case errors.As(err, &d):
			if d.Pane != 1 {
				t.Errorf("damage in pane %d", d.Pane)
			}
			damage = append(damage, d.Offset)
		case err != nil:
			t.Fatal(err)
		default:
			if f.Offset != f.Seq*1000 || !bytes.Equal(f.Data, words(rngFor(f.Seq), 1000)) {
				t.Errorf("frame %v", f.Pos)
			}
			seqs = append(seqs, f.Seq)
		}
	}
	t.Fatal("no end of damage")
	return nil, nil
}

// A damaged record costs itself and nothing else.
func TestDamagedRecord(t *testing.T) {
	keyOf := func(span, i uint64) []byte {
		return dataKey{1, Pos{span * 1000, span}, classData, Pos{i * 1000, i}}.encode()
	}
	for _, i := range []uint64{0, 4, 9, 10} {
		for _, where := range []int{4, 20, 40, 500, -1, -2} {
			s, l, _ := damagedStore(t)
			key := keyOf(0, i)
			if i == 10 {
				key = keyOf(10, 10)
			}
			v, closer, err := s.db.Get(key)
			if err != nil {
				t.Fatal(err)
			}
			bad := append([]byte(nil), v...)
			closer.Close()
			switch where {
			case -1:
				bad = bad[:len(bad)-1]
			case -2:
				bad = nil
			default:
				bad[where] ^= 0x10
			}
			if where == -2 {
				err = s.db.Delete(key, pebble.Sync)
			} else {
				err = s.db.Set(key, bad, pebble.Sync)
			}
			if err != nil {
				t.Fatal(err)
			}
			seqs, damage := readOver(t, l)
			if len(seqs) != 10 || len(damage) != 1 || damage[0] != i*1000 {
				t.Errorf("record %d, damage %d: read %v, damage at %v", i, where, seqs, damage)
			}
			fsys := s.opts.FS
			mustClose(t, s)
			s = mustOpen(t, "s", Options{FS: fsys})
			if l, err = s.Log(1); err != nil {
				t.Fatal(err)
			}
			if i == 10 && !l.NeedsFull() && where != -2 {
				t.Error("no full checkpoint wanted behind the damage")
			}
			// It goes on behind the damage.
			l.AppendCheckpoint([]byte("third"), true)
			end := l.Append(Output, Time{}, []byte("on"))
			mustSync(t, l)
			if r, err := l.ReadOffset(end.Offset - 2); err != nil {
				t.Error(err)
			} else {
				f, err := r.Next()
				var d *DamagedError
				if errors.As(err, &d) && i == 10 { // it may have held that offset
					f, err = r.Next()
				}
				if err != nil || string(f.Data) != "on" {
					t.Error(f, err)
				}
			}
			mustClose(t, s)
		}
	}
}

func TestDamagedCheckpoint(t *testing.T) {
	s, l, _ := damagedStore(t)
	defer mustClose(t, s)
	key := dataKey{1, Pos{}, classFull, Pos{}}.encode()
	if err := s.db.Set(key, []byte("not a checkpoint"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	var d *DamagedError
	if _, err := l.Checkpoint(Pos{5000, 5}); !errors.As(err, &d) || d.Pane != 1 || d.Offset != 0 {
		t.Error(err)
	}
	if cp, err := l.Checkpoint(l.End()); err != nil || string(cp.Blob) != "second" {
		t.Error(cp, err)
	}
	for cp, err := range l.CheckpointsBack(Pos{5000, 5}) {
		if !errors.As(err, &d) || d.Pane != 1 || d.Offset != 0 || cp.Blob != nil {
			t.Error(cp, err)
		}
	}
	for cp, err := range l.CheckpointsBack(l.End()) { // a full one needs none before it
		if err != nil || string(cp.Blob) != "second" {
			t.Error(cp, err)
		}
	}
	var blobs []string
	for cp, err := range l.Checkpoints(Pos{}) {
		if err != nil && !errors.As(err, &d) {
			t.Error(err)
		}
		blobs = append(blobs, string(cp.Blob))
	}
	if len(blobs) != 2 || blobs[1] != "second" {
		t.Errorf("%q", blobs)
	}
}

// A block of a table that cannot be read costs the records in it: what is
// behind it is found all the same.
func TestDamagedBlock(t *testing.T) {
	const bytesPerSegment = 40 << 10 // more than a block
	mem := vfs.NewMem()
	s := mustOpen(t, "s", Options{FS: mem, SegmentBytes: bytesPerSegment, Level: -1})
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	l.AppendCheckpoint([]byte("cp"), true)
	var want [][]byte
	for i := range uint64(10) {
		want = append(want, bytes.Repeat([]byte{byte('a' + i)}, bytesPerSegment))
		l.Append(Output, Time{}, want[i])
		mustSync(t, l)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	names, err := mem.List("s/db")
	if err != nil {
		t.Fatal(err)
	}
	hit := 0
	for _, name := range names {
		if len(name) < 4 || name[len(name)-4:] != ".sst" {
			continue
		}
		data, err := mem.UnsafeGetFileDataBuffer("s/db/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{"ccccccccc", "dddddddd", "jjjjjjjj"} {
			if i := bytes.Index(data, []byte(c)); i >= 0 {
				data[i+100] ^= 1
				hit++
			}
		}
	}
	if hit != 3 {
		t.Fatalf("hit %d segments", hit)
	}
	s = mustOpen(t, "s", Options{FS: mem})
	defer mustClose(t, s)
	if l, err = s.Log(1); err != nil {
		t.Fatal(err)
	}
	got := ""
	r, err := l.Read(Pos{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		f, err := r.Next()
		var d *DamagedError
		if errors.Is(err, io.EOF) {
			break
		} else if errors.As(err, &d) {
			got += "!"
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		got += string(f.Data[:1])
	}
	if got != "ab!efghi!" {
		t.Errorf("read %q", got)
	}
	for i, c := range []byte("ab..efghi") {
		r, err := l.Read(Pos{uint64(i) * bytesPerSegment, uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		if f, err := r.Next(); c != '.' && (err != nil || f.Data[0] != c) {
			t.Errorf("segment %d: %v", i, err)
		}
	}
	// And the log goes on.
	l.AppendCheckpoint([]byte("again"), true)
	l.Append(Output, Time{}, []byte("on"))
	mustSync(t, l)
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}
