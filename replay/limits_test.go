package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
)

// feedRows feeds n lines, in pieces of about 64 KiB.
func feedRows(t *replay.Terminal, n int, line func(b []byte, i int) []byte) {
	var b []byte
	for i := range n {
		if b = line(b, i); len(b) >= 64<<10 {
			t.Feed(b)
			b = b[:0]
		}
	}
	t.Feed(b)
}

// TestHistoryBytes: the history keeps as many rows as 16 MiB, and 256 bytes for each
// row of scrollback, have room for: a row is its text, and 20 bytes for each run of a
// style, their number rounded down to five bits.
func TestHistoryBytes(t *testing.T) {
	long := strings.Repeat("x", 65535)
	for _, c := range []struct {
		name             string
		cols, scrollback int
		cost, lines      int
		line             func(b []byte, i int) []byte
	}{
		{"text", 65535, 10000, 65535, 400, func(b []byte, _ int) []byte { return append(b, long...) }},
		{"wide", 10000, 1000, 15000, 1300, func(b []byte, _ int) []byte { return append(b, strings.Repeat("漢", 5000)...) }},
		{"two colours", 1000, 1000, 1000 + 992*20, 1100, func(b []byte, _ int) []byte {
			return append(b, strings.Repeat("\x1b[31mx\x1b[32my", 500)...)
		}},
		{"words", 1000, 1000, 1000 + 512*20, 2000, func(b []byte, i int) []byte {
			// 513 runs, then text of the default style, which is none.
			b = append(append(b, strings.Repeat("\x1b[31mx\x1b[my", 256)...), "\x1b[31mx\x1b[m"...)
			return append(b, strings.Repeat("z", 487)...)
		}},
		{"a colour a cell", 80, 1000, 80 + 80*20, 1100, func(b []byte, i int) []byte {
			for x := range 80 {
				b = fmt.Appendf(b, "\x1b[38;2;%d;%d;%dmx", x, i>>8, i&255)
			}
			return b
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			budget := 16<<20 + 256*c.scrollback
			want := min(c.scrollback, budget/c.cost)
			term := replay.New(c.cols, 4, c.scrollback)
			line := func(b []byte, i int) []byte { return append(c.line(append(b, "\x1b[m"...), i), "\r\n"...) }
			feedRows(term, c.lines, line)
			if b := term.Bounds(); int(b.Active-b.Oldest) != want {
				t.Errorf("%d rows of history, want %d", b.Active-b.Oldest, want)
			}
			again := reopened(t, term)
			for _, x := range []*replay.Terminal{term, again} {
				feedRows(x, 30, line)
				x.Resize(c.cols-1, 4)
				feedRows(x, 3, line)
			}
			same(t, "behind a restore", again, term)
		})
	}
}

// TestHistoryBytesBefore: of a State with more than the history has room for, as
// semantics before 3 had it, the newest rows are kept.
func TestHistoryBytesBefore(t *testing.T) {
	term := replay.New(65535, 4, 10000)
	feedRows(term, 250, func(b []byte, i int) []byte { return append(fmt.Appendf(b, "%065535d", i), "\r\n"...) })
	s := term.State()
	if len(s.History.Rows) != 247 {
		t.Fatalf("%d rows of history, want 247", len(s.History.Rows))
	}
	s.History.Rows = append(append(s.History.Rows, s.History.Rows...), s.History.Rows...)
	s.Semantics, s.History.First = 2, 100
	got, err := replay.Restore(s)
	if err != nil {
		t.Fatal(err)
	}
	b := got.Bounds()
	if b.Active != 100+3*247 || b.Active-b.Oldest != 295 {
		t.Errorf("rows %d to %d, want 295 up to 841", b.Oldest, b.Active)
	}
	for r := range got.Rows(b.Oldest, b.Active) {
		if want := fmt.Sprintf("%065535d", (r.Number-100)%247); string(r.Text) != want {
			t.Fatalf("row %d is %.20q..., want %.20q", r.Number, r.Text[65515:], want[65515:])
		}
	}
}

// linksOf returns how many hyperlinks rows have, each counted once, and how many rows
// have any.
func linksOf(s *checkpoint.State, rows []checkpoint.Row) (links, linked int) {
	seen := map[int]bool{}
	for _, r := range rows {
		has := false
		for _, run := range r.Runs {
			if l := s.Styles[run.Style].Link; l > 0 {
				seen[l] = true
				has = true
			}
		}
		if has {
			linked++
		}
	}
	return len(seen), linked
}

// TestScreenLinks: however many hyperlinks a program begins, the screens have at most
// MaxLinks, and no less than a quarter below that; where they stay fewer, none is
// refused. A Terminal that was restored in between refuses the same.
func TestScreenLinks(t *testing.T) {
	term := replay.New(200, 50, 0)
	for i := range 9000 {
		if i%1500 == 700 {
			again := reopened(t, term)
			for j := range 1300 {
				in := fmt.Appendf(nil, "\x1b]8;;http://x.example/%d\ax", i+j)
				again.Feed(in)
				term.Feed(in)
			}
			same(t, fmt.Sprintf("behind link %d", i), again, term)
		}
		term.Feed(fmt.Appendf(nil, "\x1b]8;;http://x.example/%d\ax", i))
	}
	s := term.State()
	if links, _ := linksOf(s, s.Main.Rows); links > replay.MaxLinks || links < 3000 {
		t.Errorf("%d hyperlinks on the screen, at most %d are to be there", links, replay.MaxLinks)
	}

	term = replay.New(80, 24, 0)
	feedRows(term, 20000, func(b []byte, i int) []byte {
		return fmt.Appendf(b, "\x1b]8;;http://x.example/%d\a%d\x1b]8;;\a\r\n", i, i)
	})
	s = term.State()
	if links, _ := linksOf(s, s.Main.Rows); links != 23 {
		t.Errorf("%d hyperlinks on the screen, want one in each row but the last", links)
	}
}

// TestHistoryLinks: the history has hyperlinks up to MaxLinkBytes, each counted with
// 48 bytes and its text; the rows behind are kept without, until older ones go.
func TestHistoryLinks(t *testing.T) {
	line := func(b []byte, i int) []byte { // a link of 1,000 bytes
		return fmt.Appendf(b, "\x1b]8;;http://x.example/%0983d\alink\x1b]8;;\a\r\n", i)
	}
	const fit = 6 << 20 / 1048
	term := replay.New(80, 24, 7000)
	feedRows(term, 6900, line)
	for range 2 {
		s := term.State()
		links, linked := linksOf(s, s.History.Rows)
		if links != fit || linked != fit {
			t.Errorf("%d hyperlinks in %d of %d rows, want %d", links, linked, len(s.History.Rows), fit)
		}
		for i, r := range s.History.Rows[:fit] {
			if len(r.Runs) == 0 {
				t.Fatalf("row %d has lost its link", i)
			}
		}
		term = reopened(t, term)
	}
	feedRows(term, 1123, line) // 1,000 rows are evicted, as many have links again
	s := term.State()
	// A row is there before the one that it evicts goes, and the first is refused so.
	if _, linked := linksOf(s, s.History.Rows); len(s.History.Rows) != 7000 || linked < fit-1 || linked > fit {
		t.Errorf("%d of %d rows have hyperlinks, want %d of 7000", linked, len(s.History.Rows), fit)
	}
}

// rowsOf is the text of all rows, and where lines go on.
func rowsOf(t *replay.Terminal) string {
	var b bytes.Buffer
	bounds := t.Bounds()
	for r := range t.Rows(bounds.Oldest, bounds.End) {
		fmt.Fprintf(&b, "%q %v\n", r.Text, r.Wrapped)
	}
	return b.String()
}

// TestRepeatIsWriting: REP is its character so many times more.
func TestRepeatIsWriting(t *testing.T) {
	for _, before := range []string{"", "abc", "\x1b[4habc\r", "\x1b[?7l", "\x1b[31m", "\x1b[2;3r\x1b[3;5H", "漢字漢字漢字\r\x1b[C", "\x1b[1;19H"} {
		for _, char := range []string{"x", "é", "漢", "e\u0301", "👨\u200d👩\u200d👧", "🇩🇪"} {
			for _, n := range []int{1, 2, 7, 19, 20, 21, 45, 79} {
				rep, all := replay.New(20, 4, 100), replay.New(20, 4, 100)
				rep.Feed(fmt.Appendf([]byte(before), "%s\x1b[%dbend", char, n))
				all.Feed([]byte(before + char))
				for range n { // so that nothing joins what is before it
					all.Feed([]byte("\x0f" + char))
				}
				all.Feed([]byte("end"))
				if got, want := rowsOf(rep), rowsOf(all); got != want || rep.Cursor() != all.Cursor() {
					t.Fatalf("%q, %q and %d times more:\n%s%+v\nwritten:\n%s%+v", before, char, n, got, rep.Cursor(), want, all.Cursor())
				}
			}
		}
	}
}

// TestTabStops: HT, CHT and CBT go to the next stop, to the last column or to the
// first, however far that is.
func TestTabStops(t *testing.T) {
	const cols = 300
	stops := []int{3, 63, 64, 65, 127, 130, 200, 256, 298}
	term := replay.New(cols, 2, 0)
	term.Feed([]byte("\x1b[3g"))
	for _, x := range stops {
		term.Feed(fmt.Appendf(nil, "\x1b[%dG\x1bH", x+1))
	}
	next := func(x, last int) int {
		for _, s := range stops {
			if s > x {
				return min(s, last)
			}
		}
		return last
	}
	previous := func(x int) int {
		at := 0
		for _, s := range stops {
			if s < x {
				at = s
			}
		}
		return at
	}
	for x := range cols {
		for _, n := range []int{1, 2, 5, 20} {
			right, left := x, x
			for range n {
				right, left = next(right, cols-1), previous(left)
			}
			for in, want := range map[string]int{
				strings.Repeat("\t", n): right, fmt.Sprintf("\x1b[%dI", n): right, fmt.Sprintf("\x1b[%dZ", n): left,
			} {
				term.Feed(fmt.Appendf(nil, "\x1b[%dG%s", x+1, in))
				if got := term.Cursor().Col; got != want {
					t.Fatalf("%q in column %d leads to %d, want %d", in, x, got, want)
				}
			}
		}
	}
	for _, width := range []int{65, 301, 64, 130, 257} { // stops that fit stay, new columns have them at eights
		again := reopened(t, term)
		again.Resize(width, 2)
		for x := range width {
			want := next(x, width-1)
			for at := max(cols, x+1); at < width && want > at; at++ {
				if at%8 == 0 {
					want = at
				}
			}
			again.Feed(fmt.Appendf(nil, "\x1b[%dG\t", x+1))
			if got := again.Cursor().Col; got != want {
				t.Fatalf("%d columns: a tab in column %d leads to %d, want %d", width, x, got, want)
			}
		}
	}
}

// TestScreenText: the cells of a screen hold at most 32 MiB of text, whichever way they
// come by it; of a longer cluster a cell has the first code points. So however full both
// screens are, their State fits into a checkpoint, and a Terminal made of that is the same.
func TestScreenText(t *testing.T) {
	const cols, rows = 65535, 64
	long := "a" + strings.Repeat("\u0301", 31) // 63 bytes
	fill := func(n int) []byte { return fmt.Appendf(nil, "\x1b[H%s\x1b[%db", long, n-1) }
	for _, c := range []struct {
		name string
		feed func(term *replay.Terminal)
		cell string // of the first row, on both screens
	}{
		{"repeated", func(term *replay.Terminal) { term.Feed(fill(cols * rows)) }, "a\u0301\u0301\u0301"},
		{"written", func(term *replay.Terminal) {
			for y := range rows {
				term.Feed(fmt.Appendf(nil, "\x1b[%dH%s", y+1, strings.Repeat(long, 1000)))
			}
		}, "a\u0301\u0301\u0301"},
		{"repeated behind a resize", func(term *replay.Terminal) {
			term.Resize(80, 24)
			term.Feed([]byte("\x1b[H" + long))
			term.Resize(cols, rows)
			term.Feed(fmt.Appendf(nil, "\x1b[%db", cols*rows-1))
		}, "a\u0301\u0301\u0301"},
		{"resized", func(term *replay.Terminal) {
			term.Resize(8192, 64)
			term.Feed(fill(8192 * 64))
			term.Resize(cols, rows)
		}, "a\u0301\u0301\u0301"},
		{"half as large", func(term *replay.Terminal) {
			term.Resize(cols, rows/2)
			term.Feed(fill(cols * rows / 2))
		}, "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301"},
		{"common", func(term *replay.Terminal) {
			term.Resize(200, 50)
			term.Feed(fill(200 * 50))
		}, long},
	} {
		t.Run(c.name, func(t *testing.T) {
			term := replay.New(cols, rows, 100)
			for _, screen := range []string{"main", "alternate"} {
				c.feed(term)
				b := term.Bounds()
				text := 0
				for r := range term.Rows(b.Active, b.End) {
					if text == 0 && !strings.HasPrefix(string(r.Text), c.cell+c.cell) {
						t.Errorf("%s screen: it begins with %.20q, want %q", screen, r.Text, c.cell)
					}
					text += len(bytes.TrimRight(r.Text, " "))
				}
				if text > 32<<20 {
					t.Errorf("%s screen: %d bytes of text, want at most 32 MiB", screen, text)
				}
				term.Feed([]byte("\x1b[?1049h"))
			}
			blob := checkpoint.Encode(nil, term.State())
			if len(blob) > 100<<20 {
				t.Errorf("the state takes %d bytes", len(blob))
			}
			s, err := checkpoint.Decode(blob)
			if err != nil {
				t.Fatal(err)
			}
			again, err := replay.Restore(s)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(checkpoint.Encode(nil, again.State()), blob) {
				t.Error("a restored terminal differs")
			}
		})
	}
}
