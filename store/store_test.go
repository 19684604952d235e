package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// quiet is a logger for stores that are made to complain.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func mustOpen(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet
	}
	if o.Ballast == 0 {
		o.Ballast = -1 // 8 MiB a store would be most of the work of a test
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func mustSync(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Sync(context.Background()); err != nil {
		t.Fatalf("Sync: %v", err)
	}
}

// mustCommit waits until what was appended is durable, but not until it is synced.
func mustCommit(t testing.TB, l *Log) {
	t.Helper()
	l.mu.Lock()
	target := l.pending.total
	l.mu.Unlock()
	if err := l.commit(context.Background(), target); err != nil {
		t.Fatal(err)
	}
}

// readAll reads frames from r to the end, with data of their own.
func readAll(t testing.TB, r *Reader) []Frame {
	t.Helper()
	var out []Frame
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("Next at %v: %v", r.At(), err)
		}
		f.Data = bytes.Clone(f.Data)
		out = append(out, f)
	}
}

func readFrom(t testing.TB, l *Log, p Pos) []Frame {
	t.Helper()
	r, err := l.Read(p)
	if err != nil {
		t.Fatalf("Read(%v): %v", p, err)
	}
	defer r.Close()
	return readAll(t, r)
}

func TestPlain(t *testing.T) {
	for _, disk := range []bool{false, true} {
		t.Run(fmt.Sprintf("disk=%v", disk), func(t *testing.T) {
			dir, o := "store", Options{FS: MemFS()}
			if disk {
				dir, o = filepath.Join(t.TempDir(), "store"), Options{}
			}
			s := mustOpen(t, dir, o)
			id := s.ID()
			l, err := s.Create(7)
			if err != nil {
				t.Fatal(err)
			}
			if !l.NeedsFull() {
				t.Error("a new log wants no full checkpoint")
			}
			l.AppendCheckpoint([]byte("full at 0"), true)
			l.Append(Output, Time{100, 10}, []byte("hello "))
			l.Append(3, Time{200, 20}, []byte("resize"))
			l.Append(Output, Time{300, 30}, []byte("world\n"))
			at := l.AppendCheckpoint([]byte("delta at 12"), false)
			if want := (Pos{12, 3}); at != want {
				t.Errorf("delta at %v, want %v", at, want)
			}
			l.Append(Output, Time{400, 40}, []byte("more"))
			want := []Frame{
				{Pos{0, 0}, Output, Time{100, 10}, 0, []byte("hello ")},
				{Pos{6, 1}, 3, Time{200, 20}, 0, []byte("resize")},
				{Pos{6, 2}, Output, Time{300, 30}, 0, []byte("world\n")},
				{Pos{12, 3}, Output, Time{400, 40}, 0, []byte("more")},
			}
			check := func(when string, l *Log) {
				t.Helper()
				if got := readFrom(t, l, Pos{}); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: read %v, want %v", when, got, want)
				}
				if got := readFrom(t, l, Pos{6, 2}); fmt.Sprint(got) != fmt.Sprint(want[2:]) {
					t.Errorf("%s: read from 2 %v, want %v", when, got, want[2:])
				}
				for off, i := range map[uint64]int{0: 0, 5: 0, 6: 1, 7: 2, 11: 2, 12: 3, 15: 3, 16: 4} {
					r, err := l.ReadOffset(off)
					if err != nil {
						t.Fatal(err)
					}
					if got := readAll(t, r); fmt.Sprint(got) != fmt.Sprint(want[i:]) {
						t.Errorf("%s: ReadOffset(%d) %v, want %v", when, off, got, want[i:])
					}
				}
				if got := l.End(); got != (Pos{16, 4}) {
					t.Errorf("%s: end %v", when, got)
				}
				for p, want := range map[Pos]string{{0, 0}: "full at 0", {6, 2}: "full at 0", {12, 3}: "delta at 12", {16, 4}: "delta at 12"} {
					cp, err := l.Checkpoint(p)
					if err != nil || string(cp.Blob) != want {
						t.Errorf("%s: checkpoint at %v: %q %v, want %q", when, p, cp.Blob, err, want)
					}
				}
				cp, err := l.FullCheckpoint(Pos{16, 4})
				if err != nil || string(cp.Blob) != "full at 0" || !cp.Full {
					t.Errorf("%s: full checkpoint %v %v", when, cp, err)
				}
				n := 0
				for cp, err := range l.Checkpoints(Pos{}) {
					if err != nil || cp.Full != (n == 0) {
						t.Errorf("%s: walk: %v %v", when, cp, err)
					}
					n++
				}
				if n != 2 {
					t.Errorf("%s: %d checkpoints", when, n)
				}
			}
			check("pending", l)
			mustSync(t, l)
			if l.Durable() != 16 {
				t.Errorf("durable %d after Sync", l.Durable())
			}
			check("durable", l)
			if err := s.Put("pane/7", []byte("x")); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			s = mustOpen(t, dir, o)
			defer mustClose(t, s)
			if s.ID() != id {
				t.Error("id changed")
			}
			if l, err = s.Log(7); err != nil {
				t.Fatal(err)
			}
			if l.NeedsFull() {
				t.Error("a log that ended well wants a full checkpoint")
			}
			check("reopened", l)
			if v, err := s.Get("pane/7"); err != nil || string(v) != "x" {
				t.Errorf("Get: %q %v", v, err)
			}
			if disk {
				checkModes(t, dir)
			}
		})
	}
}

// checkModes fails for every file that others may look into.
func checkModes(t *testing.T, dir string) {
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		want := os.FileMode(filePerm)
		if info.IsDir() {
			want = dirPerm
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
