package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// server is a real daemon in a state directory of its own.
type server struct {
	t    testing.TB
	dir  string
	args []string // more flags of serve
	// prelude is shell commands, such as ulimit, that run in front of the daemon.
	prelude string
	stderr  *os.File // of the daemon; nil is log
	cmd     *exec.Cmd
	log     *bytes.Buffer
	ctx     context.Context
}

// lifetime is how long a test's daemon may run. One that runs longer has hung: it
// is told to say where, and to end, so that the test fails under its own name.
const lifetime = 5 * time.Minute

func oversee(daemon *os.Process) *time.Timer {
	return time.AfterFunc(lifetime, func() { daemon.Signal(syscall.SIGQUIT) })
}

// newServer starts a daemon in a new directory. It is killed when the test ends.
func newServer(t testing.TB) *server {
	t.Helper()
	s := newIdle(t)
	s.start()
	return s
}

// newIdle is newServer without the start.
func newIdle(t testing.TB) *server {
	t.Helper()
	base, err := os.MkdirTemp("", "lt") // short, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	s := &server{t: t, dir: filepath.Join(base, "s"), ctx: t.Context()}
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	return s
}

// launch starts the daemon's process.
func (s *server) launch() {
	s.t.Helper()
	s.log = &bytes.Buffer{}
	s.cmd = exec.Command("looptape", append([]string{"serve", "--dir", s.dir}, s.args...)...)
	if s.prelude != "" {
		argv := append([]string{"-c", s.prelude + `; exec "$@"`, "sh"}, s.cmd.Args...)
		s.cmd = exec.Command("sh", argv...)
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if s.stderr != nil {
		s.cmd.Stderr = s.stderr
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if _, test := s.t.(*testing.T); test { // a benchmark may take its time
		overdue := oversee(s.cmd.Process)
		s.t.Cleanup(func() { overdue.Stop() })
	}
}

// start launches the daemon and waits until it listens.
func (s *server) start() {
	s.t.Helper()
	s.launch()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		c, err := dial(s.dir)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			s.end(syscall.SIGKILL)
			s.t.Fatalf("the daemon does not listen: %v\n%s", err, s.log)
		}
	}
}

// end signals the daemon and waits until it is gone.
func (s *server) end(sig syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	s.cmd.Process.Signal(sig)
	err := s.cmd.Wait()
	s.cmd = nil
	return err
}

// client connects as the owner.
func (s *server) client() *wire.Client {
	s.t.Helper()
	c, err := dial(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

type obj = map[string]any

// call runs a verb and decodes its result into a T.
func call[T any](s *server, c *wire.Client, verb string, params obj) T {
	s.t.Helper()
	result, err := try[T](s, c, verb, params)
	if err != nil {
		s.t.Fatalf("%s %v: %v\n%s", verb, params, err, s.log)
	}
	return result
}

func try[T any](s *server, c *wire.Client, verb string, params obj) (result T, err error) {
	raw, err := c.Call(s.ctx, verb, params)
	if err == nil {
		err = json.Unmarshal(raw, &result)
	}
	return result, err
}

// run makes a pane that runs argv.
func (s *server) run(c *wire.Client, cols, rows int, argv ...string) (pane string) {
	s.t.Helper()
	type ids struct{ Session, Pane string }
	session := call[ids](s, c, "session.create", obj{}).Session
	return call[ids](s, c, "window.create", obj{"session": session, "cols": cols, "rows": rows, "argv": argv}).Pane
}

// raw is the recording of a pane, from its first byte on.
func (s *server) raw(c *wire.Client, pane string) []byte {
	s.t.Helper()
	return []byte(s.export(c, pane, "raw"))
}

// export is what pane.export gives.
func (s *server) export(c *wire.Client, pane, format string) string {
	s.t.Helper()
	var all bytes.Buffer
	_, err := c.Stream(s.ctx, "pane.export", obj{"pane": pane, "format": format}, func(item json.RawMessage) error {
		var chunk struct{ Data []byte }
		if err := json.Unmarshal(item, &chunk); err != nil {
			return err
		}
		all.Write(chunk.Data)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all.String()
}

// rows are all rows that a pane retains, by as many pages as it takes.
func (s *server) rows(c *wire.Client, pane string) (lines []string, bounds rowBounds) {
	s.t.Helper()
	type page struct {
		Epoch  uint32
		Bounds rowBounds
		End    uint64
		Next   *uint64
		Lines  []string
	}
	params := obj{"pane": pane, "max_rows": 10000, "max_bytes": 16 << 20}
	for {
		p := call[page](s, c, "pane.capture_rows", params)
		lines = append(lines, p.Lines...)
		if p.Next == nil {
			return lines, p.Bounds
		}
		params["epoch"], params["start"], params["end"] = p.Epoch, *p.Next, p.End
	}
}

type rowBounds struct{ Oldest, Active, End uint64 }

// until polls a pane until ok.
func (s *server) until(c *wire.Client, pane, what string, ok func(paneInfo) bool) paneInfo {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		p := call[paneInfo](s, c, "pane.get", obj{"pane": pane})
		if ok(p) {
			return p
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not %s: %+v\n%s", pane, what, p, s.log)
		}
	}
}

func exited(p paneInfo) bool { return p.State == "exited" }

// layOut says which rows a terminal of the given width shows after plain text
// (printable ASCII and CR LF), by the simplest reading of how one works. The
// last row is where the cursor stands.
func layOut(text []byte, cols int) ([]string, error) {
	rows := []string{""}
	for i := 0; i < len(text); i++ {
		last := &rows[len(rows)-1]
		switch c := text[i]; {
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
			rows = append(rows, "")
			i++
		case c == '\r' && i+1 == len(text): // a crash can cut between the two
		case c == '\t':
			for *last += " "; len(*last)%8 != 0 && len(*last) < cols; {
				*last += " "
			}
		case c < 0x20 || c > 0x7E:
			return nil, fmt.Errorf("byte %d is %#x, which is not plain", i, c)
		case len(*last) == cols:
			rows = append(rows, string(c))
		default:
			*last += string(c)
		}
	}
	for i := range rows {
		rows[i] = fmt.Sprintf("%-*s", cols, rows[i])
	}
	return rows, nil
}
