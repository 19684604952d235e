package replay_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
)

// encoded returns the checkpoint of t: everything that t is, as bytes.
func encoded(t *replay.Terminal) []byte { return checkpoint.Encode(nil, t.State()) }

// reopened returns a terminal made from t's checkpoint bytes.
func reopened(tb testing.TB, t *replay.Terminal) *replay.Terminal {
	tb.Helper()
	s, err := checkpoint.Decode(encoded(t))
	if err != nil {
		tb.Fatalf("Decode(Encode(State())): %v", err)
	}
	c, err := replay.Restore(s)
	if err != nil {
		tb.Fatalf("Restore: %v", err)
	}
	return c
}

// same fails unless both terminals have the same state to the byte.
func same(tb testing.TB, what string, got, want *replay.Terminal) {
	tb.Helper()
	g, w := encoded(got), encoded(want)
	if bytes.Equal(g, w) {
		return
	}
	vg, vw := look(tb, got), look(tb, want)
	c := termCase{Screen: vw.Screen, Cursor: &vw.Cursor, History: &vw.History}
	tb.Fatalf("%s: states differ\n%s%s", what, c.diff(vg), diffStates(got.State(), want.State()))
}

// diffStates names the fields of two states that differ.
func diffStates(got, want *checkpoint.State) string {
	var b strings.Builder
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range g.NumField() {
		x, y := g.Field(i).Interface(), w.Field(i).Interface()
		if !reflect.DeepEqual(x, y) {
			gs, ws := fmt.Sprintf("%+v", x), fmt.Sprintf("%+v", y)
			fmt.Fprintf(&b, "State.%s: got %s\n  want %s\n", g.Type().Field(i).Name, gs[:min(len(gs), 600)], ws[:min(len(ws), 600)])
		}
	}
	return b.String()
}

// corpus returns input that exercises every function: the inputs of the small
// cases and two generated streams of each group.
func corpus(tb testing.TB) []termCase {
	cases := readCases(tb, "terminal.jsonl")
	cases = append(cases, readCases(tb, "generated.jsonl")...)
	for _, g := range groupNames() {
		for seed := uint64(1000); seed < 1002; seed++ {
			cases = append(cases, generate(g, seed, 60).asCase(fmt.Sprintf("%s-%d", g, seed), g))
		}
	}
	return cases
}

// TestCheckpointEverywhere is F8 of the field cases: a terminal that was
// checkpointed and restored behind every byte of a stream is the same one, and
// stays it to the stream's end.
func TestCheckpointEverywhere(t *testing.T) {
	for _, c := range corpus(t) {
		whole := c.run(whole)
		again := replay.New(c.Cols, c.Rows, scrollback)
		for _, s := range c.Steps {
			if s.Resize != nil {
				again.Resize(s.Resize[0], s.Resize[1])
				again = reopened(t, again)
			}
			for i := range s.In {
				again.Feed(s.In[i : i+1])
				next := reopened(t, again)
				if !bytes.Equal(encoded(next), encoded(again)) {
					same(t, fmt.Sprintf("%s: restored behind byte %d of %s", c.Name, i+1, c.quote()), next, again)
				}
				again = next
			}
		}
		same(t, fmt.Sprintf("%s: checkpoint behind every byte of %s", c.Name, c.quote()), again, whole)
	}
}

// TestCheckpointRecordings is F8 on recordings of real programs: cut at
// places spread over the stream, restored, and fed the rest.
func TestCheckpointRecordings(t *testing.T) {
	for _, c := range readCases(t, "programs.jsonl") {
		want := c.run(whole)
		var in []byte
		for _, s := range c.Steps {
			in = append(in, s.In...)
		}
		cuts := randomCuts(seedOf(c.Name))
		for range 8 {
			k := (cuts(len(in)) * 7919) % (len(in) + 1)
			a := replay.New(c.Cols, c.Rows, scrollback)
			a.Feed(in[:k])
			b := reopened(t, a)
			same(t, fmt.Sprintf("%s cut at %d", c.Name, k), b, a)
			b.Feed(in[k:])
			same(t, fmt.Sprintf("%s cut at %d, and the rest", c.Name, k), b, want)
		}
	}
}

// TestSplitUTF8 is F7 of the field cases, the terminal's half: characters and
// clusters that arrive in pieces show what has arrived, and are whole at the
// end, without U+FFFD on the way.
func TestSplitUTF8(t *testing.T) {
	for _, cluster := range []string{
		"á", "漢", "😀", "e\u0301", "e\u0301\u0323", "漢\u0301",
		"👨\u200d👩\u200d👧\u200d👦", "👍🏽", "🇩🇪", "❤\ufe0f", "각", "\u1112\u1161\u11ab", "क्षि",
	} {
		in := "a" + cluster + "b"
		want := replay.New(20, 3, scrollback)
		want.Feed([]byte(in))
		for cut := range len(in) {
			got := replay.New(20, 3, scrollback)
			got.Feed([]byte(in[:cut]))
			if row := look(t, got).Screen[0]; strings.Contains(row, "\ufffd") {
				t.Errorf("%q cut at %d shows %q", in, cut, row)
			}
			got = reopened(t, got)
			got.Feed([]byte(in[cut:]))
			same(t, fmt.Sprintf("%q cut at %d", in, cut), got, want)
		}
		if row := look(t, want).Screen[0]; row != in {
			t.Errorf("%q shows as %q", in, row)
		}
	}
	split := replay.New(20, 3, scrollback)
	split.Feed([]byte("\xc3"))
	split.Feed([]byte("\xa1"))
	if v := look(t, split); v.Screen[0] != "á" || v.Cursor != [2]int{1, 0} {
		t.Errorf(`"\xc3" then "\xa1": %q, cursor %v`, v.Screen[0], v.Cursor)
	}
}

// TestClusterWidth: an emoji family is one cell of width 2 wherever it is cut.
func TestClusterWidth(t *testing.T) {
	for in, col := range map[string]int{
		"👨\u200d👩\u200d👧\u200d👦": 2, "👍🏽": 2, "🇩🇪": 2, "❤\ufe0f": 2, "e\u0301": 1, "漢\u0301": 2, "\u1112\u1161\u11ab": 2,
	} {
		got := replay.New(20, 3, scrollback)
		feed(got, []byte(in), bytewise)
		if c := got.Cursor(); c.Col != col {
			t.Errorf("%q: the cursor is in column %d, want %d", in, c.Col, col)
		}
	}
}

// TestInvalidUTF8: one U+FFFD per maximal subpart (Unicode 16, table 3-8 and
// the W3C's practice), and nothing that follows is swallowed.
func TestInvalidUTF8(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"caf\xe9 bar", "caf\ufffd bar"},
		{"\x80\xbfa", "\ufffd\ufffda"},
		{"\xc0\xafa", "\ufffd\ufffda"},
		{"\xe0\x80\x80a", "\ufffd\ufffd\ufffda"},
		{"\xed\xa0\x80a", "\ufffd\ufffd\ufffda"},
		{"\xf0\x9f\x98a", "\ufffda"},
		{"\xf4\x90\x80\x80a", "\ufffd\ufffd\ufffd\ufffda"},
		{"\xe6\xbc\xe6\xbc\xa2a", "\ufffd漢a"},
		{"\xf5\xffa", "\ufffd\ufffda"},
		{"\xe6\x1b[31ma", "\ufffda"},
		{"\x9b31ma", "\ufffd31ma"},
		{"\x9d0;t\x07a", "\ufffd0;ta"},
		{"\xc2\xc2\xa1a", "\ufffd¡a"},
	} {
		for _, cut := range []cutter{whole, bytewise} {
			got := replay.New(20, 3, scrollback)
			feed(got, []byte(c.in), cut)
			if row := look(t, got).Screen[0]; row != c.want {
				t.Errorf("%q shows %q, want %q", c.in, row, c.want)
			}
		}
	}
}

// TestRegionHistory is F6 of the field cases, for a whole kind of regions:
// rows that scroll off a region go to the history only if its top is the
// screen's and the screen is the main one; rows outside a region never move.
func TestRegionHistory(t *testing.T) {
	const cols, rows, lines = 40, 10, 30
	for _, alt := range []bool{false, true} {
		for top := 1; top <= 5; top++ {
			for bottom := top + 1; bottom <= rows; bottom++ {
				name := fmt.Sprintf("alternate %v, region %d-%d", alt, top, bottom)
				term := replay.New(cols, rows, scrollback)
				var in strings.Builder
				if alt {
					in.WriteString("\x1b[?1049h")
				}
				in.WriteString("\x1b[2J")
				for y := 1; y <= rows; y++ {
					if y < top || y > bottom {
						fmt.Fprintf(&in, "\x1b[%d;1Hfixed %d", y, y)
					}
				}
				fmt.Fprintf(&in, "\x1b[%d;%dr\x1b[%d;1H", top, bottom, bottom)
				for i := range lines {
					fmt.Fprintf(&in, "\r\nL%d", i)
				}
				in.WriteString("\x1b[r")
				term.Feed([]byte(in.String()))
				v := look(t, term)
				for y := 1; y <= rows; y++ {
					want := fmt.Sprintf("fixed %d", y)
					if y >= top && y <= bottom {
						want = fmt.Sprintf("L%d", lines-1-(bottom-y))
						if lines-1-(bottom-y) < 0 {
							want = ""
						}
					}
					if v.Screen[y-1] != want {
						t.Errorf("%s: row %d is %q, want %q", name, y, v.Screen[y-1], want)
					}
				}
				var want []string
				if top == 1 && !alt {
					// The region's blank rows scroll off first.
					want = make([]string, bottom-top+1)
					for i := range lines - (bottom - top + 1) {
						want = append(want, fmt.Sprintf("L%d", i))
					}
					want = want[len(want)-lines:]
				}
				if !slices.Equal(v.History, append([]string{}, want...)) {
					t.Errorf("%s: history %q, want %q", name, v.History, want)
				}
			}
		}
	}
}
