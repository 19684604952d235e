package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// dirSum is everything in dir, to see that nothing was touched.
func dirSum(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path + "\n")
		if !d.IsDir() {
			data, err := os.ReadFile(path)
			b.Write(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestOpenRefuses(t *testing.T) {
	made := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "s")
		mustClose(t, mustOpen(t, dir, Options{}))
		return dir
	}
	write := func(t *testing.T, name, data string) {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	header := func(t *testing.T, dir string, change func(b []byte) []byte) {
		name := filepath.Join(dir, headerFile)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, string(change(b)))
	}
	tests := []struct {
		name string
		prep func(t *testing.T) string
		want error // nil is *DamagedError
	}{
		{"foreign files", func(t *testing.T) string {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "thesis.txt"), "x")
			return dir
		}, ErrNotStore},
		{"foreign database", func(t *testing.T) string {
			dir := t.TempDir()
			db, err := pebble.Open(filepath.Join(dir, dbDir), &pebble.Options{FS: vfs.Default, Logger: pebbleLogger{&Store{opts: Options{Logger: quiet}}}})
			if err != nil {
				t.Fatal(err)
			}
			db.Close()
			return dir
		}, ErrNotStore},
		{"a file", func(t *testing.T) string {
			name := filepath.Join(t.TempDir(), "f")
			write(t, name, "x")
			return name
		}, ErrNotStore},
		{"other magic", func(t *testing.T) string {
			dir := made(t)
			header(t, dir, func(b []byte) []byte { b[0] = 'L'; return b })
			return dir
		}, ErrNotStore},
		{"newer version", func(t *testing.T) string {
			dir := made(t)
			header(t, dir, func(b []byte) []byte { return append(b[:8], 2, 0, 0, 0, 'n', 'e', 'w') })
			return dir
		}, ErrNewerVersion},
		{"newer database", func(t *testing.T) string {
			dir := made(t)
			write(t, filepath.Join(dir, dbDir, "marker.format-version.000099.999"), "")
			return dir
		}, ErrNewerVersion},
		{"damaged header", func(t *testing.T) string {
			dir := made(t)
			header(t, dir, func(b []byte) []byte { b[20] ^= 1; return b })
			return dir
		}, nil},
		{"short header", func(t *testing.T) string {
			dir := made(t)
			header(t, dir, func(b []byte) []byte { return b[:20] })
			return dir
		}, nil},
		{"database gone", func(t *testing.T) string {
			dir := made(t)
			if err := os.RemoveAll(filepath.Join(dir, dbDir)); err != nil {
				t.Fatal(err)
			}
			return dir
		}, nil},
		{"database of another", func(t *testing.T) string {
			dir, other := made(t), made(t)
			if err := os.Rename(filepath.Join(other, headerFile), filepath.Join(dir, headerFile)); err != nil {
				t.Fatal(err)
			}
			return dir
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.prep(t)
			before := dirSum(t, dir)
			s, err := Open(dir, Options{Logger: quiet, Ballast: -1})
			if err == nil {
				mustClose(t, s)
				t.Fatal("opened")
			}
			var damaged *DamagedError
			if tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && !errors.As(err, &damaged) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if tt.want != nil && dirSum(t, dir) != before {
				t.Error("the directory was touched")
			}
		})
	}
}

func TestOpenLocked(t *testing.T) {
	dir := t.TempDir() // empty and there: fine
	s := mustOpen(t, dir, Options{})
	if _, err := Open(dir, Options{Logger: quiet, Ballast: -1}); !errors.Is(err, ErrLocked) {
		t.Errorf("second Open: %v", err)
	}
	mustClose(t, s)
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	mustClose(t, mustOpen(t, dir, Options{}))
}

// A first start that was cut off anywhere is finished by the next.
func TestOpenFinishesCreation(t *testing.T) {
	for skip := 0; ; skip++ {
		mem := vfs.NewMem()
		f := NewFaults(mem)
		f.Add(Fault{Op: FaultCreate | FaultSync | FaultWrite, Skip: skip, Err: errors.New("pulled")})
		s, err := Open("s", Options{FS: f.FS(), Logger: quiet, Ballast: -1})
		if err == nil {
			err = s.Close()
		}
		if err == nil {
			if skip < 10 {
				t.Errorf("only %d operations", skip)
			}
			return
		}
		// As the process would be gone, so is its lock.
		fresh := vfs.NewMem()
		if _, err := vfs.Clone(mem, fresh, "s", "s"); err != nil && skip > 3 {
			t.Fatal(err)
		}
		s = mustOpen(t, "s", Options{FS: fresh})
		mustClose(t, s)
	}
}

func TestLogErrors(t *testing.T) {
	s := mustOpen(t, "s", Options{FS: MemFS()})
	defer mustClose(t, s)
	if _, err := s.Log(1); !errors.Is(err, ErrNoLog) {
		t.Error(err)
	}
	if err := s.Remove(1); !errors.Is(err, ErrNoLog) {
		t.Error(err)
	}
	if _, err := s.Get("nothing"); !errors.Is(err, ErrNoRecord) {
		t.Error(err)
	}
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(1); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if _, err := l.Checkpoint(Pos{}); !errors.Is(err, ErrNoCheckpoint) {
		t.Error(err)
	}
	for i, f := range []func(){
		func() { l.Append(Output, Time{}, []byte("x")) },
		func() { l.AppendGap(Time{}, 1, nil) },
		func() { l.AppendCheckpoint(nil, false) },
		func() { l.AppendCheckpoint(nil, true); l.Append(0, Time{}, nil) },
		func() { l.Append(Gap, Time{}, nil) },
		func() { l.Append(Output, Time{}, make([]byte, MaxFrame+1)) },
		func() { l.AppendGap(Time{}, 5, []byte("why")); l.Append(Output, Time{}, []byte("x")) },
		func() { l.AppendCheckpoint(nil, false) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d: no panic", i)
				}
			}()
			f()
		}()
	}
	if _, err := l.Read(Pos{0, 7}); err != nil {
		t.Error(err)
	} else if r, _ := l.Read(Pos{3, 0}); r != nil {
		if _, err := r.Next(); !errors.Is(err, ErrPosition) {
			t.Error(err)
		}
	}
	mustSync(t, l)
	if err := s.Remove(1); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Read(Pos{}); !errors.Is(err, ErrEvicted) {
		t.Error(r, err)
	}
	l.Append(Output, Time{}, []byte("ignored"))
	if _, err := s.Log(1); !errors.Is(err, ErrNoLog) {
		t.Error(err)
	}
	if l, err = s.Create(1); err != nil || l.End() != (Pos{}) || !l.NeedsFull() {
		t.Error("created again:", err)
	}
}

func TestRecords(t *testing.T) {
	fsys := MemFS()
	s := mustOpen(t, "s", Options{FS: fsys})
	for _, k := range []string{"b/2", "a", "b/1", "c", "b"} {
		if err := s.Put(k, []byte("v"+k)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete("b/2"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = mustOpen(t, "s", Options{FS: fsys})
	defer mustClose(t, s)
	var got []string
	for r, err := range s.Scan("b") {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Value, []byte("v"+r.Key)) {
			t.Errorf("%q: %q", r.Key, r.Value)
		}
		got = append(got, r.Key)
	}
	if strings.Join(got, " ") != "b b/1" {
		t.Errorf("Scan: %q", got)
	}
}

// Close leaves nothing running and nothing open.
func TestNoLeaks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	count := func() (goroutines, files int) {
		d, _ := os.ReadDir("/proc/self/fd")
		return runtime.NumGoroutine(), len(d)
	}
	run := func() {
		s := mustOpen(t, dir, Options{})
		l, err := s.Log(1)
		if errors.Is(err, ErrNoLog) {
			l, err = s.Create(1)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.AppendCheckpoint([]byte("cp"), true)
		for range 100 {
			l.Append(Output, Time{}, bytes.Repeat([]byte("line of text\n"), 2000))
		}
		r, err := l.Read(Pos{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != nil { // and is not closed
			t.Fatal(err)
		}
		mustClose(t, s)
		if err := l.Sync(t.Context()); err != nil {
			t.Errorf("Sync of what Close made durable: %v", err)
		}
		if _, err := s.Get("x"); !errors.Is(err, ErrClosed) {
			t.Errorf("Get: %v", err)
		}
		if err := s.Put("x", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Put: %v", err)
		}
	}
	run()
	g0, f0 := count()
	for range 5 {
		run()
	}
	for range 100 {
		if g, f := count(); g <= g0 && f <= f0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	g, f := count()
	buf := make([]byte, 1<<20)
	t.Errorf("goroutines %d -> %d, files %d -> %d\n%s", g0, g, f0, f, buf[:runtime.Stack(buf, true)])
}
