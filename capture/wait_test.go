package capture

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"looptape/replay"
	"looptape/store"
)

// wait waits for what is there already.
func (p *tape) wait(q WaitRequest) *WaitResult {
	p.t.Helper()
	q.Pane = "p3"
	r, err := Wait(p.t.Context(), p, q)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// TestWaitFindsAll: waits by cursors find every match of the filtered text once, in
// order and at its bytes, however the stream comes in and however often the time was
// over in between.
func TestWaitFindsAll(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	st := newStore(t)
	for round := range 150 {
		p := newTape(t, st, round, 20, 5)
		pattern := []string{"plain", "é|漢", "t.x", "[a-z]+ [a-z]+", "text"}[r.IntN(5)]
		re := regexp.MustCompile(pattern)
		start := uint64(0)
		q := WaitRequest{Since: &start, Pattern: &pattern}
		var got []string
		for p.closed = false; !p.closed; {
			for piece := randomStream(r, 1+r.IntN(6)); len(piece) > 0; {
				n := min(len(piece), 1+r.IntN(30))
				p.write(piece[:n])
				piece = piece[n:]
			}
			if r.IntN(3) == 0 {
				p.write([]byte("\n")) // what is incomplete cannot grow any more
				if r.IntN(4) == 0 {
					p.apply(replay.MarkClosed, nil)
					p.closed = true
				}
				for {
					a := p.wait(q)
					q.Since, q.Cursor = nil, &a.Cursor
					if a.Reason != "pattern" {
						if want := map[bool]string{true: "exit", false: "timeout"}[p.closed]; a.Reason != want {
							t.Fatalf("round %d: %+v, not %s", round, a, want)
						}
						break
					}
					m := a.Matched
					text := filterAll(p.stream[m.Start:m.End])
					if !re.MatchString(m.Line) || a.Offset != m.End || text != re.FindString(m.Line) {
						t.Fatalf("round %d: %+v %+v: the bytes are %q", round, a, m, p.stream[m.Start:m.End])
					}
					got = append(got, text)
				}
			}
		}
		var want []string
		for line := range strings.SplitSeq(filterAll(p.stream), "\n") {
			want = append(want, re.FindAllString(line, -1)...)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("round %d: %q in %q:\n%q, not\n%q", round, pattern, p.stream, got, want)
		}
	}
}

// TestWaitReasons: what a wait ends with, and where.
func TestWaitReasons(t *testing.T) {
	exit := store.Frame{Kind: replay.MarkExit, Data: replay.AppendExit(nil, replay.Exit{})}
	closed := store.Frame{Kind: replay.MarkClosed}
	respawn := store.Frame{Kind: replay.MarkRespawn}
	out := func(s string) store.Frame { return store.Frame{Kind: store.Output, Data: []byte(s)} }
	command := []store.Frame{out("$ \x1b]133;C;cmdline_url=echo%20hi\ahi\r\n\x1b]133;D;3\x1b\\$ ")}
	text := func(s string) *string { return &s }
	number := func(n int) *int { return &n }
	for i, c := range []struct {
		frames []store.Frame
		q      WaitRequest
		want   string // reason, matched, exit of the command, offset
	}{
		{nil, WaitRequest{}, "timeout - - 0"},
		{nil, WaitRequest{QuietMS: number(0)}, "quiet - - 0"},
		{[]store.Frame{out("abc")}, WaitRequest{Pattern: text("b")}, "pattern 1-2:abc - 2"},
		{[]store.Frame{out("ab\x1b[31mcd\x1b[0me")}, WaitRequest{Pattern: text("bc")}, "pattern 1-8:abcde - 8"},
		{[]store.Frame{out("x\r\nab")}, WaitRequest{Pattern: text("c")}, "timeout - - 3"}, // before what may still match
		{[]store.Frame{out("x\r\n")}, WaitRequest{Pattern: text("c")}, "timeout - - 3"},
		{[]store.Frame{out("ab"), exit, out("cd")}, WaitRequest{Pattern: text("d")}, "pattern 3-4:abcd - 4"},
		{[]store.Frame{out("ab"), exit, out("cd")}, WaitRequest{Pattern: text("d"), Exit: true}, "exit - - 2"},
		{[]store.Frame{out("ab"), exit, closed}, WaitRequest{Pattern: text("b"), Exit: true}, "pattern 1-2:ab - 2"},
		{[]store.Frame{out("ab"), exit, closed}, WaitRequest{Pattern: text("c")}, "exit - - 2"},
		{[]store.Frame{out("ab"), exit, closed, respawn, out("cd")}, WaitRequest{Pattern: text("c")}, "exit - - 2"},
		{command, WaitRequest{Command: true}, "command 32-36:echo hi 3 47"},
		{command, WaitRequest{Command: true, Pattern: text("hi")}, "pattern 32-34:$ hi - 34"},
		{command, WaitRequest{Command: true, Pattern: text(`^\$ $`)}, "command 32-36:echo hi 3 47"},
		{command, WaitRequest{Pattern: text(`^\$ $`)}, "pattern 47-49:$  - 49"},
	} {
		p := newTape(t, newStore(t), i, 20, 5)
		for _, f := range c.frames {
			if f.Kind == store.Output {
				p.write(f.Data)
				continue
			}
			p.apply(f.Kind, f.Data)
		}
		from := uint64(0)
		c.q.Since = &from
		r := p.wait(c.q)
		matched, code := "-", "-"
		if r.Matched != nil {
			matched = fmt.Sprintf("%d-%d:%s", r.Matched.Start, r.Matched.End, r.Matched.Line)
		}
		if r.Exit != nil {
			code = fmt.Sprint(*r.Exit)
		}
		if got := fmt.Sprintf("%s %s %s %d", r.Reason, matched, code, r.Offset); got != c.want {
			t.Errorf("%d: %s, not %s", i, got, c.want)
		}
	}
}

// TestWaitMissed: what a wait cannot look at is counted.
func TestWaitMissed(t *testing.T) {
	st := newStore(t)
	p := newTape(t, st, 0, 20, 5)
	p.write([]byte("one"))
	p.gap(100)
	p.write([]byte("two"))
	from, pattern := uint64(0), "two"
	if r := p.wait(WaitRequest{Since: &from, Pattern: &pattern}); r.Reason != "pattern" || r.Matched.Start != 103 || r.MissedBytes != 100 || !r.Missed {
		t.Errorf("%+v %+v", r, r.Matched)
	}
	from = 50
	if r := p.wait(WaitRequest{Since: &from, Pattern: &pattern}); r.Reason != "pattern" || r.MissedBytes != 53 {
		t.Errorf("from inside the gap: %+v", r)
	}
	p.term.Feed([]byte("three")) // the log takes nothing
	pattern = "three"
	if r := p.wait(WaitRequest{Since: &from, Pattern: &pattern}); r.Reason != "timeout" || r.MissedBytes != 58 || r.Offset != 111 {
		t.Errorf("a gap that is open: %+v", r)
	}
}

// TestWaitBounded: a wait looks at a bounded part of a long recording once its time is
// over; those that go on from its cursors come to the match, and miss nothing.
func TestWaitBounded(t *testing.T) {
	p := newTape(t, newStore(t), 0, 80, 5)
	piece := []byte(strings.Repeat(strings.Repeat("x", 70)+"\r\n", 200<<10/72))
	for len(p.stream) < 3*scanBytes {
		p.write(piece)
	}
	p.write([]byte("here it is"))
	from, pattern, calls := uint64(0), "here", 0
	q := WaitRequest{Since: &from, Pattern: &pattern}
	for r := p.wait(q); r.Reason != "pattern"; r = p.wait(q) {
		if calls++; r.Reason != "timeout" || r.Missed || calls > 4 {
			t.Fatalf("call %d: %+v", calls, r)
		}
		q.Since, q.Cursor = nil, &r.Cursor
	}
	if calls != 3 {
		t.Errorf("%d calls for three times what one looks at", calls)
	}
}
