package main_test

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
)

// diskBytes is what a directory takes.
func diskBytes(t *testing.T, dir string) (total int64) {
	t.Helper()
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// TestDiskCap is F10 of the field cases: a program that never stops writing, a
// cap on the disk, and kill -9. What goes is the oldest, and readers are told.
func TestDiskCap(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.end(syscall.SIGTERM)
	s.args = []string{"--disk", "32M"}
	s.start()
	c := s.client()
	// Random digits, so that compression does not make it small.
	pane := s.run(c, 80, 24, "sh", "-c", "od -An -v -tx1 -w32 /dev/urandom")
	// The cap, and the slack that the store's doc states: four memtables of 4
	// MiB, 32 MiB of evicted spans, the last spans, and what a second adds.
	const most = 32<<20 + 16<<20 + 32<<20 + 16<<20 + 32<<20
	largest := int64(0)
	s.until(c, pane, "evicting", func(p paneInfo) bool {
		largest = max(largest, diskBytes(t, filepath.Join(s.dir, "store")))
		return p.Oldest > 64<<20
	})
	t.Logf("largest: %d MiB", largest>>20)
	if largest > most {
		t.Errorf("the store took %d bytes", largest)
	}
	a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane, "since": 5, "format": "raw", "max_bytes": 4096})
	if !a.Missed || a.MissedBytes != a.From-5 || a.From == 0 {
		t.Errorf("from an evicted byte: %+v", a)
	}
	s.end(syscall.SIGKILL)
	s.start()
	c = s.client()
	info := call[paneInfo](s, c, "pane.get", obj{"pane": pane})
	if info.State != "archived" || info.Oldest == 0 {
		t.Errorf("afterwards: %+v", info)
	}
	// What is left is whole: rows of the raw stream are rows of 32 numbers.
	raw := s.raw(c, pane)
	lines := bytes.Split(raw, []byte("\r\n"))
	for i, line := range lines[1 : len(lines)-1] {
		if len(line) != 96 {
			t.Fatalf("line %d of what is left: %q", i+1, line)
		}
	}
}
