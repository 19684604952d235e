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
