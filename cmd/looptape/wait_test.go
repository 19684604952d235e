package main_test

import (
	"fmt"
	"strings"
	"testing"
)

// waited is an answer of pane.wait.
type waited struct {
	Reason  string
	Exit    *int
	Offset  uint64
	Matched *struct {
		Start, End uint64
		Line       string
	}
}

// TestWaitForWhatRuns: a wait that begins while a command runs tells where the output
// of that began, and what it is; and of nothing that had ended.
func TestWaitForWhatRuns(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	const (
		first  = "\x1b]133;A\a$ \x1b]133;C;cmdline_url=ls\aa b\r\n\x1b]133;D;0\a"
		prompt = "\x1b]133;A\a$ \x1b]133;B\amake all\r\n"
		begin  = "\x1b]133;C;cmdline_url=make%20all\a"
		output = "building\r\n"
		middle = "\x1b]7;file:///tmp\adone\r\n"
		end    = "\x1b]133;D;2\a"
	)
	print := func(text string) string {
		return fmt.Sprintf("printf '%s'", strings.NewReplacer("%", "%%", "\x1b", `\033`, "\a", `\007`, "\r", `\r`, "\n", `\n`).Replace(text))
	}
	pane := s.run(c, 80, 24, "sh", "-c", "stty -echo -onlcr; "+print(first+prompt+begin+output)+"; read x; "+print(middle+end)+"; "+print(end)+"; read x")
	begun := uint64(len(first + prompt + begin))
	running := begun + uint64(len(output))
	s.until(c, pane, "building", func(i paneInfo) bool { return i.Offset == running })
	call[obj](s, c, "pane.write", obj{"pane": pane, "data": []byte("\n")})
	over := running + uint64(len(middle))
	for _, since := range []uint64{0, begun - 3, begun, begun + 2, running, over - 1} {
		q := obj{"pane": pane, "since": since, "command": true, "timeout_ms": 30000}
		if since == 0 {
			q["since"] = len(first)
		}
		r := call[waited](s, c, "pane.wait", q)
		if m := r.Matched; r.Reason != "command" || r.Exit == nil || *r.Exit != 2 || m == nil || m.Start != begun || m.End != over || m.Line != "make all" {
			t.Errorf("since %d of [%d, %d): %+v %+v", since, begun, over, r, r.Matched)
		}
	}
	// The second end ends no command that is known.
	r := call[waited](s, c, "pane.wait", obj{"pane": pane, "since": over + uint64(len(end)), "command": true, "timeout_ms": 30000})
	if m := r.Matched; r.Reason != "command" || m.Start != m.End || m.Line != "" {
		t.Errorf("the end of nothing: %+v %+v", r, r.Matched)
	}
}
