package replay_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// xvtLook returns what x/vt's emulator shows behind in; an error when it
// panics.
func xvtLook(cols, rows int, in []byte) (v view, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("x/vt panics: %v", p)
		}
	}()
	e := vt.NewEmulator(cols, rows)
	e.SetScrollbackSize(scrollback)
	// A query that nobody reads the answer of would block Write for good.
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, e)
	}()
	defer func() {
		e.InputPipe().(io.Closer).Close()
		<-drained
	}()
	if _, err := e.Write(in); err != nil {
		return view{}, err
	}
	for y := range rows {
		v.Screen = append(v.Screen, xvtRow(cols, func(x int) *uv.Cell { return e.CellAt(x, y) }))
	}
	v.History = []string{}
	for y := range e.ScrollbackLen() {
		v.History = append(v.History, xvtRow(cols, func(x int) *uv.Cell { return e.ScrollbackCellAt(x, y) }))
	}
	p := e.CursorPosition()
	v.Cursor = [2]int{min(p.X, cols-1), p.Y}
	return v, nil
}

// xvtRow returns the text of a row of cells, trailing blanks trimmed.
func xvtRow(cols int, at func(x int) *uv.Cell) string {
	var b strings.Builder
	for x := 0; x < cols; {
		c := at(x)
		if c == nil || c.Content == "" {
			b.WriteByte(' ')
			x++
			continue
		}
		b.WriteString(c.Content)
		x += max(1, c.Width)
	}
	return strings.TrimRight(b.String(), " ")
}

// knownRight draws one operation of those on which x/vt v0.1.0 agrees with
// xterm.js and tmux: explicit parameters within the screen, text in ASCII that
// does not lean on a pending wrap at erasures, and none of the functions that
// the decision record lists as wrong.
func (s *stream) knownRight() string {
	switch s.r.IntN(12) {
	case 0:
		return fmt.Sprintf("\x1b[%d;%dH", 1+s.r.IntN(s.rows), 1+s.r.IntN(s.cols))
	case 1:
		return fmt.Sprintf("\x1b[%d%s", 1+s.r.IntN(3), s.one("A", "B", "C", "D", "E", "F"))
	case 2:
		return fmt.Sprintf("\x1b[%dG", 1+s.r.IntN(s.cols))
	case 3:
		return fmt.Sprintf("\x1b[%dd", 1+s.r.IntN(s.rows))
	case 4:
		return "\r" + s.one("\x1b[K", "\x1b[2K", "\x1b[J")
	case 5:
		return fmt.Sprintf("\r\x1b[%d%s", 1+s.r.IntN(3), s.one("X", "P", "@"))
	case 6:
		return s.one("\x1b[1;31m", "\x1b[m", "\x1b[38;5;200m", "\x1b[38;2;3;4;5m", "\x1b]0;title\x07", "\x1b]8;;http://x.example\x07", "\x1b]8;;\x07")
	case 7:
		return s.one("\r\n", "\r\n\r\n", "\r", "\b")
	case 8:
		return "\r\x1b7" + s.word(2) + "\x1b8"
	}
	return s.word(1 + s.r.IntN(s.cols))
}

// TestXVT runs x/vt's emulator beside the terminal on generated streams of
// the functions where x/vt is known to be right: a second opinion that needs
// nothing but Go.
func TestXVT(t *testing.T) {
	for seed := range uint64(1500) {
		s := &stream{r: rand.New(rand.NewPCG(seed, 6))}
		size := sizes[s.r.IntN(len(sizes))]
		s.cols, s.rows = max(4, size[0]), max(3, size[1])
		for range 1 + s.r.IntN(40) {
			s.ops = append(s.ops, caseStep{In: []byte(s.knownRight())})
		}
		c := s.asCase(fmt.Sprintf("xvt-%d", seed), "xvt")
		want, err := xvtLook(c.Cols, c.Rows, c.Steps[0].In)
		if err != nil {
			t.Fatal(err)
		}
		c.Screen, c.Cursor, c.History = want.Screen, &want.Cursor, &want.History
		if d := c.diff(look(t, c.run(whole))); d != "" {
			t.Fatalf("%s, %dx%d, x/vt shows otherwise: %s\n%s", c.Name, c.Cols, c.Rows, c.quote(), d)
		}
	}
}

// TestXVTCases logs how x/vt fares on the case files, for the decision record
// (docs/decisions). It asserts nothing: the next x/vt may do better.
func TestXVTCases(t *testing.T) {
	for _, file := range []string{"terminal.jsonl", "programs.jsonl"} {
		cases, matched, lost, broken := 0, 0, 0, 0
		for _, c := range readCases(t, file) {
			if slices.ContainsFunc(c.Steps, func(s caseStep) bool { return s.Resize != nil }) {
				continue
			}
			var in []byte
			for _, s := range c.Steps {
				in = append(in, s.In...)
			}
			cases++
			v, err := xvtLook(c.Cols, c.Rows, in)
			switch {
			case err != nil:
				broken++
			case c.diff(v) == "":
				matched++
			case c.History != nil && c.Screen != nil && textLost(slices.Concat(*c.History, c.Screen), slices.Concat(v.History, v.Screen)):
				lost++
			}
		}
		t.Logf("%s: x/vt matches %d of %d cases without a resize; text is nowhere in %d; %d panics", file, matched, cases, lost, broken)
	}
}

// textLost tells whether got has fewer of some character than want.
func textLost(want, got []string) bool {
	left := map[rune]int{}
	for _, r := range strings.Join(got, "") {
		left[r]++
	}
	for _, r := range strings.Join(want, "") {
		if r == ' ' {
			continue
		}
		if left[r]--; left[r] < 0 {
			return true
		}
	}
	return false
}
