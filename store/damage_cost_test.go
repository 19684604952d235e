package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// seqStore is a store as the daemon leaves it behind: the records of a session
// and two windows, a pane that printed the numbers up to 100000 and one that
// printed a word, closed in good order. It returns what they printed.
func seqStore(t *testing.T) (*vfs.MemFS, [][]byte) {
	t.Helper()
	mem := vfs.NewMem()
	s := mustOpen(t, "s", Options{FS: mem})
	var numbers bytes.Buffer
	for n := range 100000 {
		fmt.Fprintf(&numbers, "%d\r\n", n+1)
	}
	printed := [][]byte{numbers.Bytes(), []byte("hello\r\n")}
	put := func(key string) {
		if err := s.Put(key, []byte(`{"name":"`+key+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	put("session/0")
	for pane, out := range printed {
		put(fmt.Sprint("window/", pane))
		l, err := s.Create(uint64(pane))
		if err != nil {
			t.Fatal(err)
		}
		l.AppendCheckpoint([]byte("full"), true)
		for i := int64(0); len(out) > 0; i++ {
			n := min(len(out), 4095)
			l.Append(Output, Time{i, i}, out[:n])
			out = out[n:]
		}
		l.AppendCheckpoint(words(rngFor(7), 5000), false)
		mustSync(t, l)
	}
	mustClose(t, s)
	return mem, printed
}

// flipped is a copy of a store in which one byte of a file is another one.
func flipped(t *testing.T, mem *vfs.MemFS, name string, at int) *vfs.MemFS {
	t.Helper()
	out := vfs.NewMem()
	if ok, err := vfs.Clone(mem, out, "s", "s"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	data, err := out.UnsafeGetFileDataBuffer(name)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 0x10
	return out
}

// tables are the files of the database with log content, and how long they are.
func tables(t *testing.T, mem *vfs.MemFS) map[string]int {
	t.Helper()
	names, err := mem.List("s/db")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int)
	for _, name := range names {
		if name = "s/db/" + name; isTable(mem, name) {
			data, err := mem.UnsafeGetFileDataBuffer(name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = len(data)
		}
	}
	return out
}

// readPast reads a pane's log to its end and checks that what it gets is what
// was printed there, less what is damaged.
func readPast(t *testing.T, l *Log, printed []byte) (got, damage int) {
	t.Helper()
	r, err := l.Read(Pos{Offset: l.Oldest()})
	if err != nil {
		t.Fatal(err)
	}
	for damage < 100 {
		f, err := r.Next()
		var d *DamagedError
		switch {
		case errors.Is(err, io.EOF):
			return got, damage
		case errors.As(err, &d):
			damage++
		case err != nil:
			t.Fatal(err)
		case !bytes.HasPrefix(printed[f.Offset:], f.Data):
			t.Fatalf("frame at %d was never written", f.Offset)
		default:
			got += len(f.Data)
		}
	}
	t.Fatal("no end of damage")
	return 0, 0
}

// A damaged block costs about what a good one does, in time, in reads and in
// lines of the log, and it costs its own part of the store only: the store is
// opened, and all records are there.
func TestDamageIsCheap(t *testing.T) {
	mem, printed := seqStore(t)
	for name, size := range tables(t, mem) {
		for _, part := range []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999} {
			t.Run(fmt.Sprint(mem.PathBase(name), "/", part), func(t *testing.T) {
				faults := NewFaults(flipped(t, mem, name, int(part*float64(size))))
				const never = 1 << 40
				faults.Add(Fault{Op: FaultRead, Path: "*.sst", Skip: never})
				var said bytes.Buffer
				start := time.Now()
				s := mustOpen(t, "s", Options{FS: faults.FS(), Logger: slog.New(slog.NewTextHandler(&said, nil))})
				n := 0
				for r, err := range s.Scan("") {
					if err != nil || !strings.Contains(string(r.Value), r.Key) {
						t.Error(r, err)
					}
					n++
				}
				if n != 3 {
					t.Errorf("%d records", n)
				}
				got, damaged := 0, 0
				for pane, out := range printed {
					l, err := s.Log(uint64(pane))
					var d *DamagedError
					if errors.As(err, &d) {
						damaged++
						continue
					} else if err != nil {
						t.Fatal(err)
					}
					n, damage := readPast(t, l, out)
					got, damaged = got+n, damaged+damage
				}
				elapsed := time.Since(start)
				faults.mu.Lock()
				reads := never - faults.rules[0].Skip
				faults.mu.Unlock()
				t.Logf("%v, %d reads, %d bytes, %d damaged", elapsed, reads, got, damaged)
				if elapsed > 3*time.Second || reads > 1000 {
					t.Errorf("it took %v and %d reads", elapsed, reads)
				}
				// What is behind 0.95 is the index of the table.
				if all := len(printed[0]) + len(printed[1]); part < 0.95 && got < all/3 || got < all && damaged == 0 {
					t.Errorf("%d of %d bytes, %d damaged", got, all, damaged)
				}
				s.reports.Wait()
				if n := strings.Count(said.String(), "damaged table"); n > 1 {
					t.Errorf("%d lines of log", n)
				}
				if strings.Contains(said.String(), ".go:") {
					t.Error("a stack trace in the log")
				}
				mustClose(t, s)
			})
		}
	}
}

// A log is removed and the store opened again whatever is damaged.
func TestRemoveDamaged(t *testing.T) {
	mem, _ := seqStore(t)
	for name, size := range tables(t, mem) {
		for _, part := range []float64{0, 0.5, 0.97, 0.99, 0.999} {
			fsys := flipped(t, mem, name, int(part*float64(size)))
			s := mustOpen(t, "s", Options{FS: fsys})
			err := s.Remove(0)
			mustClose(t, s)
			s = mustOpen(t, "s", Options{FS: fsys})
			if _, err := s.Log(0); !errors.Is(err, ErrNoLog) {
				t.Errorf("%s at %v: %v", name, part, err)
			}
			if err != nil {
				t.Logf("%s at %v: Remove: %v", name, part, firstLine(err))
			}
			mustClose(t, s)
		}
	}
}
