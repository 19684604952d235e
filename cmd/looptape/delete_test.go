package main_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestDeleteUnderReaders deletes panes that are being read in every way: each reader
// ends with a result or with not_found.pane.
func TestDeleteUnderReaders(t *testing.T) {
	s := newServer(t)
	c := s.client()
	const size = 8 << 20
	for round := range 3 {
		pane := s.run(c, 80, 24, "/bin/sh", "-c", fmt.Sprintf("head -c %d /dev/urandom | base64 -w 100", size))
		s.until(c, pane, "exited", exited)
		var readers sync.WaitGroup
		stop := make(chan struct{})
		for verb, params := range map[string]obj{
			"pane.capture":       {},
			"pane.capture_rows":  {"tail": 5},
			"pane.capture_since": {"since": 0, "format": "raw"},
			"pane.capture_at":    {"offset": size / 2},
			"pane.search":        {"pattern": "nothing has this"},
			"pane.commands":      {},
			"pane.export":        {"format": "raw"},
			"pane.wait":          {"since": 0, "pattern": "nothing has this", "timeout_ms": 100},
			"pane.verify":        {},
			"pane.get":           {},
		} {
			params["pane"] = pane
			readers.Go(func() {
				reader := s.client()
				for gone := false; !gone; {
					_, err := reader.Stream(s.ctx, verb, params, nil)
					if err != nil && !strings.Contains(err.Error(), "there is no pane") {
						t.Errorf("round %d: %s: %v", round, verb, err)
						return
					}
					select {
					case <-stop:
						gone = true
					default:
						gone = err != nil
					}
				}
			})
		}
		time.Sleep(time.Duration(round) * 100 * time.Millisecond) // no measure: anywhere in their reading
		call[any](s, c, "pane.delete", obj{"pane": pane})
		close(stop)
		readers.Wait()
	}
}

// TestDeleteGivesBack: what deleted panes took on disk is free again.
func TestDeleteGivesBack(t *testing.T) {
	s := newServer(t)
	c := s.client()
	disk := func() int64 {
		return call[struct{ Store struct{ Disk_Bytes int64 } }](s, c, "doctor", obj{}).Store.Disk_Bytes
	}
	var panes []string
	for range 6 {
		panes = append(panes, s.run(c, 80, 24, "/bin/sh", "-c", "head -c 12000000 /dev/urandom | base64 -w 100"))
	}
	for _, pane := range panes {
		s.until(c, pane, "exited", exited)
	}
	full := disk()
	for _, pane := range panes {
		call[any](s, c, "pane.delete", obj{"pane": pane})
	}
	for deadline := time.Now().Add(patience); disk() > full-6*9<<20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes on disk, %d before", disk(), full)
		}
	}
}

// TestDeleteKilled kills the daemon while it deletes: the pane is there whole or not
// at all, and its number does not come again.
func TestDeleteKilled(t *testing.T) {
	s := newServer(t)
	for round := range 6 {
		c := s.client()
		pane := s.run(c, 80, 24, "/bin/sh", "-c", "seq 1 20000")
		s.until(c, pane, "exited", exited)
		want := call[struct{ Offset uint64 }](s, c, "pane.get", obj{"pane": pane}).Offset
		gone := make(chan error, 1)
		go func() {
			_, err := c.Call(s.ctx, "pane.delete", obj{"pane": pane})
			gone <- err
		}()
		time.Sleep(time.Duration(round) * time.Millisecond)
		s.end(syscall.SIGKILL)
		answered := <-gone
		s.start()
		c = s.client()
		info, err := try[struct{ Offset, Oldest uint64 }](s, c, "pane.get", obj{"pane": pane})
		switch {
		case err == nil && answered == nil:
			t.Fatalf("round %d: %s was deleted, and is there", round, pane)
		case err == nil && (info.Offset < want || info.Oldest != 0):
			t.Fatalf("round %d: of %s there is %+v, of %d", round, pane, info, want)
		}
		if again := s.run(c, 80, 24, "/bin/true"); again == pane {
			t.Fatalf("round %d: %s was given out again", round, pane)
		}
	}
}
