package replay_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"looptape/replay"
)

// scrollback is the history limit of every terminal of these tests unless a
// test is about the limit itself.
const scrollback = 10000

// A termCase is one line of a case file (testdata/*.jsonl): input, and what
// xterm.js 6.0.0 and tmux 3.3a both show afterwards. A nil Screen, Cursor or
// History was not agreed on and is not asserted.
type termCase struct {
	Name    string     `json:"name"`
	Group   string     `json:"group"`
	Cols    int        `json:"cols"`
	Rows    int        `json:"rows"`
	Steps   []caseStep `json:"steps,omitempty"`
	Screen  []string   `json:"screen,omitempty"`
	Cursor  *[2]int    `json:"cursor,omitempty"`
	History *[]string  `json:"history,omitempty"`
}

// A caseStep is one piece of input, or one change of size (columns, rows).
type caseStep struct {
	In     []byte  `json:"in,omitempty"`
	Resize *[2]int `json:"resize,omitempty"`
}

// readCases returns the cases of testdata/name.
func readCases(tb testing.TB, name string) []termCase {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var cases []termCase
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var c termCase
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			tb.Fatalf("%s, case %d: %v", name, len(cases)+1, err)
		}
		cases = append(cases, c)
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
	return cases
}

// A cutter says how many of the n bytes that are left go into the next Feed.
type cutter func(n int) int

func whole(n int) int { return n }

func bytewise(int) int { return 1 }

// randomCuts cuts at points that depend on the seed alone.
func randomCuts(seed uint64) cutter {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(n int) int { return 1 + r.IntN(min(n, 1+r.IntN(64))) }
}

// feed hands p to t in the pieces that cut names.
func feed(t *replay.Terminal, p []byte, cut cutter) {
	for len(p) > 0 {
		n := min(cut(len(p)), len(p))
		// The piece is a copy that is spoiled at once: Feed must not keep it.
		piece := bytes.Clone(p[:n])
		t.Feed(piece)
		for i := range piece {
			piece[i] = 'Z'
		}
		p = p[n:]
	}
}

// run returns the terminal behind all steps of c.
func (c *termCase) run(cut cutter) *replay.Terminal {
	t := replay.New(c.Cols, c.Rows, scrollback)
	for _, s := range c.Steps {
		if s.Resize != nil {
			t.Resize(s.Resize[0], s.Resize[1])
			continue
		}
		feed(t, s.In, cut)
	}
	return t
}

// A view is what a person sees of a terminal, in the form of the case files:
// trailing blanks trimmed, a pending wrap read as the last column.
type view struct {
	Screen  []string
	Cursor  [2]int
	History []string
}

// look returns t's view. t itself is left alone: the history behind an
// alternate screen is read from a copy that has left it.
func look(tb testing.TB, t *replay.Terminal) view {
	tb.Helper()
	b := t.Bounds()
	v := view{Screen: rowTexts(t, b.Active, b.End)}
	c := t.Cursor()
	v.Cursor = [2]int{min(c.Col, b.Cols-1), c.Row}
	if b.Screen == "alternate" {
		t = restored(tb, t)
		t.Feed([]byte("\x18\x1b[?1047l"))
		b = t.Bounds()
	}
	v.History = rowTexts(t, b.Oldest, b.Active)
	return v
}

// rowTexts returns the texts of the rows [start, end), trailing blanks trimmed.
func rowTexts(t *replay.Terminal, start, end uint64) []string {
	texts := []string{}
	for r := range t.Rows(start, end) {
		texts = append(texts, strings.TrimRight(string(r.Text), " "))
	}
	return texts
}

// restored returns a second terminal, made from t's state.
func restored(tb testing.TB, t *replay.Terminal) *replay.Terminal {
	tb.Helper()
	c, err := replay.Restore(t.State())
	if err != nil {
		tb.Fatalf("Restore(State()): %v", err)
	}
	return c
}

// diff says what of v is not as c expects; "" when all is.
func (c *termCase) diff(v view) string {
	var b strings.Builder
	if c.Screen != nil && !slices.Equal(c.Screen, v.Screen) {
		b.WriteString("screen:\n" + diffRows(c.Screen, v.Screen))
	}
	if c.Cursor != nil && *c.Cursor != v.Cursor {
		fmt.Fprintf(&b, "cursor: want %v, got %v\n", *c.Cursor, v.Cursor)
	}
	if c.History != nil && !slices.Equal(*c.History, v.History) {
		b.WriteString("history:\n" + diffRows(*c.History, v.History))
	}
	return b.String()
}

// diffRows lists the rows that differ, at most ten of them.
func diffRows(want, got []string) string {
	var b strings.Builder
	shown := 0
	for i := range max(len(want), len(got)) {
		w, g := "(no row)", "(no row)"
		if i < len(want) {
			w = fmt.Sprintf("%q", want[i])
		}
		if i < len(got) {
			g = fmt.Sprintf("%q", got[i])
		}
		if w == g {
			continue
		}
		if shown++; shown > 10 {
			b.WriteString("  ...\n")
			break
		}
		fmt.Fprintf(&b, "  row %d: want %s\n          got %s\n", i, w, g)
	}
	return b.String()
}

// seedOf derives a seed from a case's name.
func seedOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// TestCases feeds every case of the case files whole, byte by byte and cut at
// random, and compares with what the references show.
func TestCases(t *testing.T) {
	for _, file := range []string{"terminal.jsonl", "programs.jsonl", "generated.jsonl"} {
		for _, c := range readCases(t, file) {
			t.Run(c.Group+"/"+c.Name, func(t *testing.T) {
				ways := []struct {
					name string
					cut  cutter
				}{{"whole", whole}, {"byte by byte", bytewise}}
				for i := range 4 {
					ways = append(ways, struct {
						name string
						cut  cutter
					}{fmt.Sprintf("random cuts %d", i), randomCuts(seedOf(c.Name) + uint64(i))})
				}
				for _, w := range ways {
					if d := c.diff(look(t, c.run(w.cut))); d != "" {
						t.Fatalf("%s, fed %s, %dx%d, steps %s\n%s", c.Name, w.name, c.Cols, c.Rows, c.quote(), d)
					}
				}
			})
		}
	}
}

// quote renders the steps of a case for a message, cut short when long.
func (c *termCase) quote() string {
	var b strings.Builder
	for i, s := range c.Steps {
		if i > 0 {
			b.WriteString(", ")
		}
		if s.Resize != nil {
			fmt.Fprintf(&b, "resize %dx%d", s.Resize[0], s.Resize[1])
			continue
		}
		q := fmt.Sprintf("%q", s.In)
		if len(q) > 600 {
			q = q[:300] + " ... " + q[len(q)-300:]
		}
		b.WriteString(q)
	}
	return b.String()
}

// TestCasesCopy says when testdata's copy of the case files and the folder
// shared/cases beside the repository differ. Without that folder there is
// nothing to compare with.
func TestCasesCopy(t *testing.T) {
	dir := filepath.Join(moduleRoot(t), "..", "shared", "cases")
	for _, name := range []string{"terminal.jsonl", "programs.jsonl"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			t.Skip("no shared/cases beside the repository")
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("replay/testdata/%s differs from ../shared/cases/%s: copy it anew", name, name)
		}
	}
}

// moduleRoot returns the folder of go.mod.
func moduleRoot(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}
