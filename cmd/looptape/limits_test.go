package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// newLimited starts a daemon behind shell commands that set limits.
func newLimited(t *testing.T, prelude string) *server {
	t.Helper()
	s := newIdle(t)
	s.prelude = prelude
	s.start()
	return s
}

// refuses calls a verb and returns its error, of which code begins with family.
func (s *server) refuses(c *wire.Client, verb string, params obj, family string) *wire.Error {
	s.t.Helper()
	_, err := c.Call(s.ctx, verb, params)
	var e *wire.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Code, family) {
		s.t.Fatalf("%s %v: %v (%+v)\n%s", verb, params, err, e, s.log)
	}
	return e
}

// settles waits until the daemon has at most n descriptors open.
func (s *server) settles(n int, when string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); descriptors(s.t, s.cmd.Process.Pid) > n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d descriptors are open, not %d", when, descriptors(s.t, s.cmd.Process.Pid), n)
		}
	}
}

// TestDescriptorLimit: under a hard limit of 64 descriptors a daemon runs as many
// programs and serves as many clients as fit, refuses more, says why, and loses
// nothing by it.
func TestDescriptorLimit(t *testing.T) {
	t.Parallel()
	s := newLimited(t, "ulimit -n 64")
	c := s.client()
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	create := obj{"session": session, "argv": []string{"sh", "-c", "stty -echo; echo ready; while read line; do echo got $line; done"}}
	var panes []string
	var refused *wire.Error
	for refused == nil {
		p, err := try[struct{ Pane string }](s, c, "window.create", create)
		if err == nil {
			panes = append(panes, p.Pane)
		} else if !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	if refused.Code != "limit.panes" || !strings.Contains(refused.Message, "64 open files (ulimit -n)") || !strings.Contains(refused.Message, "end one") {
		t.Errorf("refused by %s: %s", refused.Code, refused.Message)
	}
	if len(panes) == 0 || len(panes) > 64/2 {
		t.Fatalf("%d programs run", len(panes))
	}
	t.Logf("%d programs run", len(panes))
	for _, p := range panes {
		s.until(c, p, "ready", func(i paneInfo) bool { return i.Offset >= 7 })
	}

	// What is refused leaves nothing behind.
	before := descriptors(t, s.cmd.Process.Pid)
	for range 100 {
		s.refuses(c, "window.create", create, "limit.panes")
	}
	s.settles(before, "after 100 refused programs")

	// Clients beyond the limit are told so; the others are served.
	var clients []*wire.Client
	for refused = nil; refused == nil && len(clients) < 64; {
		client, err := dial(s.dir)
		if err == nil {
			clients = append(clients, client)
		} else if !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	if refused == nil || refused.Code != "limit.clients" || !strings.Contains(refused.Message, "64 open files (ulimit -n)") {
		t.Errorf("beside %d clients: %+v", len(clients), refused)
	}
	for range 100 {
		if _, err := dial(s.dir); !errors.As(err, &refused) || refused.Code != "limit.clients" {
			t.Fatalf("a client too many: %v", err)
		}
	}
	want := make(map[string]string)
	for i, p := range panes {
		call[obj](s, c, "pane.write", obj{"pane": p, "text": fmt.Sprintf("line %d\n", i)})
		want[p] = fmt.Sprintf("ready\r\ngot line %d\r\n", i)
		s.until(c, p, "answering", func(got paneInfo) bool { return got.Offset >= uint64(len(want[p])) })
	}
	for _, client := range clients {
		client.Close()
	}
	s.settles(before, "after all clients but one")

	// One that ends makes room for another, however much the store has to do.
	text := make([]byte, 5<<20) // which does not compress much: the store writes tables
	r := rand.New(rand.NewPCG(4, 64))
	for i := range text {
		text[i] = '!' + byte(r.IntN(90))
	}
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range panes {
		call[obj](s, c, "pane.kill", obj{"pane": p})
		s.until(c, p, "exited", exited)
		flood := s.createWhenItFits(c, obj{"session": session, "argv": []string{"cat", file}})
		want[flood] = string(text)
		s.until(c, flood, "exited", exited)
	}
	check := func(when string) { // by as many readers as there may be
		t.Helper()
		var readers sync.WaitGroup
		for p, text := range want {
			readers.Go(func() {
				c, err := dial(s.dir)
				for refused := new(wire.Error); errors.As(err, &refused) && refused.Code == "limit.clients"; c, err = dial(s.dir) {
					time.Sleep(time.Millisecond) // until the daemon has missed one that is gone
				}
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				if got := string(s.raw(c, p)); got != text {
					t.Errorf("%s: %s: %d bytes recorded, %d written", when, p, len(got), len(text))
				}
			})
		}
		readers.Wait()
	}
	c.Close()
	check("live")
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("stop: %v\n%s", err, s.log)
	}
	if strings.Contains(s.log.String(), "too many open files") {
		t.Errorf("it ran out of descriptors:\n%s", s.log)
	}
	s.start()
	check("archived")
}

// createWhenItFits makes a window once a terminal is closed whose program has exited.
func (s *server) createWhenItFits(c *wire.Client, params obj) (pane string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		p, err := try[struct{ Pane string }](s, c, "window.create", params)
		var e *wire.Error
		if err == nil {
			return p.Pane
		}
		if !errors.As(err, &e) || e.Code != "limit.panes" || time.Now().After(deadline) {
			s.t.Fatal(err)
		}
	}
}

// TestDescriptorsTooFew: with too few descriptors a daemon does not start, and says
// how many it needs.
func TestDescriptorsTooFew(t *testing.T) {
	t.Parallel()
	for _, n := range []int{12, 24, 48} {
		s := newIdle(t)
		s.prelude = fmt.Sprintf("ulimit -n %d", n)
		said := s.fails()
		if !strings.Contains(said, fmt.Sprintf("may open %d files (ulimit -n), and a daemon needs ", n)) {
			t.Errorf("with %d descriptors it says: %s", n, said)
		}
	}
}

// TestSoftLimit: a daemon raises its soft limit to the hard one; programs have the
// soft limit that it began with.
func TestSoftLimit(t *testing.T) {
	t.Parallel()
	s := newLimited(t, "ulimit -S -n 40; ulimit -H -n 400")
	c := s.client()
	pane := s.run(c, 80, 24, "sh", "-c", "ulimit -S -n; ulimit -H -n")
	s.until(c, pane, "exited", exited)
	if got := string(s.raw(c, pane)); got != "40\r\n400\r\n" {
		t.Errorf("a program's limits are %q", got)
	}
	for range 40 { // which takes 80 descriptors
		s.run(c, 80, 24, "sleep", "1000")
	}
	if n := descriptors(t, s.cmd.Process.Pid); n < 80 {
		t.Errorf("%d descriptors for 40 programs: the test tests nothing", n)
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "Max open files") && f[3] != "400" && f[3] != "399" {
			t.Errorf("the daemon's limit: %s", line)
		}
	}
}
