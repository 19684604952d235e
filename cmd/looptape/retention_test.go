package main_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
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

// oldCast was recorded in 2020.
const oldCast = `{"version":2,"width":80,"height":24,"timestamp":1600000000}
[1,"o","secret\r\n"]
`

// TestKeepFor: of a recording that is older than the daemon keeps any, nothing can be
// read any more but that it was there, and how much it was; an import is as old as it
// has been there. A pane whose program runs
// keeps its screen.
func TestKeepFor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	crashed := s.run(c, 80, 24, "sh", "-c", "echo secret; exec sleep 1000")
	s.until(c, crashed, "durable", func(p paneInfo) bool { return p.Durable == 8 })
	s.end(syscall.SIGKILL)
	s.args = []string{"--keep-for", "1s"}
	s.start()
	c = s.client()
	ended := s.run(c, 80, 24, "sh", "-c", "printf '\\033]0;secret\\a'; echo secret")
	live := s.run(c, 80, 24, "sh", "-c", "echo alive; exec sleep 1000")
	s.until(c, live, "durable", func(p paneInfo) bool { return p.Durable == 7 })
	session := call[struct{ Session string }](s, c, "session.create", nil).Session
	imported := call[struct{ Pane string }](s, c, "pane.import", obj{"session": session, "end": true, "data": []byte(oldCast)}).Pane
	check := func() {
		t.Helper()
		for _, pane := range []string{crashed, ended, imported} {
			info := s.until(c, pane, "gone", func(p paneInfo) bool { // its last screen goes last
				return p.Oldest == p.Offset && !strings.Contains(s.export(c, pane, "text"), "secret")
			})
			if rows, _ := s.rows(c, pane); strings.TrimSpace(strings.Join(rows, "")) != "" {
				t.Errorf("%s shows %q", pane, rows)
			}
			if raw := s.raw(c, pane); len(raw) > 0 {
				t.Errorf("%s has %q", pane, raw)
			}
			a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane, "since": 3, "format": "raw"})
			if !a.Missed || a.MissedBytes != info.Offset-3 || len(a.Data) > 0 {
				t.Errorf("%s: %+v of %d", pane, a, info.Offset)
			}
			if got := call[struct{ Title string }](s, c, "pane.get", obj{"pane": pane}); got.Title != "" {
				t.Errorf("%s: title %q", pane, got.Title)
			}
			v, err := c.Stream(s.ctx, "pane.verify", obj{"pane": pane}, func(json.RawMessage) error { return nil })
			if err != nil || !bytes.Contains(v, []byte(`"sound":true`)) {
				t.Errorf("%s: verify: %s, %v", pane, v, err)
			}
		}
	}
	check()
	if rows, _ := s.rows(c, live); strings.TrimSpace(rows[0]) != "alive" {
		t.Errorf("the live pane shows %q", rows)
	}
	before := call[paneInfo](s, c, "pane.get", obj{"pane": ended})
	s.end(syscall.SIGTERM)
	s.start()
	c = s.client()
	check()
	if after := call[paneInfo](s, c, "pane.get", obj{"pane": ended}); after.Offset != before.Offset || after.Epoch < before.Epoch {
		t.Errorf("%+v became %+v", before, after)
	}
}
