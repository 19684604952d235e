package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// recordStore has records a to e, of which c was deleted and d put twice, and
// logs 0 to 4, of which 3 was removed, with content; closed in good order.
func recordStore(t *testing.T) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewMem()
	s := mustOpen(t, "s", Options{FS: mem})
	for pane := range uint64(5) {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		l.AppendCheckpoint([]byte("cp"), true)
		l.Append(Output, Time{}, numbered(pane, 0))
		mustSync(t, l)
	}
	for i, key := range []string{"a", "b", "c", "d", "d", "e"} {
		if err := s.Put(key, fmt.Append(nil, key, " ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Delete("c"), s.Remove(3)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	return mem
}

const recordsWant = "a=a 0 b=b 1 d=d 4 e=e 5"

// recordsOf is what a store has, damaged records as "key=!", those without a
// key as "!", and its panes.
func recordsOf(t *testing.T, s *Store) (records string, panes []uint64) {
	t.Helper()
	var out []string
	for r, err := range s.Scan("") {
		var d *DamagedError
		switch {
		case errors.As(err, &d) && d.Pane == WholeStore && r.Key == "":
			out = append(out, "!")
		case errors.As(err, &d) && d.Pane == WholeStore:
			out = append(out, r.Key+"=!")
			if _, err := s.Get(r.Key); !errors.As(err, &d) {
				t.Errorf("Get(%q): %v", r.Key, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, r.Key+"="+string(r.Value))
		}
	}
	panes, err := s.Panes()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " "), panes
}

// A byte that is flipped anywhere in one of the files of the journal, or the
// loss of one of them, costs nothing.
func TestJournalHalfDamaged(t *testing.T) {
	mem := recordStore(t)
	check := func(fsys *vfs.MemFS, what string) {
		t.Helper()
		s := mustOpen(t, "s", Options{FS: fsys})
		defer mustClose(t, s)
		if records, panes := recordsOf(t, s); records != recordsWant || fmt.Sprint(panes) != "[0 1 2 4]" {
			t.Errorf("%s: %s, panes %v", what, records, panes)
		}
	}
	check(mem, "nothing")
	for _, name := range journalFiles {
		name = "s/" + name
		data, err := mem.UnsafeGetFileDataBuffer(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(data); at += 5 {
			check(flipped(t, mem, name, at), fmt.Sprint(name, " at ", at))
		}
		gone := flipped(t, mem, name, 0)
		if err := gone.Remove(name); err != nil {
			t.Fatal(err)
		}
		check(gone, name+" gone")
	}
}

// Damage of the same record in both files costs that record only, and is
// reported until the record is written again; of a log, not even that, and
// never what the log holds.
func TestJournalDamaged(t *testing.T) {
	mem := recordStore(t)
	// both flips a byte of the first such entry, at an offset from its key.
	both := func(t *testing.T, typ byte, key string, offset int) *vfs.MemFS {
		out := vfs.NewMem()
		if _, err := vfs.Clone(mem, out, "s", "s"); err != nil {
			t.Fatal(err)
		}
		for _, name := range journalFiles {
			data, err := out.UnsafeGetFileDataBuffer("s/" + name)
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			for data[i] != typ || !strings.HasPrefix(string(data[i+entryHeader:]), key) {
				i += 8
			}
			data[i+entryHeader+offset] ^= 1
		}
		return out
	}
	log2 := string(binary.BigEndian.AppendUint64(nil, 2))
	for _, tt := range []struct {
		name   string
		typ    byte
		key    string
		offset int
		want   string
	}{
		{"value", 'P', "b", 1, "a=a 0 b=! d=d 4 e=e 5"},
		{"key", 'P', "b", 0, "a=a 0 d=d 4 e=e 5 !"},
		{"value that was replaced", 'P', "d", 1, recordsWant},
		{"log", 'L', log2, 0, recordsWant + " !"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := both(t, tt.typ, tt.key, tt.offset)
			for range 3 { // the damage is not forgotten
				s := mustOpen(t, "s", Options{FS: fsys})
				records, panes := recordsOf(t, s)
				if records != tt.want || fmt.Sprint(panes) != "[0 1 2 4]" {
					t.Errorf("%s, panes %v; want %s", records, panes, tt.want)
				}
				for _, pane := range panes {
					if l, err := s.Log(pane); err != nil {
						t.Error(err)
					} else if frames := readFrom(t, l, Pos{}); len(frames) != 1 || string(frames[0].Data) != string(numbered(pane, 0)) {
						t.Errorf("pane %d holds %v", pane, frames)
					}
				}
				mustClose(t, s)
			}
			s := mustOpen(t, "s", Options{FS: fsys})
			defer mustClose(t, s)
			if err := s.Put("b", []byte("b 1")); err != nil {
				t.Fatal(err)
			}
			if records, _ := recordsOf(t, s); strings.TrimSuffix(records, " !") != recordsWant {
				t.Errorf("written again: %s", records)
			}
		})
	}
}

// The journal is no longer than a multiple of what it comes to, and is the same
// after it was written anew.
func TestJournalGrowth(t *testing.T) {
	mem := vfs.NewMem()
	s := mustOpen(t, "s", Options{FS: mem})
	for i := range 3000 {
		if err := s.Put(fmt.Sprint("k", i%7), fmt.Appendf(nil, "%0200d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range journalFiles {
		data, err := mem.UnsafeGetFileDataBuffer("s/" + name)
		if err != nil || len(data) > 100<<10 {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	before, _ := recordsOf(t, s)
	mustClose(t, s)
	s = mustOpen(t, "s", Options{FS: mem})
	defer mustClose(t, s)
	if after, _ := recordsOf(t, s); after != before || strings.Count(after, "=") != 7 {
		t.Errorf("%s\nbecame %s", before, after)
	}
}

// A crash at any write, sync or rename of the journal leaves every record that
// was acknowledged, and no damage.
func TestJournalCrash(t *testing.T) {
	t.Parallel()
	for skip := 0; ; skip++ {
		mem := vfs.NewCrashableMem()
		faults := NewFaults(mem)
		s := mustOpen(t, "s", Options{FS: faults.FS()})
		faults.Add(Fault{Op: FaultWrite | FaultSync | FaultCreate, Path: "[rs]*", Skip: skip, Err: errors.New("pulled")})
		acked := -1
		for i := range 400 {
			if s.Put("k", fmt.Appendf(nil, "%0500d", i)) != nil {
				break
			}
			acked = i
		}
		for _, percent := range []int{0, 30, 100} {
			img := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rngFor(uint64(skip))})
			c := mustOpen(t, "s", Options{FS: img})
			records, _ := recordsOf(t, c)
			got := -1
			if records != "" {
				if _, err := fmt.Sscanf(records, "k=%d", &got); err != nil {
					t.Fatalf("skip %d: %s", skip, records)
				}
			}
			if got < acked || got > acked+1 {
				t.Errorf("skip %d, %d %%: %d after %d was acknowledged", skip, percent, got, acked)
			}
			mustClose(t, c)
		}
		failed := faults.Failed()
		faults.Clear()
		_ = s.Close()
		if failed == 0 {
			if skip < 800 {
				t.Errorf("only %d operations", skip)
			}
			return
		}
		if skip > 20 && skip < 500 || skip > 620 {
			skip += 37 // and all those where it is written anew
		}
	}
}
