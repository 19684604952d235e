package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"looptape/checkpoint"
)

// TestStateSince: a State without the rows that earlier ones have, completed from
// those, restores to the same terminal as the whole State.
func TestStateSince(t *testing.T) {
	completed := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		term := New(5+r.IntN(40), 1+r.IntN(10), 50+r.IntN(200))
		line := func(n int) []byte {
			var b []byte
			for i := range n {
				b = fmt.Appendf(b, "\x1b[3%dmline %d %s\x1b]8;;http://%d/\a漢e\u0301\x1b]8;;\a", r.IntN(8), i, bytes.Repeat([]byte("x"), r.IntN(60)), r.IntN(3))
				if r.IntN(5) > 0 {
					b = append(b, "\x1b[m\r\n"...)
				}
			}
			return b
		}
		term.Feed(line(r.IntN(60)))
		bases := []*checkpoint.State{term.State()}
		row := term.Bounds().Active
		for range r.IntN(4) {
			term.Feed(line(r.IntN(30)))
			bases = append(bases, term.StateSince(row))
			row = term.Bounds().Active
		}
		term.Feed(line(r.IntN(30)))
		whole, delta := term.State(), term.StateSince(row)
		slices.Reverse(bases)
		for i, b := range bases {
			var err error
			if bases[i], err = checkpoint.DecodeBase(checkpoint.Encode(nil, b)); err != nil {
				t.Fatal(err)
			}
		}
		if err := delta.Complete(bases...); err != nil {
			continue // the base's rows are no longer all that is missing
		}
		got, err := Restore(delta)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(checkpoint.Encode(nil, got.State()), checkpoint.Encode(nil, whole)) {
			t.Fatalf("seed %d: the completed state differs\ngot  %+v\nwant %+v", seed, got.State(), whole)
		}
		completed++
	}
	if completed < 100 {
		t.Errorf("only %d of 200 states could be completed", completed)
	}
}

// TestRestoreRefuses: States that no terminal can be in are errors, not panics.
func TestRestoreRefuses(t *testing.T) {
	for name, spoil := range map[string]func(s *checkpoint.State){
		"size":       func(s *checkpoint.State) { s.Size.Cols = 0 },
		"scrollback": func(s *checkpoint.State) { s.Size.Scrollback = -1 },
		"cursor":     func(s *checkpoint.State) { s.Cursor.X = 80 },
		"region":     func(s *checkpoint.State) { s.Region.Bottom = 99 },
		"rows":       func(s *checkpoint.State) { s.Main.Rows = s.Main.Rows[1:] },
		"wide row":   func(s *checkpoint.State) { s.Main.Rows[0].Text = bytes.Repeat([]byte("x"), 81) },
		"control":    func(s *checkpoint.State) { s.Main.Rows[0].Text = []byte("a\x1bb") },
		"mark":       func(s *checkpoint.State) { s.Main.Rows[0].Text = []byte{0xFF, 5, 'a'} },
		"style":      func(s *checkpoint.State) { s.Cursor.Pen = 9 },
		"run":        func(s *checkpoint.State) { s.Main.Rows[0].Runs = []checkpoint.Run{{Len: 1, Style: -1}} },
		"tab":        func(s *checkpoint.State) { s.Tabs = []int{80} },
		"palette":    func(s *checkpoint.State) { s.Palette = []checkpoint.PaletteEntry{{Index: 999}} },
		"lexer":      func(s *checkpoint.State) { s.Lexer.Phase = 99 },
		"held":       func(s *checkpoint.State) { s.Lexer.Held = []byte("ab") },
		"hidden":     func(s *checkpoint.State) { s.History.Hidden = 3 },
	} {
		term := New(80, 24, 100)
		term.Feed([]byte("text"))
		s := term.State()
		spoil(s)
		if _, err := Restore(s); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
}
