package replay_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"looptape/replay"
)

// A page is text that was made for reflow: lines without trailing blanks, and
// no blank in front of a wide character, so that the blank which a wide
// character leaves in the last column can be told from a written one.
type page struct {
	lines []string // as text
	in    []byte   // the same with styles and links, lines ended by CR LF
}

// makePage returns a page that the seed determines.
func makePage(seed uint64) page {
	r := rand.New(rand.NewPCG(seed, 2))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	var p page
	var in strings.Builder
	for n := range 1 + r.IntN(30) {
		line := fmt.Sprintf("%d:", n)
		in.WriteString(line)
		for range r.IntN(1 + r.IntN(120)) {
			if r.IntN(6) == 0 {
				in.WriteString(pick("\x1b[1;31m", "\x1b[m", "\x1b[48;5;9m", "\x1b]8;;http://x.example\x1b\\", "\x1b]8;;\x1b\\", "\x1b[38;2;9;8;7m"))
			}
			c := pick("a", "b", "cd", "e\u0301", "漢", "字字", "👨\u200d👩\u200d👧", " .", "é", "日本語")
			line += c
			in.WriteString(c)
		}
		p.lines = append(p.lines, line)
		in.WriteString("\r\n")
	}
	p.in = []byte(in.String())
	return p
}

// joined returns the logical lines of t's rows from its oldest to the one
// before the cursor's: rows joined over soft wraps, the blank that a wide
// character left in the last column dropped.
func joined(t *replay.Terminal) []string {
	b := t.Bounds()
	lines, line, wrapped := []string{}, "", false
	for r := range t.Rows(b.Oldest, b.Active+uint64(t.Cursor().Row)) {
		text := string(r.Text)
		if wrapped && strings.HasSuffix(line, " ") && startsWide(text) {
			line = line[:len(line)-1]
		}
		line += text
		if wrapped = r.Wrapped; !wrapped {
			lines = append(lines, strings.TrimRight(line, " "))
			line = ""
		}
	}
	return lines
}

// startsWide tells whether a row's first cell is two columns wide.
func startsWide(text string) bool {
	it := graphemes.FromString(text)
	return it.Next() && rowWidth([]byte(it.Value())) == 2
}

// place finds the character under the cursor: the number of characters that
// are not blank in front of it, from the oldest row on, and itself.
func place(t *replay.Terminal) (int, string) {
	b, c := t.Bounds(), t.Cursor()
	n := 0
	for r := range t.Rows(b.Oldest, b.End) {
		col := 0
		it := graphemes.FromBytes(r.Text)
		for it.Next() {
			g := string(it.Value())
			w := rowWidth(it.Value())
			if r.Number == b.Active+uint64(c.Row) && col+w > c.Col {
				return n, g
			}
			col += w
			if g != " " {
				n++
			}
		}
	}
	return n, ""
}

// TestReflow resizes pages through many widths: the joined lines stay those
// that were written, and the cursor stays on its character.
func TestReflow(t *testing.T) {
	for seed := range uint64(150) {
		reflow(t, seed, uint8(seed*37))
	}
}

func FuzzReflow(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed+1000, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, widths uint8) { reflow(t, seed, widths) })
}

func reflow(t *testing.T, seed uint64, widths uint8) {
	p := makePage(seed)
	r := rand.New(rand.NewPCG(seed, uint64(widths)))
	// No row is evicted: at width 2 the longest page takes some 5,000 rows.
	term := replay.New(2+r.IntN(100), 2+r.IntN(30), 100000)
	term.Feed(p.in)
	want := strings.Join(p.lines, "\n")
	for range 6 {
		// A character two columns wide has no place on one column.
		cols, rows := 2+r.IntN(299), 1+r.IntN(50)
		old := term.Bounds()
		term.Resize(cols, rows)
		if got := strings.Join(joined(term), "\n"); got != want {
			t.Fatalf("page %d, %dx%d to %dx%d:\n got %q\nwant %q", seed, old.Cols, old.Rows, cols, rows, got, want)
		}
	}
	// Now with the cursor on some character of the screen.
	for range 6 {
		b := term.Bounds()
		fmt.Fprintf(feeder{term}, "\x1b[%d;%dH", 1+r.IntN(b.Rows), 1+r.IntN(b.Cols))
		n, char := place(term)
		cols, rows := 2+r.IntN(299), 1+r.IntN(50)
		term.Resize(cols, rows)
		if char == " " || char == "" {
			continue // A blank behind a line's end has no place of its own.
		}
		if m, now := place(term); now != char || m != n {
			t.Fatalf("page %d, %dx%d to %dx%d: the cursor was on character %d, %q, and is on %d, %q",
				seed, b.Cols, b.Rows, cols, rows, n, char, m, now)
		}
	}
}

// A feeder is a terminal as an io.Writer.
type feeder struct{ t *replay.Terminal }

func (f feeder) Write(p []byte) (int, error) {
	f.t.Feed(p)
	return len(p), nil
}

// TestReflowBehindAlternate: the main screen behind the alternate one reflows
// too, and the alternate one is cropped and padded.
func TestReflowBehindAlternate(t *testing.T) {
	for seed := range uint64(50) {
		p := makePage(seed)
		r := rand.New(rand.NewPCG(seed, 3))
		term := replay.New(10+r.IntN(100), 2+r.IntN(30), 100000)
		term.Feed(p.in)
		term.Feed([]byte("\x1b[?1049h\x1b[Halternate"))
		cols, rows := 2+r.IntN(299), 1+r.IntN(50)
		was := look(t, term).Screen[0]
		term.Resize(cols, rows)
		if got, want := look(t, term).Screen[0], was[:min(len(was), cols)]; !strings.HasPrefix(got, want) && len(want) <= cols {
			t.Errorf("page %d: the alternate screen shows %q, want %q", seed, got, want)
		}
		term.Feed([]byte("\x1b[?1049l"))
		if got, want := strings.Join(joined(term), "\n"), strings.Join(p.lines, "\n"); got != want {
			t.Fatalf("page %d behind the alternate screen, to %dx%d:\n got %q\nwant %q", seed, cols, rows, got, want)
		}
	}
}

// TestReflowOneColumn: at one column wide characters do not fit, but nothing
// breaks, and narrow text comes back whole.
func TestReflowOneColumn(t *testing.T) {
	term := replay.New(10, 4, 1000)
	term.Feed([]byte("abcdefghijklm\r\nxyz\r\n"))
	term.Resize(1, 4)
	term.Resize(10, 4)
	if got := joined(term); len(got) != 2 || got[0] != "abcdefghijklm" || got[1] != "xyz" {
		t.Errorf("lines after one column: %q", got)
	}
}

// TestReflowFromOneColumn: wide characters that were printed on one column take two
// again as soon as there are more.
func TestReflowFromOneColumn(t *testing.T) {
	term := replay.New(1, 2, 1000)
	term.Feed([]byte(strings.Repeat("漢字", 10) + "\r\nx\r\n"))
	term.Resize(7, 2)
	got := rowsOf(term)
	want := `"漢字漢 " true` + "\n" + `"字漢字 " true` + "\n"
	if !strings.HasPrefix(got, strings.Repeat(want, 3)+`"漢字   " false`) {
		t.Errorf("on 7 columns:\n%s", got)
	}
}

// TestReflowNarrow: of a long history on a narrow screen, the newest rows are left:
// the last characters of what was written.
func TestReflowNarrow(t *testing.T) {
	for _, cols := range []int{1, 2, 3, 7} {
		term := replay.New(80, 5, 3000)
		var text strings.Builder // without the line ends
		for i := range 3000 {
			line := fmt.Sprintf("%d: %0*d", i, i%150, i)
			fmt.Fprintf(feeder{term}, "%s\r\n", line)
			text.WriteString(line)
		}
		b := term.Bounds()
		if b.Active-b.Oldest != 3000 {
			t.Fatalf("%d rows of history", b.Active-b.Oldest)
		}
		term.Resize(cols, 5)
		if b = term.Bounds(); b.Active-b.Oldest != 3000 {
			t.Errorf("%d columns: %d rows of history, want 3000", cols, b.Active-b.Oldest)
		}
		got := strings.Join(joined(term), "")
		if want := text.String(); len(got) < 3000 || !strings.HasSuffix(want, got) {
			t.Errorf("%d columns: %d bytes, ...%q, want ...%q", cols, len(got), got[max(0, len(got)-40):], want[len(want)-40:])
		}
	}
}
