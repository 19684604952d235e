package store

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// feed appends and syncs until stop; it returns what the log must hold.
func newFed(t *testing.T, fsys vfs.FS, o Options) (*Store, *Log, *model) {
	t.Helper()
	o.FS = fsys
	s := mustOpen(t, "s", o)
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{pane: 1}
	m.checkpoint(l, []byte("start"), true)
	return s, l, m
}

func (m *model) output(l *Log, data []byte) {
	t := Time{int64(len(m.frames)), int64(len(m.frames))}
	f := Frame{Pos: m.end, Kind: Output, Time: t, Data: data}
	m.add(f, l.Append(Output, t, data))
}

// A full disk: appends and reads go on, nothing becomes durable, the store
// has not failed; once there is space, it goes on by itself.
func TestDiskFull(t *testing.T) {
	for _, path := range []string{"*.log", "*.sst", "MANIFEST-*", ""} {
		t.Run("path="+path, func(t *testing.T) {
			mem := vfs.NewMem()
			faults := NewFaults(mem)
			s, l, m := newFed(t, faults.FS(), Options{MemTable: 64 << 10, Pace: -1})
			for range 20 {
				m.output(l, words(rngFor(1), 5000))
			}
			mustSync(t, l)
			faults.Add(Fault{Op: FaultFull, Path: path})
			for i := range uint64(100) {
				m.output(l, words(rngFor(i), 9000))
			}
			for deadline := time.Now().Add(10 * time.Second); faults.Failed() < 3; {
				if time.Now().After(deadline) {
					t.Fatal("the disk was never found full")
				}
				time.Sleep(5 * time.Millisecond)
			}
			if s.Stats().FullSince == 0 {
				t.Error("FullSince is not set")
			}
			if err := s.Err(); err != nil {
				t.Fatalf("failed: %v", err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if err := l.Sync(ctx); path == "*.log" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Sync on a full disk: %v", err)
			}
			if err := m.verify(l, 0, true); err != nil { // reading goes on
				t.Fatal(err)
			}
			faults.Clear()
			mustSync(t, l)
			if err := m.verify(l, m.end.Offset, true); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			s = mustOpen(t, "s", Options{FS: mem})
			defer mustClose(t, s)
			if l, err := s.Log(1); err != nil {
				t.Fatal(err)
			} else if err := m.verify(l, m.end.Offset, true); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Too many open files: what cannot be opened waits until it can.
func TestTooManyFiles(t *testing.T) {
	for _, path := range []string{"*.log", "*.sst", "MANIFEST-*", ""} {
		t.Run("path="+path, func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewMem()
			faults := NewFaults(mem)
			s, l, m := newFed(t, faults.FS(), Options{MemTable: 64 << 10, Pace: -1, Tables: 8})
			mustSync(t, l)
			faults.Add(Fault{Op: FaultCreate | FaultOpen, Path: path, Err: syscall.EMFILE, Count: 4})
			for i := range uint64(100) {
				m.output(l, words(rngFor(i), 9000))
				if i%10 == 0 {
					m.checkpoint(l, words(rngFor(i), 9000), true)
				}
			}
			mustSync(t, l)
			if err := s.db.Flush(); err != nil { // a new manifest comes with a new table only
				t.Fatal(err)
			}
			if err := m.verify(l, m.end.Offset, true); err != nil {
				t.Fatal(err)
			}
			if faults.Failed() == 0 && path != "MANIFEST-*" {
				t.Error("nothing was refused: the test tests nothing")
			}
			if s.Err() != nil || s.Stats().FullSince != 0 {
				t.Errorf("%v, full since %d", s.Err(), s.Stats().FullSince)
			}
			mustClose(t, s)

			// Whoever reads does not wait for ever, and is told of no damage.
			s = mustOpen(t, "s", Options{FS: faults.FS(), Tables: 8, EvictPace: time.Hour})
			defer mustClose(t, s)
			forgetTables(t, s)
			faults.Add(Fault{Op: FaultOpen, Path: "*.sst", Err: syscall.EMFILE})
			l, err := s.Log(1)
			if err == nil {
				err = m.verify(l, m.end.Offset, true)
			}
			if faults.Failed() > 0 && !errors.Is(err, syscall.EMFILE) {
				t.Errorf("with no table to be opened: %v", err)
			}
			faults.Clear()
			if l, err = s.Log(1); err != nil {
				t.Fatal(err)
			}
			if err := m.verify(l, m.end.Offset, true); err != nil {
				t.Error(err)
			}
		})
	}
}

// forgetTables opens the database of s anew, with no table open. Nobody else uses it.
func forgetTables(t *testing.T, s *Store) {
	t.Helper()
	if err := errors.Join(s.closeTables(), s.openOnce(stateReady)); err != nil {
		t.Fatal(err)
	}
}

// Close on a full disk does not hang.
func TestCloseOnFullDisk(t *testing.T) {
	t.Parallel()
	faults := NewFaults(vfs.NewMem())
	s, l, m := newFed(t, faults.FS(), Options{})
	mustSync(t, l)
	faults.Add(Fault{Op: FaultFull})
	m.output(l, []byte("lost"))
	start := time.Now()
	if err := s.Close(); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("Close took %v", d)
	}
}

// Any other failure ends the store: nothing is acknowledged after it, the
// process goes on, reading too, Close returns, and the next process finds all
// that was durable.
func TestDiskFails(t *testing.T) {
	for _, f := range []Fault{
		{Op: FaultSync, Path: "*.log", Err: syscall.EIO},
		{Op: FaultSync, Path: "*.log", Err: syscall.EIO, Count: 1}, // and then works again
		{Op: FaultSync, Path: "*.log", Err: syscall.ENOSPC, Count: 1},
		{Op: FaultWrite, Path: "*.log", Err: syscall.EIO, Count: 1},
		{Op: FaultWrite, Path: "*.sst", Err: syscall.EIO, Count: 1},
		{Op: FaultCreate, Path: "*.log", Err: syscall.EIO, Count: 1},
		{Op: FaultSync, Path: "MANIFEST-*", Err: syscall.EIO, Count: 1},
		{Op: FaultSync, Path: "db", Err: syscall.EIO, Count: 1},
	} {
		t.Run(f.Path, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			faults := NewFaults(mem)
			s, l, m := newFed(t, faults.FS(), Options{MemTable: 64 << 10, Pace: -1})
			for range 10 {
				m.output(l, words(rngFor(1), 5000))
			}
			mustSync(t, l)
			faults.Add(f)
			var err error
			for i := uint64(0); err == nil && i < 1000; i++ {
				m.output(l, words(rngFor(i), 9000))
				err = l.Sync(context.Background())
			}
			if !errors.Is(err, ErrFailed) || !errors.Is(err, f.Err) {
				t.Fatalf("Sync: %v", err)
			}
			durable := l.Durable()
			if l.Room() > 0 {
				t.Error("a failed store has room")
			}
			if err := s.Put("x", nil); !errors.Is(err, ErrFailed) {
				t.Errorf("Put: %v", err)
			}
			if err := m.verify(l, durable, true); err != nil {
				t.Errorf("reading: %v", err)
			}
			if l.Durable() != durable {
				t.Error("durable moved on")
			}
			if err := s.Close(); !errors.Is(err, ErrFailed) {
				t.Errorf("Close: %v", err)
			}
			for _, percent := range []int{0, 100} {
				img := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rngFor(3)})
				s := mustOpen(t, "s", Options{FS: img})
				if l, err := s.Log(1); err != nil {
					t.Error(err)
				} else if err := m.verify(l, durable, false); err != nil {
					t.Error(err)
				}
				mustClose(t, s)
			}
		})
	}
}

// Files have their mode from the moment they exist: the fault file system sees
// each before anything is written.
func TestModesOnDisk(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "a", "s")
	s := mustOpen(t, dir, Options{MemTable: 64 << 10})
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	l.AppendCheckpoint(nil, true)
	for i := range uint64(100) {
		l.Append(Output, Time{}, words(rngFor(i), 9000))
		mustSync(t, l)
	}
	checkModes(t, dir)
	mustClose(t, s)
	checkModes(t, dir)
}

// On a full disk a store opens for reading, and says that it cannot write.
func TestReadOnlyOnFullDisk(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	s, l, m := newFed(t, mem, Options{})
	for i := range uint64(20) {
		m.output(l, words(rngFor(i), 9000))
	}
	mustClose(t, s)
	faults := NewFaults(mem)
	faults.Add(Fault{Op: FaultFull | FaultRemove})
	if s, err := Open("s", Options{FS: faults.FS(), Logger: quiet, Ballast: -1}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(s, err)
	}
	// The process that could not open it is gone, and its lock.
	left := vfs.NewMem()
	if _, err := vfs.Clone(mem, left, "s", "s"); err != nil {
		t.Fatal(err)
	}
	faults = NewFaults(left)
	faults.Add(Fault{Op: FaultFull | FaultRemove, Path: "[!L]*"}) // the lock is a file that is there
	s = mustOpen(t, "s", Options{FS: faults.FS(), ReadOnly: true})
	defer mustClose(t, s)
	if l, err := s.Log(1); err != nil {
		t.Error(err)
	} else if err := m.verify(l, m.end.Offset, true); err != nil {
		t.Error(err)
	} else if l.Room() > 0 {
		t.Error("there is room")
	}
	if err := s.Put("x", nil); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	if _, err := s.Create(2); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
}
