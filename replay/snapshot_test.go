package replay_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"looptape/checkpoint"
	"looptape/replay"
)

// copied returns a fresh terminal that was fed t's snapshot.
func copied(t *replay.Terminal, history int) *replay.Terminal {
	s := t.State()
	c := replay.New(s.Size.Cols, s.Size.Rows, s.Size.Scrollback)
	c.Feed(t.AppendSnapshot(nil, history))
	return c
}

// Bits of modes in a State.
var syncBit, insertBit, originBit = modeBit("\x1b[?2026h"), modeBit("\x1b[4h"), modeBit("\x1b[?6h")

func modeBit(set string) uint64 {
	t := replay.New(2, 2, 0)
	before := t.State().Modes.Bits
	t.Feed([]byte(set))
	return t.State().Modes.Bits ^ before
}

// A portrait is a State in words, one thing a line, with what AppendSnapshot excludes
// replaced by what arrives. loss says that something was replaced that may be seen
// again in what follows: blanks and wraps by a resize, text by REP and joining.
type portrait struct {
	s     *checkpoint.State
	lines []string
	loss  bool
}

func draw(t *replay.Terminal, history int) *portrait {
	p := &portrait{s: t.State()}
	s := p.s
	p.add("size %v", s.Size)
	h := s.History.Rows[s.History.Hidden:]
	if cut := len(h) - min(history, len(h)); cut > 0 {
		h = h[cut:]
		p.loss = true
	}
	p.loss = p.loss || s.History.Hidden > 0
	main := append(slices.Clone(h), s.Main.Rows...)
	pending := s.Cursor.Pending
	x, y := s.Cursor.X, s.Cursor.Y
	if s.Modes.Bits&originBit != 0 {
		if p.change(&y, min(max(y, s.Region.Top), s.Region.Bottom)) {
			pending, s.Text = false, checkpoint.TextState{}
		}
	}
	if s.OnAlt {
		p.rows("main", main, -1)
		p.rows("alternate", s.Alt.Rows, p.pendingRow(pending, y))
		p.add("main's cursor %d %d", s.Main.X, s.Main.Y)
		p.loss = p.loss || s.Main.Pending
	} else {
		p.rows("main", main, p.pendingRow(pending, len(h)+y))
	}
	p.saved("main", s.Main.Saved)
	p.saved("alternate", s.Alt.Saved)
	p.add("kitty %v %v", s.Main.Kitty, s.Alt.Kitty)
	p.add("cursor %d %d pending %v pen %s charsets %v style %d", x, y, pending, p.style(s.Cursor.Pen), s.Cursor.Charsets, s.Cursor.Style)
	p.add("region %v", s.Region)
	p.add("modes %x saved %x other keys %d", s.Modes.Bits&^syncBit, s.Modes.SavedBits, s.Modes.ModifyOtherKeys)
	p.loss = p.loss || s.Modes.Bits&syncBit != 0
	p.add("tabs %v", s.Tabs)
	p.add("palette %v", s.Palette)
	p.names()
	p.ending()
	return p
}

func (p *portrait) add(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// change sets v, and notes a loss if that changes it.
func (p *portrait) change(v *int, to int) bool {
	if *v == to {
		return false
	}
	*v, p.loss = to, true
	return true
}

func (p *portrait) pendingRow(pending bool, y int) int {
	if pending {
		return y
	}
	return -1
}

func (p *portrait) names() {
	n := p.s.Names
	for _, s := range append([]string{n.Title, n.Icon, n.Cwd}, append(n.Titles, n.Icons...)...) {
		if len(s) > replay.MaxTitle {
			p.add("names too long")
			p.loss = true
			return
		}
	}
	p.add("names %q", n)
}

// ending is the unfinished sequence and what the next character may join.
func (p *portrait) ending() {
	l, text := p.s.Lexer, p.s.Text
	const csiIgnore, dcsPass, dcsIgnore, oscString = 6, 11, 12, 7
	switch {
	case l.Phase == csiIgnore, l.Phase == oscString && l.Dropped:
		l = checkpoint.Lexer{Phase: l.Phase}
	case l.Phase == dcsIgnore, l.Phase == dcsPass && l.Dropped:
		l = checkpoint.Lexer{Phase: dcsIgnore}
	}
	p.add("lexer %v", l)
	if text.Joins && !p.leftIs(text) {
		text = checkpoint.TextState{}
		p.loss = true
	}
	p.add("text %q %v %U", text.Last, text.Joins, text.Code)
}

// leftIs says whether the cluster left of the cursor is the one that text is about.
func (p *portrait) leftIs(text checkpoint.TextState) bool {
	c, rows := p.s.Cursor, p.s.Main.Rows
	if p.s.OnAlt {
		rows = p.s.Alt.Rows
	}
	end := c.X
	if c.Pending {
		end++
	}
	if rows[c.Y].Flags&checkpoint.RowWrapped != 0 && p.s.Modes.Bits&insertBit != 0 {
		return false
	}
	x, cells := 0, rows[c.Y].Text
	for len(cells) > 0 {
		unit, cluster, width := firstCell(cells)
		width = min(width, p.s.Size.Cols)
		if x+width == end {
			cluster = p.fit(cluster, width)
			r, _ := utf8.DecodeLastRune(cluster)
			return r == text.Code && (text.Last == "" || text.Last == string(cluster)) && c.Pending == (end == p.s.Size.Cols)
		}
		x += width
		cells = cells[len(unit):]
	}
	return false
}

func (p *portrait) style(n int) string {
	s := p.s.Styles[n]
	if s == (checkpoint.Style{}) {
		return ""
	}
	link := checkpoint.Link{}
	if s.Link > 0 {
		link = p.s.Links[s.Link-1]
		if len(link.URI) > replay.MaxLink || len(link.ID) > 256 {
			link, p.loss = checkpoint.Link{}, true
		}
	}
	return fmt.Sprintf("%x/%x/%x %x %q", s.Fg, s.Bg, s.Ul, s.Attrs, link)
}

func (p *portrait) saved(name string, v *checkpoint.Saved) {
	if v == nil {
		p.add("%s saved nothing", name)
		return
	}
	x, y := v.X, v.Y
	p.change(&x, min(x, p.s.Size.Cols-1))
	p.change(&y, min(y, p.s.Size.Rows-1))
	p.loss = p.loss || v.Pending
	p.add("%s saved %d %d pen %s charsets %v origin %v", name, x, y, p.style(v.Pen), v.Charsets, v.Origin)
}

// rows draws the rows of a screen, the history above it included. A wrap is pending at
// the end of row pending.
func (p *portrait) rows(name string, rows []checkpoint.Row, pending int) {
	continues := false
	for y, r := range rows {
		wrapped := r.Flags&checkpoint.RowWrapped != 0
		if wrapped && (y == len(rows)-1 || y == pending) {
			wrapped, p.loss = false, true
		}
		solid := func(x int) bool {
			return x == p.s.Size.Cols-1 && (wrapped || y == pending) || p.s.Size.Cols == 1 && continues
		}
		p.add("%s %d wrapped %v: %s", name, y, wrapped, p.row(r, solid))
		continues = wrapped
	}
}

// row draws the cells of r up to the last that is not just blank. Blanks arrive as
// spaces where solid, and where they have a style other than a background.
func (p *portrait) row(r checkpoint.Row, solid func(x int) bool) string {
	cols := p.s.Size.Cols
	cells := make([]string, cols)
	if r.Flags&checkpoint.RowWrapped != 0 && r.Width < cols {
		cells[cols-1] = "left to a wide character"
	}
	blank := func(x int, style int) {
		s := p.s.Styles[style]
		switch {
		case cells[x] != "":
		case solid(x) || s != (checkpoint.Style{Bg: s.Bg}):
			cells[x], p.loss = fmt.Sprintf("%q%s", " ", p.style(style)), true
		case style != 0:
			cells[x] = "blank" + p.style(style)
		}
	}
	x, at := 0, 0
	for text := r.Text; len(text) > 0; {
		unit, cluster, width := firstCell(text)
		width = min(width, cols)
		cluster = p.fit(cluster, width)
		if style := styleAt(r.Runs, at); unit[0] == 0 {
			blank(x, style)
		} else {
			cells[x] = fmt.Sprintf("%q%s", cluster, p.style(style))
		}
		if width == 2 {
			cells[x+1] = "-"
		}
		x += width
		at += len(unit)
		text = text[len(unit):]
	}
	for ; x < cols; x++ {
		blank(x, 0)
	}
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	return strings.Join(cells, "|")
}

// fit takes code points from the end of a cluster until it is not wider than width.
func (p *portrait) fit(cluster []byte, width int) []byte {
	for p.s.Size.Cols > 1 && displaywidth.Bytes(cluster) > width {
		_, n := utf8.DecodeLastRune(cluster)
		cluster, p.loss = cluster[:len(cluster)-n], true
	}
	return cluster
}

func styleAt(runs []checkpoint.Run, at int) int {
	for _, r := range runs {
		if at < r.Len {
			return r.Style
		}
		at -= r.Len
	}
	return 0
}

// firstCell reads the first cell of a Row's text: its bytes, what it shows (a zero byte
// for a blank), and its columns.
func firstCell(p []byte) (unit, cluster []byte, width int) {
	if p[0] == 0xFF {
		n := int(p[1] & 0x7F)
		return p[:2+n], p[2 : 2+n], 1 + int(p[1]>>7)
	}
	_, n := utf8.DecodeRune(p)
	return p[:n], p[:n], cmp.Or(displaywidth.Bytes(p[:n]), 1)
}

// alike fails unless both terminals look alike.
func alike(tb testing.TB, what string, got, want *replay.Terminal, history int) *portrait {
	tb.Helper()
	g, w := draw(got, history), draw(want, history)
	if !slices.Equal(g.lines, w.lines) {
		tb.Fatalf("%s:\n%s%s", what, diffRows(w.lines, g.lines), fmt.Sprintf("snapshot %q", want.AppendSnapshot(nil, history)))
	}
	return w
}

// checkSnapshot takes a snapshot of t and feeds it and then the steps of rest to a copy.
func checkSnapshot(tb testing.TB, what string, t *replay.Terminal, rest []caseStep) {
	tb.Helper()
	before := encoded(t)
	again := copied(t, scrollback)
	if !bytes.Equal(encoded(t), before) {
		tb.Fatalf("%s: AppendSnapshot changes the terminal", what)
	}
	if replies := again.TakeReplies(); len(replies) > 0 {
		tb.Fatalf("%s: the snapshot asks: %q", what, replies)
	}
	p := alike(tb, what, again, t, scrollback)
	alike(tb, what+", without history", copied(t, 0), t, 0)
	compared.all++
	if p.loss {
		return
	}
	compared.whole++
	t = restored(tb, t)
	for _, s := range rest {
		if s.Resize != nil {
			again.Resize(s.Resize[0], s.Resize[1])
			t.Resize(s.Resize[0], s.Resize[1])
		}
		again.Feed(s.In)
		t.Feed(s.In)
	}
	alike(tb, what+", and the rest", again, t, scrollback)
}

// compared counts the snapshots that were checked, and those without any loss.
var compared struct{ all, whole int }

// eachCut runs the steps of c and hands the terminal to f behind up to n places of its
// input, and behind its last step, with the steps that are left.
func eachCut(c termCase, n int, seed uint64, f func(t *replay.Terminal, at string, rest []caseStep)) {
	r := rand.New(rand.NewPCG(seed, 2))
	t := replay.New(c.Cols, c.Rows, scrollback)
	for i, s := range c.Steps {
		if s.Resize != nil {
			t.Resize(s.Resize[0], s.Resize[1])
			f(t, fmt.Sprintf("behind step %d", i), c.Steps[i+1:])
			continue
		}
		cuts := []int{len(s.In)}
		for range min(n, len(s.In)) {
			cuts = append(cuts, r.IntN(len(s.In)+1))
		}
		if n >= len(s.In) {
			for k := range s.In {
				cuts = append(cuts, k)
			}
		}
		slices.Sort(cuts)
		at := 0
		for _, k := range slices.Compact(cuts) {
			t.Feed(s.In[at:k])
			at = k
			rest := append([]caseStep{{In: s.In[k:]}}, c.Steps[i+1:]...)
			f(t, fmt.Sprintf("behind byte %d of step %d", k, i), rest)
		}
	}
}

// mostlyWhole counts anew, and fails in the end if the exceptions are not exceptional.
func mostlyWhole(t *testing.T) func() {
	compared.all, compared.whole = 0, 0
	return func() {
		if compared.whole < compared.all*9/10 {
			t.Errorf("only %d of %d snapshots were without any loss", compared.whole, compared.all)
		}
	}
}

// TestSnapshotCases: snapshots at some places of the small cases, and the rest.
func TestSnapshotCases(t *testing.T) {
	defer mostlyWhole(t)()
	for _, c := range corpus(t) {
		eachCut(c, 8, seedOf(c.Name), func(term *replay.Terminal, at string, rest []caseStep) {
			checkSnapshot(t, fmt.Sprintf("%s, %s, %dx%d %s", c.Name, at, c.Cols, c.Rows, c.quote()), term, rest)
		})
	}
}

// TestSnapshotStreams: the same for generated streams, with resizes.
func TestSnapshotStreams(t *testing.T) {
	defer mostlyWhole(t)()
	n := 40
	if testing.Short() {
		n = 5
	}
	for _, g := range groupNames() {
		for seed := range uint64(n) {
			c := generate(g, 5000+seed, 60).asCase(fmt.Sprintf("%s-%d", g, 5000+seed), g)
			eachCut(c, 6, seed, func(term *replay.Terminal, at string, rest []caseStep) {
				checkSnapshot(t, fmt.Sprintf("%s, %s, %dx%d %s", c.Name, at, c.Cols, c.Rows, c.quote()), term, rest)
			})
		}
	}
}

// TestSnapshotRecordings: the same for what real programs wrote.
func TestSnapshotRecordings(t *testing.T) {
	defer mostlyWhole(t)()
	for _, p := range readRecordings(t) {
		in := recording(t, p.Name)
		term := p.feed(in, whole)
		checkSnapshot(t, fmt.Sprintf("%s at %d", p.Name, p.At), term, []caseStep{{In: in[p.At:]}, {Resize: &[2]int{61, 17}}})
	}
	for _, c := range readCases(t, "programs.jsonl") {
		eachCut(c, 2, seedOf(c.Name), func(term *replay.Terminal, at string, rest []caseStep) {
			checkSnapshot(t, c.Name+", "+at, term, rest)
		})
	}
}

// TestSnapshotWithin: a limit gives the whole snapshot or none of it, and bounds what is
// made meanwhile, whatever a program has put on the screen.
func TestSnapshotWithin(t *testing.T) {
	term := replay.New(300, 200, 1000)
	var hostile []byte
	for i := range 300 * 200 { // each cell with a colour, a link and a cluster of its own
		hostile = fmt.Appendf(hostile, "\x1b[38;2;%d;%d;%dm\x1b]8;;http://%0100d\x1b\\e\u0301\u0302", i>>16, i>>8&255, i&255, i%4000)
	}
	term.Feed(hostile)
	whole := term.AppendSnapshot(nil, 0)
	if got, ok := term.AppendSnapshotWithin([]byte("x"), 0, len(whole)+1); !ok || string(got) != "x"+string(whole) {
		t.Errorf("exactly enough: %t, %d bytes of %d", ok, len(got), len(whole)+1)
	}
	for _, limit := range []int{0, 1, 1000, len(whole) / 2, len(whole) - 1} {
		got, ok := term.AppendSnapshotWithin(nil, 0, limit)
		if ok || len(got) > limit+1000 {
			t.Errorf("within %d of %d bytes: %t, %d bytes", limit, len(whole), ok, len(got))
		}
	}
}
