package capture

import (
	"testing"
	"time"

	"looptape/replay"
)

// TestWaitResumes: wherever a wait ended, or an answer of capture_since, the next wait
// from there finds what has begun in front of that place: each end of a command once,
// and each line.
func TestWaitResumes(t *testing.T) {
	stream := "x\r\n\x1b]133;C;cmdline=make\ahi\r\n\x1b[1m\x1b]133;D;3\x1b\\ready $ "
	end := uint64(len("x\r\n\x1b]133;C;cmdline=make\ahi\r\n\x1b[1m"))
	behind := end + uint64(len("\x1b]133;D;3\x1b\\"))
	st := newStore(t)
	never, ready, quiet, zero := "never", `^ready \$`, 0, uint64(0)
	id := 0
	for cut := 1; cut < int(behind); cut++ {
		for name, first := range map[string]func(*tape) WaitRequest{
			"timeout": func(p *tape) WaitRequest { return WaitRequest{Cursor: &p.wait(WaitRequest{Since: &zero}).Cursor} },
			"quiet": func(p *tape) WaitRequest {
				return WaitRequest{Cursor: &p.wait(WaitRequest{Since: &zero, QuietMS: &quiet}).Cursor}
			},
			"pattern": func(p *tape) WaitRequest {
				return WaitRequest{Cursor: &p.wait(WaitRequest{Since: &zero, Pattern: &never, QuietMS: &quiet}).Cursor}
			},
			"offset": func(p *tape) WaitRequest {
				at := uint64(len(p.stream))
				return WaitRequest{Since: &at}
			},
			"capture_since": func(p *tape) WaitRequest {
				a, err := Since(t.Context(), p, SinceRequest{Since: &zero, Format: "text", Keep: "head", MaxBytes: 1000, MaxLines: 100}, time.Now)
				if err != nil {
					t.Fatal(err)
				}
				return WaitRequest{Cursor: &a.Cursor}
			},
		} {
			id++
			p := newTape(t, st, id, 20, 5)
			p.write([]byte(stream[:cut]))
			q := first(p)
			p.write([]byte(stream[cut:]))
			q.Command = true
			r := p.wait(q)
			if r.Reason != "command" || r.Exit == nil || *r.Exit != 3 || r.Matched.End != end || r.Offset != behind {
				t.Errorf("%s behind %q: %+v %+v", name, stream[:cut], r, r.Matched)
			}
			if r := p.wait(WaitRequest{Cursor: &r.Cursor, Command: true, Pattern: &ready}); r.Reason != "pattern" || r.Matched.Start != behind {
				t.Errorf("%s behind %q, and then: %+v %+v", name, stream[:cut], r, r.Matched)
			}
		}
	}
}

// TestWaitResumesLine: a wait that ends because the pane is quiet within a line looks
// at that line again.
func TestWaitResumesLine(t *testing.T) {
	p := newTape(t, newStore(t), 0, 20, 5)
	pattern, zero, quiet := "BUILD (OK|FAILED)", uint64(0), 0
	p.write([]byte("make\r\nBUILD O"))
	r := p.wait(WaitRequest{Since: &zero, Pattern: &pattern, QuietMS: &quiet})
	if r.Reason != "quiet" || r.Offset != 6 {
		t.Errorf("%+v", r)
	}
	p.write([]byte("K\r\n"))
	if r = p.wait(WaitRequest{Cursor: &r.Cursor, Pattern: &pattern, QuietMS: &quiet}); r.Reason != "pattern" || r.Matched.Start != 6 || r.Offset != 14 {
		t.Errorf("and then: %+v %+v", r, r.Matched)
	}
}

// TestWaitAroundGap: what stands in front of a gap is found though its line is not
// complete; what stands behind is seen as the terminal saw it; and no command is told
// to have ended in a way that may be another's.
func TestWaitAroundGap(t *testing.T) {
	st, zero := newStore(t), uint64(0)
	for i, c := range []struct{ before, lost, behind, pattern string }{
		{"one", "x", "two\r\n", "^one$"},
		{"", "\x1b[38;2;1", "53;153;153mred\r\n", "^red$"},
		{"", "x\xe6\xbc", "\xa2y\r\n", "^漢y$"},
		{"", "\x1b]0;ti", "tle\ax", "^x$"},
		{"\x1b]133;C\aone", "two", "three\x1b]133;D;1\a", ""},
		{"\x1b]133;C\a\x1b]133;", "D;1", "D;0\a\r\n\x1b]133;D;1\a", ""},
	} {
		p := newTape(t, st, i, 20, 5)
		p.write([]byte(c.before))
		p.lose([]byte(c.lost))
		p.write([]byte(c.behind))
		if c.pattern != "" {
			if r := p.wait(WaitRequest{Since: &zero, Pattern: &c.pattern}); r.Reason != "pattern" {
				t.Errorf("%d: %q: %+v", i, c.pattern, r)
			}
			continue
		}
		end := uint64(len(c.before + c.lost + c.behind))
		r := p.wait(WaitRequest{Since: &zero, Command: true})
		if m := r.Matched; r.Reason != "command" || *r.Exit != 1 || m.Start != m.End || m.Line != "" || r.Offset != end {
			t.Errorf("%d: %+v %+v", i, r, m)
		}
		a, err := Commands(t.Context(), p, CommandsRequest{Limit: 10})
		if err != nil || len(a.Commands) != 1 || a.Commands[0].Exit != nil || a.Commands[0].Seconds != nil || *a.Commands[0].End != end-uint64(len("\x1b]133;D;1\a")) {
			t.Errorf("%d: %+v, %v", i, a, err)
		}
	}
}

// TestWaitNewProgram: what the program before has left unfinished is no part of what
// the next one writes.
func TestWaitNewProgram(t *testing.T) {
	for i, unfinished := range []string{"\x1b]133;", "\x1b]0;title", "\x1b[3", "\x1bP1", "\xe6"} {
		p := newTape(t, newStore(t), i, 20, 5)
		p.write([]byte(unfinished))
		p.apply(replay.MarkClosed, nil)
		p.apply(replay.MarkRespawn, nil)
		p.write([]byte("D;1\a\r\nred\r\n"))
		at, pattern := uint64(0), "^red$"
		r := p.wait(WaitRequest{Since: &at, Pattern: &pattern, Command: true}) // of this program
		if r.Reason != "exit" {
			t.Errorf("%q: %+v", unfinished, r)
		}
		if r = p.wait(WaitRequest{Cursor: &r.Cursor, Pattern: &pattern, Command: true}); r.Reason != "pattern" {
			t.Errorf("%q: %+v", unfinished, r)
		}
	}
}
