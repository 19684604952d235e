//go:build conformance

package replay_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"looptape/replay"
)

// TestConformanceSnapshot: xterm.js that is fed a snapshot shows what xterm.js shows that
// was fed the stream, history included; and so does what follows. Where the two
// terminals differ about the stream itself, a snapshot has nothing to be compared
// with. It runs on the case files, the recordings and generated streams;
// LOOPTAPE_STREAMS is the number of streams a group (100), LOOPTAPE_SEED the first seed
// (1), LOOPTAPE_SHOW how many differences are printed (5).
func TestConformanceSnapshot(t *testing.T) {
	s := &xtermSnapshots{t: t, x: startXterm(t), left: env("LOOPTAPE_SHOW", 5)}
	for _, file := range []string{"terminal.jsonl", "programs.jsonl", "generated.jsonl"} {
		for _, c := range readCases(t, file) {
			s.compare(c, seedOf(c.Name))
		}
	}
	for _, p := range readRecordings(t) {
		c := p.termCase
		c.Steps = []caseStep{{In: recording(t, p.Name)[:p.At]}}
		s.compare(c, seedOf(p.Name))
	}
	first := env("LOOPTAPE_SEED", 1)
	for _, g := range groupNames() {
		for i := range env("LOOPTAPE_STREAMS", 100) {
			seed := uint64(20000 + first + i)
			s.compare(generate(g, seed, 25).asCase(fmt.Sprintf("%s-%d", g, seed), g), seed)
		}
	}
	t.Logf("%d streams, %d comparable, %d equal; with a rest %d comparable, %d equal", s.streams, s.whole, s.wholeEqual, s.cut, s.cutEqual)
	if s.whole < s.streams*2/3 {
		t.Errorf("only %d of %d streams were comparable", s.whole, s.streams)
	}
}

// TestConformanceSnapshotTmux: the same for tmux, on the case files.
func TestConformanceSnapshotTmux(t *testing.T) {
	var streams, snapshots []termCase
	for _, file := range []string{"terminal.jsonl", "programs.jsonl", "generated.jsonl"} {
		for _, c := range readCases(t, file) {
			ours := c.run(whole)
			b := ours.Bounds()
			streams = append(streams, c)
			snapshots = append(snapshots, termCase{Cols: b.Cols, Rows: b.Rows, Steps: []caseStep{{In: ours.AppendSnapshot(nil, scrollback)}}})
		}
	}
	want, got := tmuxLook(t, streams), tmuxLook(t, snapshots)
	if want == nil {
		t.Skip("no tmux on PATH")
	}
	comparable, left := 0, env("LOOPTAPE_SHOW", 5)
	for i, c := range streams {
		if agreed(c, want[i], want[i]).diff(look(t, c.run(whole))) != "" {
			continue
		}
		comparable++
		if d := agreed(c, want[i], want[i]).diff(got[i]); d != "" {
			t.Fail()
			if left--; left >= 0 {
				t.Logf("DIFFERS %s %dx%d %s\nsnapshot %q\n%s", c.Name, c.Cols, c.Rows, c.quote(), snapshots[i].Steps[0].In, d)
			}
		}
	}
	t.Logf("%d streams, %d comparable", len(streams), comparable)
}

type xtermSnapshots struct {
	t    *testing.T
	x    *xterm
	left int // differences to print

	streams, whole, wholeEqual, cut, cutEqual int
}

// agrees returns xterm.js's view behind the steps of c, and whether it is ours.
func (s *xtermSnapshots) agrees(c termCase, ours *replay.Terminal) (view, bool) {
	v, ok := s.x.look(s.t, c)
	return v, ok && agreed(c, v, v).diff(look(s.t, ours)) == ""
}

// compare takes a snapshot behind c, and one at a place in its last step.
func (s *xtermSnapshots) compare(c termCase, seed uint64) {
	s.streams++
	ours := c.run(whole)
	want, ok := s.agrees(c, ours)
	if !ok {
		return
	}
	s.whole++
	s.check(&s.wholeEqual, c, ours, nil, want)
	n := len(c.Steps) - 1
	if n < 0 || len(c.Steps[n].In) == 0 {
		return
	}
	in := c.Steps[n].In
	k := rand.New(rand.NewPCG(seed, 4)).IntN(len(in) + 1)
	head := c
	head.Steps = append(append([]caseStep(nil), c.Steps[:n]...), caseStep{In: in[:k]})
	ours = head.run(whole)
	if _, ok := s.agrees(head, ours); ok {
		s.cut++
		s.check(&s.cutEqual, c, ours, in[k:], want)
	}
}

// check compares xterm.js behind t's snapshot and rest with want.
func (s *xtermSnapshots) check(equal *int, c termCase, t *replay.Terminal, rest []byte, want view) {
	b := t.Bounds()
	snapshot := t.AppendSnapshot(nil, scrollback)
	again := termCase{Name: c.Name, Cols: b.Cols, Rows: b.Rows, Steps: []caseStep{{In: append(snapshot[:len(snapshot):len(snapshot)], rest...)}}}
	got, ok := s.x.look(s.t, again)
	d := "xterm.js fails"
	if ok {
		d = agreed(c, want, want).diff(got)
	}
	if d == "" {
		*equal++
		return
	}
	s.t.Fail()
	if s.left--; s.left >= 0 {
		s.t.Logf("DIFFERS %s %dx%d %s\nsnapshot %q\nrest %q\n%s", c.Name, b.Cols, b.Rows, c.quote(), snapshot, rest, d)
	}
}
