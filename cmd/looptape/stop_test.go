package main_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// TestStopAnswers: whoever waits for something when the daemon is told to stop
// is told so, and the daemon ends without waiting for them.
func TestStopAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "sleep", "1000")
	answer := make(chan error, 1)
	go func() {
		_, err := c.Call(s.ctx, "pane.capture_since", obj{"pane": pane, "since": 0, "wait_ms": 30000})
		answer <- err
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		// The call is under way once another on the same connection comes back.
		if _, err := c.Call(s.ctx, "doctor", obj{}); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("the daemon ends with %v:\n%s", err, s.log)
	}
	var e *wire.Error
	select {
	case err := <-answer:
		if !errors.As(err, &e) || e.Code != "unavailable.stopping" {
			t.Errorf("the answer: %v", err)
		}
	case <-time.After(patience):
		t.Error("no answer")
	}
}

// TestNoZombies: children are reaped, and a pane that is closed holds no
// descriptor.
func TestNoZombies(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pid := s.cmd.Process.Pid
	before := descriptors(t, pid)
	for range 30 {
		pane := s.run(c, 80, 24, "true")
		s.until(c, pane, "exited", exited)
		for call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane, "since": 0, "wait_ms": 30000}).Closed == false {
		}
	}
	names, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("there is no /proc to count in")
	}
	for _, name := range names {
		stat, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(pid) {
			t.Errorf("a zombie: %s", stat)
		}
	}
	for deadline := time.Now().Add(patience); descriptors(t, pid) > before+2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors, %d before", descriptors(t, pid), before)
		}
	}
}

func descriptors(t testing.TB, pid int) int {
	t.Helper()
	names, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
