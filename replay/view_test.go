package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"

	"looptape/replay"
)

// drawn returns a terminal of the given size on which t's rows were drawn one by one,
// over other things.
func drawn(t *replay.Terminal, cols, rows int) *replay.Terminal {
	v := replay.New(cols, rows, 0)
	v.Feed([]byte("\x1b[?7l"))
	for y := range rows {
		v.Feed(fmt.Appendf(nil, "\x1b[%dH\x1b[41mrubbish that was there before\x1b[m\r", y+1))
		if y < t.Bounds().Rows {
			v.Feed(t.AppendRow(nil, y, cols))
		} else {
			v.Feed([]byte("\x1b[K"))
		}
	}
	return v
}

// portray is what row y of t looks like in its first cols columns, in words.
func portray(t *replay.Terminal, y, cols int) string {
	s := t.State()
	screen := s.Main
	if s.OnAlt {
		screen = s.Alt
	}
	r := screen.Rows[y]
	r.Flags = 0
	p := &portrait{s: s}
	cells := strings.Split(p.row(r, func(int) bool { return true }), `|"`)
	for len(cells) < cols {
		cells = append(cells, ` "`)
	}
	return strings.Join(cells, `|"`)
}

// TestAppendRow: rows that are drawn one by one on a terminal that is as wide, or wider,
// look as they are; on a narrower one they are cut.
func TestAppendRow(t *testing.T) {
	for _, g := range groupNames() {
		for seed := range uint64(30) {
			s := generate(g, 9000+seed, 60)
			name := fmt.Sprintf("%s-%d", g, seed)
			term := replay.New(s.cols, s.rows, 0)
			for _, op := range s.ops {
				if op.Resize == nil {
					term.Feed(op.In)
				}
			}
			b := term.Bounds()
			same := drawn(term, b.Cols, b.Rows)
			for y := range b.Rows {
				if got, want := portray(same, y, b.Cols), portray(term, y, b.Cols); got != want {
					t.Fatalf("%s: row %d looks like\n%s\ninstead of\n%s\n%q", name, y, got, want, term.AppendRow(nil, y, b.Cols))
				}
			}
			full := screenLines(term)
			for _, cols := range []int{1, 2, b.Cols / 2, b.Cols - 1, b.Cols + 1, b.Cols + 30} {
				if cols < 1 {
					continue
				}
				for y, got := range screenLines(drawn(term, cols, b.Rows)) {
					if want := crop(full[y], cols); got != want && cols > 1 && b.Cols > 1 {
						t.Fatalf("%s: row %d in %d columns is %q instead of %q", name, y, cols, got, want)
					}
				}
			}
		}
	}
}

func screenLines(t *replay.Terminal) (lines []string) {
	b := t.Bounds()
	for r := range t.Rows(b.Active, b.End) {
		lines = append(lines, string(r.Text))
	}
	return lines
}

// crop cuts a text to a width, with blanks where it ends before that.
func crop(text string, width int) string {
	var b strings.Builder
	g := displaywidth.StringGraphemes(text)
	for left := width; left > 0; {
		if !g.Next() || g.Width() > left {
			return b.String() + strings.Repeat(" ", left)
		}
		b.WriteString(g.Value())
		left -= g.Width()
	}
	return b.String()
}
