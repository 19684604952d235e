package store

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A file system smaller than the ballast and the logs that Pebble would set
// aside: full, the store cannot be made and says so; emptied, it records.
func TestTinyDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("only root can mount a small file system: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	fill := filepath.Join(disk, "fill")
	if err := os.WriteFile(fill, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	dir := filepath.Join(disk, "s")
	if s, err := Open(dir, Options{Logger: quiet}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(s, err)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	for round := range uint64(3) {
		s, err := Open(dir, Options{Logger: quiet})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if s.Stats().FullSince != 0 {
			t.Error("a tiny disk is not a full one")
		}
		l, err := s.Create(round)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{pane: round}
		m.checkpoint(l, []byte("start"), true)
		for i := range uint64(20) {
			m.output(l, words(rngFor(i), 9000))
			mustSync(t, l)
		}
		if err := m.verify(l, m.end.Offset, true); err != nil {
			t.Error(err)
		}
		mustClose(t, s)
	}
}

// Where there was no room for the ballast, it is taken later.
func TestBallastLater(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	faults := NewFaults(mem)
	faults.Add(Fault{Op: FaultCreate, Path: ballastFile})
	s, l, m := newFed(t, faults.FS(), Options{Ballast: 1 << 20, EvictPace: 5 * time.Millisecond})
	defer mustClose(t, s)
	m.output(l, []byte("goes on without"))
	mustSync(t, l)
	if s.Stats().FullSince != 0 || s.fs.ballastBytes() != 0 {
		t.Error("it has a ballast")
	}
	faults.Clear()
	for deadline := time.Now().Add(10 * time.Second); s.fs.ballastBytes() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it takes no ballast")
		}
	}
}
