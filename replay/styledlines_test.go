package replay_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
)

// looks are styles, and the sequences that make them from any other.
var looks = []struct {
	in    string
	style replay.Style
}{
	{"\x1b[m\x1b]8;;\x1b\\", replay.Style{}},
	{"\x1b[0;1;31m", replay.Style{Fg: checkpoint.ColorIndexed | 1, Attrs: checkpoint.Bold}},
	{"\x1b[0;3;94;48;5;200m", replay.Style{Fg: checkpoint.ColorIndexed | 12, Bg: checkpoint.ColorIndexed | 200, Attrs: checkpoint.Italic}},
	{"\x1b[0;38;2;1;2;3;7m", replay.Style{Fg: checkpoint.ColorRGB | 0x010203, Attrs: checkpoint.Inverse}},
	{"\x1b[0;4:3;58;5;9m", replay.Style{Ul: checkpoint.ColorIndexed | 9, Attrs: 3 << checkpoint.UnderlineShift}},
	{"\x1b[0;2;8;9;53m", replay.Style{Attrs: checkpoint.Faint | checkpoint.Invisible | checkpoint.Strike | checkpoint.Overline}},
	{"\x1b[m\x1b]8;id=a;https://example.org/\x1b\\", replay.Style{Link: "https://example.org/"}},
}

// TestStyledLines: the runs of a line are the styles that its characters were written
// in, through wraps, cuts, resizes and checkpoints; and what AppendSGR writes gives
// the same styles again.
func TestStyledLines(t *testing.T) {
	words := []string{"a", "plain ", "漢", "é", "e\u0301", "👨\u200d👩\u200d👧", "  x", "word-word-word"}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 11))
		var in []byte
		var want []string
		for range 1 + r.IntN(30) {
			line := ""
			for range r.IntN(6) {
				look := looks[r.IntN(len(looks))]
				if look.style.Link == "" {
					in = append(in, looks[0].in...)
				}
				w := strings.Repeat(words[r.IntN(len(words))], 1+r.IntN(3))
				in = append(append(in, look.in...), w...)
				line += describe(w, look.style)
			}
			in = append(in, looks[0].in+"x\r\n"...)
			want = append(want, line+describe("x", replay.Style{}))
		}
		var got []string
		var again []byte
		watch := func(term *replay.Terminal) {
			term.StyleLines(true)
			term.SetLineSink(func(l replay.Line) {
				line, text := "", string(l.Text)
				for _, run := range l.Runs {
					line += describe(text[:run.Len], run.Style)
					if run.Style.Link != "" {
						again = append(again, looks[6].in...)
					}
					again = append(append(run.Style.AppendSGR(again), text[:run.Len]...), "\x1b]8;;\x1b\\"...)
					text = text[run.Len:]
				}
				if text != "" {
					t.Fatalf("%q has no style", text)
				}
				got, again = append(got, line), append(again, "\x1b[m\r\n"...)
			})
		}
		term := replay.New(2+r.IntN(40), 1+r.IntN(10), 200)
		watch(term)
		for rest := in; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(60))
			term.Feed(rest[:n])
			if rest = rest[n:]; r.IntN(10) == 0 {
				term = reopened(t, term)
				watch(term)
			}
		}
		term.FlushLines()
		sameLines(t, seed, got, want)
		got = nil
		repeated := again
		again = nil
		term = replay.New(200, 50, 200)
		watch(term)
		term.Feed(repeated)
		term.FlushLines()
		sameLines(t, seed, got, want)
	}
}

// erased are blanks that a line was given by a wrap at the foot of the screen: they
// have the background of the text that wrapped (xterm's bce).
var erased = regexp.MustCompile(`(x0,0,0,0,;)( 0,10000c8,0,0,;)+$`)

func sameLines(t *testing.T, seed uint64, got, want []string) {
	t.Helper()
	for i := range got {
		got[i] = erased.ReplaceAllString(got[i], "$1")
	}
	for len(got) > len(want) && got[len(got)-1] == "" {
		got = got[:len(got)-1]
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Fatalf("page %d:\n%s\nnot\n%s", seed, a, b)
	}
}

// TestShownBlanks: blanks at the end of a line are part of it where they can be seen,
// on the screen and in the history.
func TestShownBlanks(t *testing.T) {
	blue := replay.Style{Bg: checkpoint.ColorIndexed | 4}
	under := replay.Style{Attrs: 1 << checkpoint.UnderlineShift}
	var in, want []string
	for line, looks := range map[string]string{
		"x  ":                        describe("x", replay.Style{}),
		"\x1b[1;31m  ":               "",
		"\x1b[44m  ":                 describe("  ", blue),
		"\x1b[44m  \x1b[m  \x1b[1m ": describe("  ", blue),
		"x\x1b[m  \x1b[4m  ":         describe("x  ", replay.Style{}) + describe("  ", under),
		"\x1b[44mbar\x1b[K":          describe("bar       ", blue),
		"x\x1b[44m\x1b[3X\x1b[9Gy":   describe("x", replay.Style{}) + describe("   ", blue) + describe("    ", replay.Style{}) + describe("y", blue),
		"12345678\x1b[44m  ":         describe("12345678", replay.Style{}) + describe("  ", blue),
	} {
		in, want = append(in, line+"\x1b[m\r\n"), append(want, looks)
	}
	for _, rows := range []int{1, 4, 30} {
		term := replay.New(10, rows, 100)
		term.StyleLines(true)
		var got []string
		term.SetLineSink(func(l replay.Line) {
			line, text := "", string(l.Text)
			for _, run := range l.Runs {
				line += describe(text[:run.Len], run.Style)
				text = text[run.Len:]
			}
			got = append(got, line+text)
		})
		term.Feed([]byte(strings.Join(in, "") + "end"))
		term.FlushLines()
		if a, b := strings.Join(got, "\n"), strings.Join(append(want, describe("end", replay.Style{})), "\n"); a != b {
			t.Errorf("%d rows:\n%s\nnot\n%s", rows, a, b)
		}
	}
}

// describe is a text and the style of each of its characters.
func describe(text string, s replay.Style) string {
	b := ""
	for _, c := range text {
		b += fmt.Sprintf("%c%x,%x,%x,%x,%s;", c, s.Fg, s.Bg, s.Ul, s.Attrs, s.Link)
	}
	return b
}
