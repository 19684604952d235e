package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/attach"
)

// desk is a person at a terminal: a pane of one daemon, in which looptape attach shows a
// pane of another.
type desk struct {
	t           *testing.T
	host, inner *server
	terminal    *attached // the person's terminal
	pane        string    // that is shown
	pid         int       // of looptape attach
}

const atDesk = `stty -g >$0/before; printf 'the desk '
unset LOOPTAPE_PANE # which is the host's
sh -c 'echo $$ >$0/pid.new; mv $0/pid.new $0/pid; exec looptape attach' $0
code=$?
stty -g >$0/after; cmp -s $0/before $0/after && echo "restored, code $code"
exec sleep 600`

// sit begins to attach to a pane that counts what it is told.
func sit(t *testing.T) *desk {
	d := &desk{t: t, host: newServer(t), inner: newServer(t)}
	c := d.inner.client()
	d.pane = d.inner.run(c, 80, 24, "/bin/sh", "-c", `stty -echo; echo "hello at $(stty size)"; while read x; do n=$((n + 1)); echo "line $n at $(stty size)"; done`)
	d.inner.until(c, d.pane, "ready", func(p paneInfo) bool { return p.Offset > 10 })
	dir := t.TempDir()
	session := call[struct{ Session string }](d.host, d.host.client(), "session.create", obj{}).Session
	host := call[struct{ Pane string }](d.host, d.host.client(), "window.create", obj{
		"session": session, "cols": 60, "rows": 10, "argv": []string{"/bin/sh", "-c", atDesk, dir},
		"env": obj{"LOOPTAPE_DIR": d.inner.dir, "PATH": os.Getenv("PATH")},
	}).Pane
	d.terminal = d.host.attach(attach.Params{Pane: host, Mode: "write"})
	d.shows("hello at 24 80")
	raw, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if d.pid, err = strconv.Atoi(strings.TrimSpace(string(raw))); err != nil {
		t.Fatal(err)
	}
	d.types("\n")
	d.shows("line 1 at 10 60")
	return d
}

func (d *desk) types(keys string) {
	if err := d.terminal.Input([]byte(keys)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) shows(text string) {
	d.t.Helper()
	d.terminal.until(fmt.Sprintf("%q is shown", text), func() bool { return strings.Contains(screenText(d.terminal.screen.Term), text) })
}

func (d *desk) signal(sig syscall.Signal) {
	if err := syscall.Kill(d.pid, sig); err != nil {
		d.t.Fatal(err)
	}
}

// state waits until the state of looptape attach, as /proc names it, is one of states;
// "" is that there is none.
func (d *desk) state(states ...string) {
	d.t.Helper()
	var state string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.pid))
		_, after, _ := strings.Cut(string(raw), ") ")
		state, _, _ = strings.Cut(after, " ")
		for _, want := range states {
			if state == want {
				return
			}
		}
	}
	d.t.Fatalf("looptape attach is in state %q", state)
}

// TestAttachRestores: however looptape attach ends, it says so, and the terminal is as it
// was before.
func TestAttachRestores(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(*desk)
		says  string
		code  int
		alive bool // the program of the pane
	}{
		"detached":             {func(d *desk) { d.types("\x1cd") }, "left p0: it goes on", 0, true},
		"terminated":           {func(d *desk) { d.signal(syscall.SIGTERM) }, "left p0 by SIGTERM: it goes on", 143, true},
		"interrupted":          {func(d *desk) { d.signal(syscall.SIGINT) }, "left p0 by SIGINT: it goes on", 130, true},
		"told to quit":         {func(d *desk) { d.signal(syscall.SIGQUIT) }, "left p0 by SIGQUIT: it goes on", 131, true},
		"the daemon is killed": {func(d *desk) { d.inner.end(syscall.SIGKILL) }, "the connection to the daemon broke", 7, false},
		"the daemon stops":     {func(d *desk) { d.inner.end(syscall.SIGTERM) }, "the daemon is stopping", 7, false},
		"the program exits":    {func(d *desk) { d.types("\x04") }, "the program of p0 has exited with code 0", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sit(t)
			c.end(d)
			d.shows("looptape: " + c.says)
			d.shows(fmt.Sprintf("restored, code %d", c.code))
			d.terminal.mu.Lock()
			modes := d.terminal.screen.Term.Modes()
			_, set := modes.Set()
			screen := d.terminal.screen.Term.Bounds().Screen
			d.terminal.mu.Unlock()
			if fmt.Sprint(set) != "[7 8 25 1007]" || screen != "primary" || modes.Kitty != 0 {
				t.Errorf("the terminal has modes %v, and shows its %s screen", set, screen)
			}
			if c.alive {
				d.inner.until(d.inner.client(), d.pane, "running", func(p paneInfo) bool { return p.State == "running" })
			}
		})
	}
}

// TestAttachSuspended: looptape attach that is stopped gives the terminal back meanwhile;
// one whose terminal goes away ends.
func TestAttachSuspended(t *testing.T) {
	t.Parallel()
	d := sit(t)
	d.signal(syscall.SIGTSTP)
	d.state("T")
	d.shows("the desk ")
	c := d.inner.client()
	call[obj](d.inner, c, "pane.write", obj{"pane": d.pane, "text": "\n"})
	d.signal(syscall.SIGCONT)
	d.shows("line 2 at 10 60")
	d.signal(syscall.SIGSTOP) // without notice
	d.state("T")
	call[obj](d.inner, c, "pane.write", obj{"pane": d.pane, "text": "\n"})
	d.signal(syscall.SIGCONT)
	d.types("\n")
	d.shows("line 4 at 10 60")
	call[obj](d.host, d.host.client(), "pane.kill", obj{"pane": "p0"})
	d.state("", "Z")
	if info := call[paneInfo](d.inner, c, "pane.get", obj{"pane": d.pane}); info.State != "running" {
		t.Errorf("the pane is %s", info.State)
	}
}
