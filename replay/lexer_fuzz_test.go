package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"looptape/replay"
)

// shownText is what a text filter keeps of a stream: runs of printable
// characters and the code points of controls; sequences leave a mark each.
type shownText struct {
	tb    testing.TB
	lexer replay.Lexer
	b     strings.Builder
	place bool // also carry the lexer over through its AppendState at each call
}

func (s *shownText) write(p []byte) {
	if s.place {
		var l replay.Lexer
		place := s.lexer.AppendState(nil)
		if len(place) > 16 {
			s.tb.Fatalf("a place of %d bytes", len(place))
		}
		if err := l.SetState(place); err != nil {
			s.tb.Fatalf("SetState(%x): %v", place, err)
		}
		s.lexer = l
	}
	idle := 0
	for len(p) > 0 {
		tok, n := s.lexer.Next(p)
		if n == 0 {
			if idle++; idle > 1 {
				s.tb.Fatalf("Next takes nothing of %q twice", p)
			}
		} else {
			idle = 0
		}
		p = p[n:]
		switch tok.Kind {
		case replay.Text:
			if !utf8.Valid(tok.Text) || len(tok.Text) == 0 {
				s.tb.Fatalf("text %q", tok.Text)
			}
			if i := strings.IndexFunc(string(tok.Text), func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }); i >= 0 {
				s.tb.Fatalf("a control in the text %q", tok.Text)
			}
			s.b.Write(tok.Text)
		case replay.Control:
			fmt.Fprintf(&s.b, "<%x>", tok.Code)
		case replay.None:
			if len(p) > 0 {
				s.tb.Fatalf("None with %q left", p)
			}
		}
	}
}

// FuzzLexer: any cut of a stream gives the same text and controls, also when
// the lexer is carried over each cut by its few bytes of state.
func FuzzLexer(f *testing.F) {
	seeds(f, func(in []byte, cols, _ uint16) { f.Add(in, uint64(cols)) })
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		want := shownText{tb: t}
		want.write(in)
		for _, place := range []bool{false, true} {
			got := shownText{tb: t, place: place}
			for cut, p := randomCuts(seed), in; len(p) > 0; {
				n := min(cut(len(p)), len(p))
				got.write(slices.Clone(p[:n]))
				p = p[n:]
			}
			if got.b.String() != want.b.String() {
				t.Fatalf("%q cut at random (carried over %v):\n got %q\nwant %q", in, place, got.b.String(), want.b.String())
			}
		}
	})
}
