package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of so many MiB.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	return disk
}

// fillUp takes what a disk has left but for a MiB, at once: the rest, and the ballast
// that is given up then, are the store's.
func fillUp(t *testing.T, disk string) (file string) {
	t.Helper()
	file = filepath.Join(disk, "fill")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	until(t, "filled up", func() bool {
		u, err := DiskFS().GetDiskUsage(disk)
		if err != nil {
			t.Fatal(err)
		}
		return unix.Fallocate(int(f.Fd()), 0, 0, int64(u.AvailBytes)-1<<20) == nil
	})
	return file
}

// until polls for ok.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not %s", what)
		}
	}
}

// noiseAt is the frame of a flood at an offset of the log of a pane.
func noiseAt(pane, off uint64) []byte { return noise(rngFor(pane<<40|off), 32<<10) }

// flooded is a log to which a goroutine appends as much as there is room for.
type flooded struct {
	*Log
	stop func() // ends that
}

// floods makes n logs and appends noise to each, with a full checkpoint before each MiB.
func floods(t *testing.T, s *Store, n int) (logs []flooded) {
	t.Helper()
	for pane := range uint64(n) {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { defer close(done); flood(l, stop) }()
		f := flooded{l, sync.OnceFunc(func() { close(stop); <-done })}
		t.Cleanup(f.stop)
		logs = append(logs, f)
	}
	return logs
}

// flood ends when stop is closed.
func flood(l *Log, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if l.Room() <= 0 {
			select {
			case <-l.RoomC():
			case <-stop:
			}
			continue
		}
		off := l.End().Offset
		if off%(1<<20) == 0 {
			l.AppendCheckpoint([]byte("full"), true)
		}
		l.Append(Output, Time{}, noiseAt(l.pane, off))
	}
}

// checkNoise reads all that a log retains.
func checkNoise(t *testing.T, l *Log) {
	t.Helper()
	var r *Reader
	var err error
	for at, begun := uint64(0), false; ; {
		if !begun {
			at, begun = l.Oldest(), true
			r, err = l.ReadOffset(at)
		}
		var f Frame
		if err == nil {
			f, err = r.Next()
		}
		switch {
		case errors.Is(err, ErrEvicted): // a pass that had begun
			begun = false
		case errors.Is(err, io.EOF):
			if at != l.End().Offset {
				t.Errorf("pane %d ends at %d, not %d", l.pane, at, l.End().Offset)
			}
			return
		case err != nil || f.Pos.Offset != at || !bytes.Equal(f.Data, noiseAt(l.pane, at)):
			t.Fatalf("pane %d at %d: the frame is that at %d, %v", l.pane, at, f.Pos.Offset, err)
		default:
			at += uint64(len(f.Data))
		}
	}
}

// A full disk takes the removal of logs, one after the other, whatever all of them have
// in flight, and has the space again.
func TestRemoveOnFullDisk(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 8} {
		for _, filled := range []bool{false, true} {
			t.Run(fmt.Sprintf("logs=%d,filled=%v", n, filled), func(t *testing.T) {
				t.Parallel()
				disk := smallDisk(t, 64)
				s := mustOpen(t, filepath.Join(disk, "s"), Options{Ballast: defaultBallast, EvictPace: 50 * time.Millisecond})
				logs := floods(t, s, n)
				fill := ""
				if filled {
					until(t, "recording", func() bool { return s.DiskBytes() > 24<<20 })
					fill = fillUp(t, disk)
				}
				until(t, "full", func() bool { return s.Stats().FullSince != 0 })
				for _, l := range logs {
					until(t, "out of room", func() bool { return l.Room() <= 0 })
				}
				for _, l := range logs {
					l.stop()
					done := s.Relieve()
					inTime(t, fmt.Sprint("Remove ", l.pane), func() {
						if err := s.Remove(l.pane); err != nil {
							t.Error(err)
						}
					})
					done()
				}
				until(t, "well", func() bool { return s.Stats().FullSince == 0 })
				// What is left: the ballast, the WALs that are used again, hardly any table.
				until(t, "empty", func() bool {
					u, err := s.opts.FS.GetDiskUsage(disk)
					if err != nil {
						t.Fatal(err)
					}
					if fill != "" {
						return u.AvailBytes > 1<<20
					}
					return u.UsedBytes < defaultBallast+4*defaultMemTable*11/10+1<<20
				})
				l, err := s.Create(100)
				if err != nil {
					t.Fatal(err)
				}
				l.AppendCheckpoint([]byte("full"), true)
				l.Append(Output, Time{}, noiseAt(100, 0))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := l.Sync(ctx); err != nil {
					t.Fatal(err)
				}
				checkNoise(t, l)
				if fill != "" { // Close flushes, for which there may be too little space
					if err := os.Remove(fill); err != nil {
						t.Fatal(err)
					}
				}
				mustClose(t, s)
			})
		}
	}
}
