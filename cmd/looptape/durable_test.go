package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// TestAnsweredIsDurable kills the daemon right behind an answer: what was
// answered is still true afterwards.
func TestAnsweredIsDurable(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		c := s.client()
		done := s.run(c, 80, 24, "sh", "-c", "echo hi; exit 7")
		var ended exitInfo
		for deadline := time.Now().Add(patience); ended.Exit == nil && time.Now().Before(deadline); {
			ended = call[exitInfo](s, c, "pane.get", obj{"pane": done})
		}
		fresh := s.run(c, 33, 7, "sleep", "1000")
		s.end(syscall.SIGKILL)

		s.start()
		c = s.client()
		// The pane that was just made can be read.
		if got := call[exitInfo](s, c, "pane.get", obj{"pane": fresh}); got.State != "archived" || got.Cols != 33 || got.Rows != 7 {
			t.Fatalf("a pane of the last moment: %+v", got)
		}
		if raw := s.raw(c, fresh); len(raw) != 0 {
			t.Fatalf("it has recorded %q", raw)
		}
		// The exit that was seen is still known.
		if got := call[exitInfo](s, c, "pane.get", obj{"pane": done}); got.Exit == nil || got.Exit.Code == nil || *got.Exit.Code != 7 {
			t.Fatalf("the exit that was seen is lost: %+v", got)
		}
	}
}

type exitInfo struct {
	State      string
	Cols, Rows int
	Offset     uint64
	Exit       *struct{ Code *int }
}

// TestCrashIsDated: the end that a crash took from a recording is dated as what was
// recorded last, not as what is done about it afterwards.
func TestCrashIsDated(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	began := time.Now().Truncate(time.Millisecond)
	panes := []string{s.run(c, 80, 24, "sh", "-c", "printf abc; exec sleep 1000"), s.run(c, 80, 24, "sleep", "1000")}
	s.until(c, panes[0], "durable", func(p paneInfo) bool { return p.Durable == 3 })
	s.end(syscall.SIGKILL)
	killed := time.Now()
	s.start()
	c = s.client()
	for i, pane := range panes {
		a := call[struct {
			Offset uint64
			Time   time.Time
		}](s, c, "pane.capture_at", obj{"pane": pane, "time": time.Now().UTC().Format(time.RFC3339Nano)})
		if a.Time.Before(began) || a.Time.After(killed) || i == 0 && a.Offset < 3 {
			t.Errorf("%s, which ran from %v to %v: %+v", pane, began, killed, a)
		}
		call[obj](s, c, "pane.respawn", obj{"pane": pane, "argv": []string{"sleep", "1000"}})
		if at := s.endInCast(c, pane); at.After(killed) {
			t.Errorf("%s was killed at %v, its asciicast ends at %v", pane, killed, at)
		}
	}
}

// endInCast is when an asciicast of a pane says that its recording ended, at the
// earliest.
func (s *server) endInCast(c *wire.Client, pane string) time.Time {
	s.t.Helper()
	var cast bytes.Buffer
	_, err := c.Stream(s.ctx, "pane.export", obj{"pane": pane, "format": "asciicast"}, func(item json.RawMessage) error {
		var chunk struct{ Data []byte }
		err := json.Unmarshal(item, &chunk)
		cast.Write(chunk.Data)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var head struct{ Timestamp int64 }
	lines := json.NewDecoder(&cast)
	if err := lines.Decode(&head); err != nil {
		s.t.Fatal(err)
	}
	at := time.Unix(head.Timestamp, 0)
	for {
		var event [3]any
		if err := lines.Decode(&event); err != nil {
			s.t.Fatalf("no end in the asciicast of %s: %v", pane, err)
		}
		at = at.Add(time.Duration(event[0].(float64) * float64(time.Second)))
		if event[1] == "m" && strings.HasPrefix(event[2].(string), "looptape: the recording ended") {
			return at
		}
	}
}

// TestOneGapACrash: however often the daemon is killed while it puts a log in
// order, there is one gap, of one size.
func TestOneGapACrash(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "sh", "-c", "printf abc; exec sleep 1000")
	s.until(c, pane, "durable", func(p paneInfo) bool { return p.Durable == 3 })
	s.end(syscall.SIGKILL)
	var offset uint64
	for i := range 8 {
		s.start()
		c = s.client()
		got := call[exitInfo](s, c, "pane.get", obj{"pane": pane})
		if offset == 0 {
			offset = got.Offset
		}
		if got.Offset != offset {
			t.Fatalf("after crash %d the pane ends at %d, after the first at %d", i+1, got.Offset, offset)
		}
		a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane, "since": 0, "format": "raw", "keep": "tail", "max_bytes": 2})
		if string(a.Data) != "bc" || a.From != 1 || !a.More {
			t.Fatalf("the newest bytes in front of the gap: %+v", a)
		}
		time.Sleep(time.Duration(i*2) * time.Millisecond)
		s.end(syscall.SIGKILL)
	}
}

// TestKillRacesCreate: a session that is killed while a window is made in it has
// no program left.
func TestKillRacesCreate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	for i := range 20 {
		session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
		made := make(chan error, 1)
		go func() {
			_, err := c.Call(s.ctx, "window.create", obj{"session": session, "argv": []string{"sleep", "1000"}})
			made <- err
		}()
		time.Sleep(time.Duration(i) * 300 * time.Microsecond)
		call[obj](s, c, "session.kill", obj{"session": session})
		var e *wire.Error
		if err := <-made; err != nil && (!errors.As(err, &e) || e.Code != "not_found.session") {
			t.Fatalf("window.create: %v", err)
		}
		type list struct {
			Panes []struct{ Pane, State string }
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if running := call[list](s, c, "pane.list", obj{"session": session, "state": "running"}); len(running.Panes) == 0 {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("still running: %+v", running)
			}
		}
	}
}

// TestCrashOnFullDisk: on a disk that is full after a crash, what was recorded
// can be read, and the daemon can be stopped.
func TestCrashOnFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "64m")
	s := &server{t: t, ctx: t.Context(), dir: filepath.Join(disk, "s")}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	c := s.client()
	pane := s.run(c, 80, 24, "sh", "-c", "seq 1 1000; exec sleep 1000")
	s.until(c, pane, "durable", func(p paneInfo) bool { return p.Durable == 4893 })
	s.end(syscall.SIGKILL)
	s.start() // there is space for the start, and then no more
	fill := fillUp(t, disk)
	c = s.client()
	if got := call[exitInfo](s, c, "pane.get", obj{"pane": pane}); got.State != "archived" {
		t.Errorf("%+v", got)
	}
	if raw := s.raw(c, pane); len(raw) != 4893 {
		t.Errorf("%d bytes", len(raw))
	}
	began := time.Now()
	s.cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() { s.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
		t.Logf("stopped after %v", time.Since(began))
	case <-time.After(patience):
		t.Error("SIGTERM does not end the daemon")
	}
	s.cmd.Process.Kill()
	s.cmd = nil

	// On the full disk a new daemon reads, and says that it cannot record.
	fillUp(t, disk)
	s.start()
	c = s.client()
	if raw := s.raw(c, pane); len(raw) != 4893 {
		t.Errorf("on the full disk %d bytes", len(raw))
	}
	if rows, _ := s.rows(c, pane); len(rows) != 1001 {
		t.Errorf("on the full disk %d rows", len(rows))
	}
	var e *wire.Error
	if _, err := c.Call(s.ctx, "session.create", obj{}); !errors.As(err, &e) || e.Code != "unavailable.storage" {
		t.Errorf("session.create: %v", err)
	}
	if h := call[health](s, c, "doctor", obj{}); h.Store.State != "read-only" {
		t.Errorf("doctor: %+v", h.Store)
	}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("stop: %v\n%s", err, s.log)
	}

	// Once there is space, everything is as it was.
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	s.start()
	c = s.client()
	if raw := s.raw(c, pane); len(raw) != 4893 {
		t.Errorf("with space again %d bytes", len(raw))
	}
	if next := s.run(c, 80, 24, "echo", "hi"); next == pane {
		t.Errorf("the id %s is used again", next)
	}
}
