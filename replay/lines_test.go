package replay_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"looptape/replay"
)

// sink collects the lines that leave t for good.
func sink(t *replay.Terminal, lines *[]string) {
	t.SetLineSink(func(l replay.Line) { *lines = append(*lines, string(l.Text)) })
}

// TestLineSink: on streams that only scroll, the lines that the sink gets are
// those that were written, worked out from the bytes, for every split, every
// width, and with checkpoints and resizes on the way.
func TestLineSink(t *testing.T) {
	for seed := range uint64(100) {
		p := makePage(seed)
		r := rand.New(rand.NewPCG(seed, 4))
		cols, rows := 2+r.IntN(100), 1+r.IntN(30)
		for name, cut := range map[string]cutter{"whole": whole, "byte by byte": bytewise, "random cuts": randomCuts(seed)} {
			for _, moved := range []bool{false, true} {
				if moved && name == "byte by byte" {
					continue // A checkpoint behind every byte is TestCheckpointEverywhere's.
				}
				var got []string
				term := replay.New(cols, rows, 50)
				sink(term, &got)
				for in := p.in; len(in) > 0; {
					n := min(cut(len(in)), len(in))
					if moved {
						n = min(n, 97)
					}
					term.Feed(in[:n])
					in = in[n:]
					if moved {
						term = reopened(t, term)
						sink(term, &got)
					}
				}
				term.FlushLines()
				for len(got) > len(p.lines) && got[len(got)-1] == "" {
					got = got[:len(got)-1] // The cursor's empty last line.
				}
				if !slices.Equal(got, p.lines) {
					t.Fatalf("page %d at %dx%d, %s, checkpoints %v:\n%s", seed, cols, rows, name, moved, diffRows(p.lines, got))
				}
			}
		}
	}
}

// TestLineSinkResize: reflow reports no line twice and loses none.
func TestLineSinkResize(t *testing.T) {
	for seed := range uint64(60) {
		p := makePage(seed)
		r := rand.New(rand.NewPCG(seed, 5))
		var got []string
		term := replay.New(2+r.IntN(100), 1+r.IntN(30), 100000)
		sink(term, &got)
		for in := p.in; len(in) > 0; {
			n := min(len(in), 1+r.IntN(200))
			if in[n-1] == '\r' {
				n++ // A resize there moves the cursor off the line's start with its character.
			}
			term.Feed(in[:n])
			in = in[n:]
			term.Resize(2+r.IntN(100), 1+r.IntN(30))
		}
		term.FlushLines()
		for len(got) > len(p.lines) && got[len(got)-1] == "" {
			got = got[:len(got)-1]
		}
		if !slices.Equal(got, p.lines) {
			t.Fatalf("page %d:\n%s", seed, diffRows(p.lines, got))
		}
	}
}

// TestLineSinkErase: text that is erased whole is reported, once, before it
// goes; text that is written over is not kept (contract, section 9).
func TestLineSinkErase(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"one\r\ntwo\x1b[2J\x1b[Hthree", []string{"one", "two", "three"}},
		{"one\x1b[2Kx", []string{"one", "   x"}},
		{"one\r\ntwo\x1bcthree", []string{"one", "two", "three"}},
		{"one\r\ntwo\x1b[H\x1b[Mx", []string{"one", "xwo"}},
		{"one\r\ntwo\x1b[3J", []string{"one", "two"}},
		{"one\rtwo", []string{"two"}},
		{"one\r\n\x1b[?1049h\x1b[Halt\x1b[?1049ltwo", []string{"alt", "one", "two"}},
		{"one\x1b[2J\x1b[2J\x1b[2J", []string{"one"}},
		{"\x1b[2J\x1b[2K", nil},
		{"one\x1b[H\x1b[Jtwo", []string{"one", "two"}},
	} {
		for name, cut := range map[string]cutter{"whole": whole, "byte by byte": bytewise} {
			var got []string
			term := replay.New(10, 4, 100)
			sink(term, &got)
			feed(term, []byte(c.in), cut)
			term.FlushLines()
			for len(got) > 0 && got[len(got)-1] == "" {
				got = got[:len(got)-1]
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q %s: lines %q, want %q", c.in, name, got, c.want)
			}
		}
	}
}

// TestLineOffsets: a line carries the offset behind its last byte of text or
// later, and offsets never go back.
func TestLineOffsets(t *testing.T) {
	term := replay.New(20, 3, 100)
	var last uint64
	n := 0
	term.SetLineSink(func(l replay.Line) {
		if l.Offset < last {
			t.Errorf("line %q has offset %d after %d", l.Text, l.Offset, last)
		}
		last = l.Offset
		n++
	})
	var in strings.Builder
	for i := range 200 {
		fmt.Fprintf(&in, "line %d\r\n", i)
	}
	term.Feed([]byte(in.String()))
	term.FlushLines()
	if last > term.Offset() || n < 200 {
		t.Errorf("%d lines, the last at %d of %d", n, last, term.Offset())
	}
}

// TestLineSinkChangesNothing: a terminal with a sink and one without have the same
// state, through gaps, restarts and respawns; and what one that was reopened from a
// checkpoint reports is the rest of what the whole stream reports.
func TestLineSinkChangesNothing(t *testing.T) {
	for i, c := range corpus(t) {
		r := rand.New(rand.NewPCG(uint64(i), 6))
		var whole, pieces []string
		heard, deaf, cut := replay.New(20, 5, 50), replay.New(20, 5, 50), replay.New(20, 5, 50)
		sink(heard, &whole)
		sink(cut, &pieces)
		var in []byte
		for _, s := range c.Steps {
			in = append(in, s.In...)
		}
		for len(in) > 0 {
			n := min(1+r.IntN(30), len(in))
			act := func(*replay.Terminal) {}
			switch r.IntN(12) {
			case 0:
				act = func(t *replay.Terminal) { t.Gap(7) }
			case 1:
				act = func(t *replay.Terminal) { t.Restart(0) }
			case 2:
				act = (*replay.Terminal).Respawn
			}
			for _, t := range []*replay.Terminal{heard, deaf, cut} {
				t.Feed(in[:n])
				act(t)
			}
			in = in[n:]
			same(t, c.Name, heard, deaf)
			cut = reopened(t, cut)
			sink(cut, &pieces)
		}
		heard.FlushLines()
		cut.FlushLines()
		if !slices.Equal(whole, pieces) {
			t.Fatalf("%s:\n%s", c.Name, diffRows(whole, pieces))
		}
	}
}

// TestReportFrom: behind a gap the lines are reported that were written in it, and
// at the beginning of a log those that are there already, each once.
func TestReportFrom(t *testing.T) {
	live := replay.New(10, 3, 100)
	live.Feed([]byte("one\r\ntwo\r\nthree\r\nfour"))
	since := live.Offset()
	live.Feed([]byte("th\r\nfive\r\n\r\nsix\r\nseven wraps here\r\neight"))
	for _, c := range []struct {
		since uint64
		want  string
	}{
		{0, "one|two|three|fourth|five||six|seven wraps here|eight is here|nine"},
		{since + 1, "fourth|five||six|seven wraps here|eight is here|nine"},
		{live.Offset() - 3, "eight is here|nine"},
	} {
		var got []string
		term := reopened(t, live)
		sink(term, &got)
		term.ReportFrom(c.since)
		term.Feed([]byte(" is here\r\nnine"))
		term.FlushLines()
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("from %d: %s, not %s", c.since, s, c.want)
		}
	}
}
