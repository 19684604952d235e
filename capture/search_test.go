package capture

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// words are what the lines of the search tests are made of.
var words = []string{"error", "warning: é", "漢字", "ok", "a.b", `"quoted\"`, "x"}

// written is a line, and where in the stream it begins and ends, without its CR LF.
type written struct {
	text       string
	begin, end uint64
}

// scroll records numbered lines in frames of random sizes, with colours and redraws
// that change no text, resizes, gaps, a restart and checkpoints, and returns the
// lines that a transcript has of it: those it wrote, and of a gap none.
func scroll(t *testing.T, st *store.Store, r *rand.Rand, pane int) (*tape, []written) {
	p := newTape(t, st, pane, 10+r.IntN(30), 2+r.IntN(8))
	var lines []written
	for i := range 40 + r.IntN(80) {
		line := fmt.Sprint(i)
		text := line
		for range r.IntN(6) {
			w := words[r.IntN(len(words))]
			line += " " + w
			text += " \x1b[3" + fmt.Sprint(r.IntN(8)) + "m" + w + "\x1b[0m"
		}
		begin := uint64(len(p.stream))
		lines = append(lines, written{line, begin, begin + uint64(len(text))})
		for b := []byte(text + "\r\n"); len(b) > 0; {
			n := min(len(b), 1+r.IntN(60))
			p.write(b[:n])
			b = b[n:]
			if r.IntN(40) == 0 {
				p.checkpoint()
			}
		}
		switch r.IntN(30) {
		case 0:
			p.apply(replay.MarkResize, replay.AppendResize(nil, 10+r.IntN(30), 2+r.IntN(8)))
		case 1:
			p.gap(1 + r.IntN(500))
		case 2:
			p.apply(replay.MarkRestart, replay.AppendRestart(nil, 0))
		}
	}
	return p, lines
}

// apply records a mark.
func (p *tape) apply(kind store.Kind, data []byte) {
	f := store.Frame{Kind: kind, Data: data}
	p.log.Append(kind, f.Time, data)
	if err := replay.Apply(p.term, f); err != nil {
		p.t.Fatal(err)
	}
}

// searchAll searches in pieces until there is no more.
func (p *tape) searchAll(q SearchRequest) (all []Match) {
	p.t.Helper()
	q.Pane = "p3"
	for range 10000 {
		r, err := Search(p.t.Context(), p, q, time.Now)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(r.Matches) > q.Limit {
			p.t.Fatalf("%d matches, the limit is %d", len(r.Matches), q.Limit)
		}
		all = append(all, r.Matches...)
		if r.More != (r.Cursor != "") {
			p.t.Fatalf("more %v, cursor %q", r.More, r.Cursor)
		}
		if !r.More {
			return all
		}
		q.From, q.To, q.Cursor = nil, nil, &r.Cursor
	}
	p.t.Fatal("no end")
	return nil
}

// rounds is how often a property is tried: a quarter of n in short mode.
func rounds(n int) int {
	if testing.Short() {
		n /= 4
	}
	return n
}

// TestSearch: what is found, in one answer or in many small ones, is what a person
// finds who looks through the lines that were written.
func TestSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	st := newStore(t)
	for round := range rounds(12) {
		p, lines := scroll(t, st, r, round)
		for _, pattern := range []string{"error", "err.r", "^[0-9]+$", "(?i)ERROR", `a\.b`, "漢", `"`, "error|漢字", "(ok ){2}", "nothing", ""} {
			re := regexp.MustCompile(pattern)
			var want []string
			for _, line := range lines {
				if re.MatchString(line.text) {
					want = append(want, line.text)
				}
			}
			for _, q := range []SearchRequest{{Limit: 1000}, {Limit: 1 + r.IntN(3)}, {Limit: 1000, Scan: 1 + uint64(r.IntN(2000))}, {Limit: 2, Scan: 100, Frame: 900}} {
				q.Pattern = pattern
				var got []string
				for _, m := range p.searchAll(q) {
					got = append(got, m.Line)
				}
				for pattern == "" && len(got) > len(lines) { // the cursor's row, and what is below it
					if got[len(got)-1] != "" {
						break
					}
					got = got[:len(got)-1]
				}
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Fatalf("round %d: %q by %+v:\n%q, not\n%q", round, pattern, q, got, want)
				}
			}
		}
		p.checkAddresses()
		p.checkRange(r, lines)
	}
}

// checkAddresses: the row that a match names is where the line is, the screen at its
// offset shows the end of it, and lines that are still there have a row.
func (p *tape) checkAddresses() {
	b := p.term.Bounds()
	addressed := 0
	for _, m := range p.searchAll(SearchRequest{Pattern: "^[0-9]+", Limit: 1000}) {
		if m.Row == nil {
			continue
		}
		addressed++
		if *m.Epoch != b.Epoch || *m.Row < b.Oldest || *m.Row >= b.End {
			p.t.Fatalf("%+v is outside %+v", m, b)
		}
		var text []byte
		for row := range p.term.Rows(*m.Row, b.End) {
			text = append(text, row.Text...)
			if !row.Wrapped {
				break
			}
		}
		if got := strings.TrimRight(string(text), " "); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(m.Line, " ", "") {
			p.t.Fatalf("row %d holds %q, not %q", *m.Row, got, m.Line)
		}
	}
	if addressed == 0 {
		p.t.Fatal("no line has a row")
	}
}

// checkRange: a range of offsets has the lines whose last byte lies in it, and at its
// end that which is on the screen.
func (p *tape) checkRange(r *rand.Rand, lines []written) {
	from := uint64(r.IntN(len(p.stream)))
	to := from + uint64(r.IntN(len(p.stream)-int(from)+1))
	if n, in := p.gapAt(from), p.gapAt(to); n || in {
		return
	}
	seen := map[string]bool{}
	for _, m := range p.searchAll(SearchRequest{Pattern: "^[0-9]+", Limit: 7, Scan: 300, From: &from, To: &to}) {
		if m.Offset <= from || m.Offset > to {
			p.t.Fatalf("%+v is not in (%d, %d]", m, from, to)
		}
		seen[m.Line] = true
	}
	for _, line := range lines { // those that were begun and ended in it
		if line.begin >= from && line.end <= to && !seen[line.text] {
			p.t.Fatalf("%+v is not found in (%d, %d]", line, from, to)
		}
	}
}

func (p *tape) gapAt(offset uint64) bool {
	for from, n := range p.lost {
		if offset > from && offset < from+uint64(n) {
			return true
		}
	}
	return false
}

// FuzzMatcher: looking for a required text first changes no answer.
func FuzzMatcher(f *testing.F) {
	for _, pattern := range []string{"error", "err(or)+s?", "a|b", "(?i)x", "x{2,3}y", "", "(?s).*end$", "[ab]c", "é{1}", `\QX.Y\E`} {
		f.Add(pattern, []byte("an error: xxy end"))
	}
	f.Fuzz(func(t *testing.T, pattern string, line []byte) {
		re, err := regexp.Compile(pattern)
		p, merr := compile(pattern)
		if merr != nil {
			if err == nil && len(pattern) <= maxPattern && program(t, pattern) < maxProgram/4 {
				t.Fatalf("%q: %v", pattern, merr)
			}
			return
		}
		if n := program(t, pattern); err != nil || len(pattern) > maxPattern || n > maxProgram+2 {
			t.Fatalf("%q, of %d instructions, is a pattern (%v)", pattern, n, err)
		}
		found, merr := p.match(t.Context(), line)
		if merr != nil || found != re.Match(line) {
			t.Fatalf("%q on %q: %v (%v)", pattern, line, found, merr)
		}
		at, merr := p.find(t.Context(), line)
		if merr != nil || !slices.Equal(at, re.FindIndex(line)) {
			t.Fatalf("%q on %q: %v (%v)", pattern, line, at, merr)
		}
	})
}

// FuzzSearchCursor: what is no cursor is refused, and one that is reads back.
func FuzzSearchCursor(f *testing.F) {
	f.Add(searchPlace{}.cursor([16]byte{1}, 2, "x"))
	f.Add("cq1:AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSearchCursor(text, [16]byte{1}, 2, "x")
		if err == nil && s.cursor([16]byte{1}, 2, "x") != text {
			t.Fatalf("%q reads as %+v", text, s)
		}
	})
}

// TestSearchInPieces: a search that goes on behind a gap, a restart or a respawn, or
// in the middle of what was on the screen there, finds each line once.
func TestSearchInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	st := newStore(t)
	for round := range rounds(200) {
		p := newTape(t, st, round, 20, 2+r.IntN(6))
		var want []string
		n := 0
		for range 1 + r.IntN(12) {
			for range r.IntN(8) {
				line := fmt.Sprintf("line %d", n)
				n++
				p.write([]byte(line + strings.Repeat("\r\n", 1+r.IntN(3))))
				want = append(want, line)
			}
			switch r.IntN(4) {
			case 0: // a full disk: the terminal has seen what was lost
				lost := "lost\r\n"
				p.term.Feed([]byte(lost))
				p.log.AppendGap(store.Time{}, uint64(len(lost)), nil)
				p.checkpoint()
			case 1:
				p.log.Append(replay.MarkRestart, store.Time{}, replay.AppendRestart(nil, 0))
				p.term.Restart(0)
				p.respawn()
			case 2:
				p.respawn()
			}
		}
		for _, q := range []SearchRequest{{Limit: 1}, {Limit: 3}, {Limit: 1000, Scan: 1}, {Limit: 2, Scan: 30}, {Limit: 1, Pattern: "^"}} {
			q.Pattern = cmp.Or(q.Pattern, "^line ")
			var got []string
			for calls := 0; ; calls++ {
				if calls > 10*(len(want)+10) {
					t.Fatalf("round %d, %+v: no end", round, q)
				}
				a, err := Search(t.Context(), p, q, time.Now)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range a.Matches {
					if strings.HasPrefix(m.Line, "line") {
						got = append(got, m.Line)
					}
				}
				if !a.More {
					break
				}
				q.Cursor = &a.Cursor
			}
			if !slices.Equal(got, want) {
				t.Fatalf("round %d, %+v: %q, not %q", round, q, got, want)
			}
		}
	}
}
