package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// endings are the signals that a person ends a command with.
var endings = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}

// command is a looptape at work.
type command struct {
	*exec.Cmd
	stderr bytes.Buffer
}

// command starts looptape with arguments, and a file as its input or output, or nil.
func (s *server) command(stdin, stdout *os.File, args ...string) *command {
	s.t.Helper()
	c := &command{Cmd: exec.Command("looptape", args...)}
	c.Env = append(os.Environ(), "LOOPTAPE_DIR="+s.dir)
	c.Stderr = &c.stderr
	if stdin != nil {
		c.Stdin = stdin
	}
	if stdout != nil {
		c.Stdout = stdout
	}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	overdue := time.AfterFunc(patience, func() { c.Process.Kill() })
	s.t.Cleanup(func() { overdue.Stop(); c.Process.Kill() })
	return c
}

// end signals the command and returns its exit code, -1 if it had to be killed.
func (c *command) end(t *testing.T, sig syscall.Signal) int {
	t.Helper()
	if err := c.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err, exit := c.Wait(), new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestEndImport: a signal ends an import whose input gives nothing, and nothing of it
// stays.
func TestEndImport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	file := castFile(12000)
	for _, sig := range endings {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			r, w := pipe(t)
			cmd := s.command(r, nil, "import", "-")
			// All that is not in the pipe is read: the import waits for the rest of a piece.
			if _, err := w.Write(file); err != nil {
				t.Fatal(err)
			}
			if code := cmd.end(t, sig); code != 128+int(sig) || cmd.stderr.Len() > 0 {
				t.Errorf("exit code %d: %s", code, &cmd.stderr)
			}
			type list struct{ Panes, Sessions []obj }
			for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
				panes, sessions := call[list](s, c, "pane.list", obj{}).Panes, call[list](s, c, "session.list", obj{}).Sessions
				if len(panes) == 0 && len(sessions) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("what stays: %v %v", panes, sessions)
				}
			}
		})
	}
}

// TestEndFollow: a signal ends run --wait whose output nobody takes; the program goes on.
func TestEndFollow(t *testing.T) {
	t.Parallel()
	for _, sig := range endings {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			c := s.client()
			r, w := pipe(t)
			cmd := s.command(nil, w, "run", "--wait", "--", "sh", "-c", "echo ready; read x; head -c 1000000 /dev/zero; exec sleep 1000")
			if _, err := io.ReadFull(r, make([]byte, len("ready\r\n"))); err != nil {
				t.Fatal(err)
			}
			// Nearly all of the rest is printed at once, in the midst of which it stops.
			cmd.Process.Signal(syscall.SIGSTOP)
			call[obj](s, c, "pane.write", obj{"pane": "p0", "text": "\n"})
			s.until(c, "p0", "writing", func(p paneInfo) bool { return p.Offset > 1000000 })
			cmd.Process.Signal(syscall.SIGCONT)
			for n, deadline := 0, time.Now().Add(patience); n < 60000; time.Sleep(time.Millisecond) {
				var err error
				if n, err = unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ); err != nil || time.Now().After(deadline) {
					t.Fatalf("%d bytes are printed: %v", n, err)
				}
			}
			if code := cmd.end(t, sig); code != 128+int(sig) || !strings.Contains(cmd.stderr.String(), "looptape: pane p0 goes on: ") {
				t.Errorf("exit code %d: %s", code, &cmd.stderr)
			}
			s.until(c, "p0", "running", func(p paneInfo) bool { return p.State == "running" })
		})
	}
}

// unreadTerminal is a terminal in front of which nobody sits.
func unreadTerminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal
}

// TestEndAttach: a signal ends looptape attach on a terminal that takes nothing, and
// leaves that as it was.
func TestEndAttach(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	pane := s.run(s.client(), 80, 24, "sleep", "1000")
	for _, sig := range append(endings, syscall.SIGHUP) {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			terminal := unreadTerminal(t)
			mode := func() unix.Termios {
				m, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
				if err != nil {
					t.Fatal(err)
				}
				return *m
			}
			before := mode()
			raw := before // what takes nothing in this mode takes nothing in any
			raw.Oflag &^= unix.OPOST
			if err := unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, &raw); err != nil {
				t.Fatal(err)
			}
			fill(t, terminal)
			if err := unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, &before); err != nil {
				t.Fatal(err)
			}
			cmd := s.command(terminal, terminal, "attach", pane)
			for deadline := time.Now().Add(patience); mode() == before; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it does not begin")
				}
			}
			if code := cmd.end(t, sig); code != 128+int(sig) || !strings.Contains(cmd.stderr.String(), "it goes on") {
				t.Errorf("exit code %d: %s", code, &cmd.stderr)
			}
			if mode() != before {
				t.Error("the terminal stays raw")
			}
		})
	}
}
