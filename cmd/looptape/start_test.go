package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// begin calls window.create, and returns a function that cancels the call and one that
// returns its error.
func (s *server) begin(c *wire.Client, session string, params obj) (cancel func(), wait func() string) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.t.Cleanup(cancel)
	params["session"] = session
	code := make(chan string, 1)
	go func() {
		_, err := c.Call(ctx, "window.create", params)
		var e *wire.Error
		if err == nil || !errors.As(err, &e) {
			code <- fmt.Sprint(err)
			return
		}
		code <- e.Code
	}()
	return cancel, func() string {
		select {
		case c := <-code:
			return c
		case <-time.After(patience):
			return "no answer"
		}
	}
}

// counted waits until so many calls of a verb have begun, or have failed by a code.
func (s *server) counted(c *wire.Client, verb, code string, n int) {
	s.t.Helper()
	type tallies struct {
		Verbs []struct {
			Verb   string
			Calls  int
			Errors []struct {
				Code  string
				Count int
			}
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got := 0
		for _, v := range call[tallies](s, c, "doctor", obj{}).Verbs {
			if v.Verb == verb && code == "" {
				got = v.Calls
			}
			for _, e := range v.Errors {
				if v.Verb == verb && e.Code == code {
					got = e.Count
				}
			}
		}
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d calls of %s %s, not %d\n%s", got, verb, code, n, s.log)
		}
	}
}

// children counts the processes that the daemon has started and that live.
func (s *server) children() (n int) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range names {
		stat, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(f) > 1 && f[0] != "Z" && f[1] == fmt.Sprint(s.cmd.Process.Pid) {
			n++
		}
	}
	return n
}

// TestStartHangs: programs that cannot start, since a file system does not answer, keep
// no others from starting, in whatever way they wait; who waits for them may give up.
// They count as panes until they are over, and nothing runs that came too late.
func TestStartHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []uint32 // of the file system
		waits   uint32   // for this one
		params  func(dir string) obj
	}{
		{"stat", []uint32{fuseInit}, fuseGetattr, func(dir string) obj { return obj{"argv": []string{"sleep", "1000"}, "cwd": dir} }},
		{"chdir", []uint32{fuseGetattr}, fuseAccess, func(dir string) obj { return obj{"argv": []string{"sleep", "1000"}, "cwd": dir} }},
		{"exec", []uint32{fuseGetattr, fuseAccess, fuseLookup}, fuseOpen, func(dir string) obj { return obj{"argv": []string{dir + "/script"}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newDeadMount(t, c.answers...)
			s := newIdle(t)
			s.prelude = "ulimit -n 128"
			s.start()
			cl := s.client()
			session := call[struct{ Session string }](s, cl, "session.create", obj{}).Session
			const hung = 6 // more than may start at once
			var cancels []func()
			var waits []func() string
			for range hung {
				cancel, wait := s.begin(cl, session, c.params(m.dir))
				cancels, waits = append(cancels, cancel), append(waits, wait)
			}
			m.hold(c.waits, hung)
			var fine []string
			full := false
			for range 100 { // until there are as many panes as there may be
				_, wait := s.begin(cl, session, obj{"argv": []string{"sh", "-c", "seq 1 20000; exec sleep 1000"}})
				code := wait()
				if full = code == "limit.panes"; full {
					break
				}
				if code != "<nil>" {
					t.Fatalf("a program that can start: %s\n%s", code, s.log)
				}
				fine = append(fine, code)
			}
			if !full {
				t.Fatal("as many panes as anybody likes")
			}
			for i := range hung {
				cancels[i]()
				waits[i]()
			}
			s.counted(cl, "window.create", "timeout.cancelled", hung)
			if _, wait := s.begin(cl, session, obj{"argv": []string{"true"}}); wait() != "limit.panes" {
				t.Error("what hangs does not count any more")
			}
			m.revive()
			for deadline := time.Now().Add(patience); s.children() > len(fine); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d programs run, not %d", s.children(), len(fine))
				}
			}
			for i := 0; i < hung; {
				_, wait := s.begin(cl, session, obj{"argv": []string{"sleep", "1000"}})
				switch code := wait(); code {
				case "<nil>":
					i++
				case "limit.panes": // not all are over
					time.Sleep(5 * time.Millisecond)
				default:
					t.Fatal(code)
				}
			}
			if n := s.children(); n != len(fine)+hung {
				t.Errorf("%d programs run, not %d", n, len(fine)+hung)
			}
			if err := s.end(syscall.SIGTERM); err != nil {
				t.Errorf("the daemon ends with %v\n%s", err, s.log)
			}
		})
	}
}

// TestStopWhileStartHangs: a program that cannot start does not keep the daemon from
// stopping; nor, while it is to start in an archive, other requests of the connections
// that read that.
func TestStopWhileStartHangs(t *testing.T) {
	t.Parallel()
	m := newDeadMount(t)
	s := newServer(t)
	first := s.client()
	pane := s.run(first, 80, 24, "echo", "here")
	s.until(first, pane, "closed", func(paneInfo) bool {
		return call[sinceAnswer](s, first, "pane.capture_since", obj{"pane": pane, "since": 0}).Closed
	})
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.start()
	c, err := dialFrame(s.dir, wire.CeilingMaxFrame)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := make(chan error)
	later := func(verb string, params obj) {
		go func() {
			_, err := c.Call(s.ctx, verb, params)
			answers <- err
		}()
	}
	later("pane.respawn", obj{"pane": pane, "argv": []string{"cat"}, "cwd": m.dir})
	m.asked()
	reads := []string{"pane.capture", "pane.get", "pane.capture_since", "pane.capture_rows", "pane.search", "pane.wait"}
	for _, verb := range reads {
		params := obj{"pane": pane}
		switch verb {
		case "pane.capture_since":
			params["since"] = 0
		case "pane.search":
			params["pattern"] = "x"
		case "pane.wait":
			params["exit"] = true
		}
		later(verb, params)
	}
	// With frames of this size, a connection has memory for the answers of two.
	other := s.client()
	for _, verb := range reads {
		s.counted(other, verb, "", 1)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for range len(reads) + 1 {
			var e *wire.Error // or nil, of a read that was quicker than the respawn
			if err := <-answers; err != nil && (!errors.As(err, &e) || e.Code != "unavailable.stopping" && e.Code != "unavailable.connection") {
				t.Errorf("an answer: %v", err)
			}
		}
	})
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("the daemon ends with %v\n%s", err, s.log)
	}
	ended.Wait()
}
