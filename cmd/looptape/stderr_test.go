package main_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"looptape/cmd/internal/wire"
)

// fill writes to a pipe or a terminal until it takes nothing more.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	fd := int(w.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		if _, err := unix.Write(fd, make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}

// endOf waits for the end of a pane's program, and returns the signal that it ended by.
func (s *server) endOf(c *wire.Client, pane string) string {
	s.t.Helper()
	s.until(c, pane, "exited", exited)
	return call[struct{ Exit struct{ Signal string } }](s, c, "pane.get", obj{"pane": pane}).Exit.Signal
}

// TestStderr: a daemon whose log nobody reads, or nobody can read any more, records and
// ends as any other.
func TestStderr(t *testing.T) {
	t.Parallel()
	for name, close := range map[string]func(r *os.File){
		"full": func(*os.File) {},
		"gone": func(r *os.File) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newIdle(t)
			r, w := pipe(t)
			fill(t, w)
			close(r)
			s.stderr = w
			s.start()
			daemon := s.cmd.Process
			overdue := time.AfterFunc(patience, func() { daemon.Kill() }) // it could not say where it hangs
			defer overdue.Stop()
			c := s.client()
			pane := s.run(c, 80, 24, "sh", "-c", "echo hi; kill -PIPE $$; echo SIGPIPE is ignored")
			if sig, text := s.endOf(c, pane), string(s.raw(c, pane)); sig != "SIGPIPE" || text != "hi\r\n" {
				t.Errorf("a program that ended by %q wrote %q", sig, text)
			}
			if err := s.end(syscall.SIGTERM); err != nil {
				t.Errorf("the daemon ends with %v", err)
			}
		})
	}
}

// TestIgnoredSignals: signals that the daemon was started to ignore, as by nohup, do not
// end it; and they are not ignored in panes.
func TestIgnoredSignals(t *testing.T) {
	t.Parallel()
	s := newIdle(t)
	s.prelude = `trap "" HUP INT`
	s.start()
	c := s.client()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		name := unix.SignalName(sig)
		pane := s.run(c, 80, 24, "sh", "-c", "kill -"+name[3:]+" $$; echo ignored")
		if sig := s.endOf(c, pane); sig != name {
			t.Errorf("of %s a program ends by %q", name, sig)
		}
	}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("the daemon ends with %v\n%s", err, s.log)
	}
}
