package replay

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"looptape/checkpoint"
)

// AppendSnapshot appends to dst the bytes that make a fresh terminal of the same size
// what t is: a reset (RIS), the newest history rows of the scrollback (0: none; what
// there is at most), the screen, and behind an alternate screen the main one, with
// styles, hyperlinks and soft wraps; saved cursors, margins, tab stops, character
// sets, modes, keyboard flags, colours, titles and working directory; the cursor, the
// pen, and an unfinished sequence or character, so that the rest of the stream may
// follow at once. The bytes ask for nothing, and are valid UTF-8 but for the held
// bytes of an unfinished character at their end. t stays as it is.
//
// They are ECMA-48 and xterm's ctlseqs as xterm, xterm.js, tmux and ghostty have them;
// a terminal that lacks a function skips it. Only what differs from this terminal's
// initial state is set: what a program never touched stays with the other's defaults.
//
// Fed to New with t's size and scrollback they give t's State but for:
//
//   - Clock, Row.Written and what the line sink has had: they belong to the stream.
//   - Synchronized output (?2026), which is off: a screen would stay frozen.
//   - History beyond the rows asked for. A line that began there begins with the
//     first row carried, so MaxLine breaks it later, and a row that continued it
//     continues nothing.
//   - Whether a wrap was pending when a cursor was saved or its screen was left: no
//     sequence restores it. A saved cursor beyond the screen arrives at its border.
//   - A cursor outside the margins in origin mode: no sequence addresses such a place,
//     so it arrives at the nearest margin, and no wrap is pending.
//   - Blank cells that arrive as spaces, because nothing but printing makes them: in
//     the last column of a soft-wrapped row, or under a pending wrap; on a screen of
//     one column; and halves of broken wide characters, which kept a style.
//   - The soft wrap of a row at whose end a wrap is pending (SU and SD can do that):
//     what makes it pending unwraps the row. Nor that of the last row of a screen.
//   - A cluster that stands in fewer columns than it is wide, as happens in the last
//     one: it arrives without the marks that make it wide.
//   - That REP may follow, or a character join the last one, if that one is not left
//     of the cursor, for want of room or by an item before this, or, in insert mode, if
//     its row is soft-wrapped.
//   - Titles, a directory or hyperlinks of more than MaxTitle and MaxLink bytes, which
//     U+FFFD for invalid bytes can make of shorter ones; they are left out. So are
//     hyperlinks beyond the limits of the package.
//   - The contents of an unfinished sequence that will have no effect.
func (t *Terminal) AppendSnapshot(dst []byte, history int) []byte {
	dst, _ = t.AppendSnapshotWithin(dst, history, math.MaxInt)
	return dst
}

// AppendSnapshotWithin is AppendSnapshot with a limit: once dst is longer than limit
// bytes, it gives up, and ok is false. It takes not much more memory than that.
func (t *Terminal) AppendSnapshotWithin(dst []byte, history, limit int) (_ []byte, ok bool) {
	w := snapshot{t: t, b: dst, chars: defaultCharsets, limit: limit}
	// tmux does not leave the alternate screen at RIS; others keep the colours.
	w.put("\x1b[?1049l\x1bc\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\")
	w.names()
	onAlt := t.grid != &t.main
	if s := t.alt.saved; s != nil && !onAlt {
		w.put("\x1b[?1047h")
		w.save(s)
		w.put("\x1b[?1047l\x1b[H")
	}
	w.paint(w.mainRows(history), history > 0)
	w.kitty(t.main.kitty)
	if onAlt {
		w.enterAlternate()
		w.paint(w.screenRows(&t.alt), false)
		w.kitty(t.alt.kitty)
	}
	if s := t.grid.saved; s != nil {
		w.save(s)
	}
	w.tabStops()
	w.modes()
	w.cursor()
	w.b = t.lex.appendUnfinished(w.b)
	return w.b, !w.full()
}

// snapshot writes a snapshot and knows what the terminal that reads it has in force.
type snapshot struct {
	t     *Terminal
	b     []byte
	pen   style
	chars checkpoint.Charsets
	last  class // of the code point in front; 0 behind a control
	limit int   // of len(b); then no more rows are painted

	scratch []byte
}

// full says that the snapshot is longer than it may be.
func (w *snapshot) full() bool { return len(w.b) > w.limit }

func (w *snapshot) put(s string) { w.b, w.last = append(w.b, s...), 0 }

// csi writes a control sequence whose parameters are prefix and numbers.
func (w *snapshot) csi(prefix string, final string, numbers ...int) {
	w.put("\x1b[" + prefix)
	for i, n := range numbers {
		if i > 0 {
			w.b = append(w.b, ';')
		}
		w.b = strconv.AppendInt(w.b, int64(n), 10)
	}
	w.b = append(w.b, final...)
}

func (w *snapshot) osc(n int, text string) { w.put("\x1b]" + itoa(n) + ";" + text + "\x1b\\") }

// setPen makes s the pen.
func (w *snapshot) setPen(s style) {
	if !s.link.carried() {
		s.link = nil
	}
	switch {
	case s.link == w.pen.link || s.link != nil && w.pen.link != nil && *s.link == *w.pen.link:
	case s.link == nil:
		w.osc(8, ";")
	case s.link.id == "":
		w.osc(8, ";"+s.link.uri)
	default:
		w.osc(8, "id="+s.link.id+";"+s.link.uri)
	}
	if (s.attrs^w.pen.attrs)&checkpoint.Protected != 0 {
		w.csi("", "\"q", int(s.attrs&checkpoint.Protected/checkpoint.Protected))
	}
	before := w.pen
	before.link, before.attrs = s.link, before.attrs&^checkpoint.Protected|s.attrs&checkpoint.Protected
	w.pen = s
	if s != before {
		w.sgr()
	}
}

// carried says whether OSC 8 takes l.
func (l *link) carried() bool {
	return l == nil || len(l.uri) <= MaxLink && len(l.id) <= maxLinkID
}

// sgr sets all that SGR sets. A character may still join the one in front.
func (w *snapshot) sgr() {
	s := w.pen
	s.fg, s.bg = 0, 0
	w.b = append(append(w.b, "\x1b["...), s.sgr()...)
	w.color(w.pen.fg, 30)
	w.color(w.pen.bg, 40)
	w.b = append(w.b, 'm')
}

// color writes a colour of the pen.
func (w *snapshot) color(c checkpoint.Color, base int) { w.b = appendColor(w.b, c, base) }

// appendColor appends a colour as SGR parameters based on 30 or 40, each with a
// semicolon before it: more terminals know them so.
func appendColor(dst []byte, c checkpoint.Color, base int) []byte {
	var numbers []int
	switch v := int(c & 0xFFFFFF); {
	case c == 0:
	case c&checkpoint.ColorRGB != 0:
		numbers = []int{base + 8, 2, v >> 16, v >> 8 & 0xFF, v & 0xFF}
	case v < 8:
		numbers = []int{base + v}
	case v < 16:
		numbers = []int{base + 60 + v - 8}
	default:
		numbers = []int{base + 8, 5, v}
	}
	for _, n := range numbers {
		dst = strconv.AppendInt(append(dst, ';'), int64(n), 10)
	}
	return dst
}

// setChars designates and shifts character sets.
func (w *snapshot) setChars(want checkpoint.Charsets) {
	for i, final := range want.G {
		if w.chars.G[i] != final {
			w.put("\x1b" + string([]byte{"()*+"[i], final}))
		}
	}
	if w.chars.GL != want.GL {
		w.put([...]string{"\x0f", "\x0e", "\x1bn", "\x1bo"}[want.GL&3])
	}
	w.chars = want
}

// names writes titles, their stacks, the directory and the colours.
func (w *snapshot) names() {
	n := &w.t.names
	title := func(number int, stack []string, now string) {
		shown := ""
		show := func(s string) {
			if s != shown && len(s) <= MaxTitle {
				w.osc(number, s)
				shown = s
			}
		}
		for _, s := range stack {
			show(s)
			w.csi("", "t", 22, number)
		}
		show(now)
	}
	title(1, n.icons, n.icon)
	title(2, n.titles, n.title)
	if n.cwd != "" && len(n.cwd) <= MaxTitle {
		w.osc(7, n.cwd)
	}
	for _, c := range w.t.palette {
		if c.index < colorForeground {
			w.osc(4, itoa(c.index)+";"+formatColor(c.rgb))
		} else {
			w.osc(10+c.index-colorForeground, formatColor(c.rgb))
		}
	}
}

func (w *snapshot) kitty(stack []uint8) {
	for _, flags := range stack {
		w.csi(">", "u", int(flags))
	}
}

// save makes v the saved cursor of the screen shown. The margins are the screen's.
func (w *snapshot) save(v *saved) {
	w.place(v)
	w.put("\x1b7")
	if v.origin {
		w.put("\x1b[?6l")
	}
}

// place goes where v is, with what DECSC saves.
func (w *snapshot) place(v *saved) {
	if v.origin {
		w.put("\x1b[?6h")
	}
	w.csi("", "H", min(v.y, w.t.rows-1)+1, min(v.x, w.t.cols-1)+1)
	w.setPen(v.pen)
	w.setChars(v.chars)
}

// enterAlternate shows the alternate screen, with the cursors of the main one as they
// were when the program entered it.
func (w *snapshot) enterAlternate() {
	m := &w.t.main
	if s := m.saved; s != nil && s.x == m.x && s.y == m.y {
		w.place(s)
		w.put("\x1b[?1049h")
		if s.origin {
			w.put("\x1b[?6l")
		}
	} else {
		if s != nil {
			w.save(s)
		}
		w.csi("", "H", m.y+1, m.x+1)
		w.put("\x1b[?1047h")
	}
	w.setPen(style{})
	w.put("\x1b[H\x1b[2J")
}

func (w *snapshot) tabStops() {
	t := w.t
	var usual tabStops
	usual.reset(t.cols)
	stops := t.tabs.columns()
	if slices.Equal(stops, usual.columns()) {
		return
	}
	w.put("\x1b[3g")
	for _, x := range stops {
		w.csi("", "G", x+1)
		w.put("\x1bH")
	}
}

// modes writes what XTSAVE keeps and the modes that differ from those of a reset,
// but for those that have their own place.
func (w *snapshot) modes() {
	t := w.t
	initial := defaultModes()
	for _, m := range modeNumbers {
		if m.private && t.modes.saved.has(m.mode) {
			w.csi("?", "h", m.number)
			w.csi("?", "s", m.number)
			if !initial.has(m.mode) {
				w.csi("?", "l", m.number)
			}
		}
	}
	for _, m := range modeNumbers {
		on := t.modes.has(m.mode)
		switch {
		case on == initial.has(m.mode) || m.mode == modeInsert || m.mode == modeOrigin || m.mode == modeSync:
		case m.mode == modeAppKeypad:
			w.put("\x1b=")
		default:
			prefix, final := "", "l"
			if m.private {
				prefix = "?"
			}
			if on {
				final = "h"
			}
			w.csi(prefix, final, m.number)
		}
	}
	if n := t.modes.otherKeys; n != 0 {
		w.csi(">", "m", 4, int(n))
	}
	if t.cur.shape != 0 {
		w.csi("", " q", int(t.cur.shape))
	}
}

// cursor writes margins, cursor, pen, character sets and insert mode. A wrap is pending
// behind what is printed into the last column, and only what was just printed is joined
// or repeated: then the cluster left of the cursor is printed once more.
func (w *snapshot) cursor() {
	t, c := w.t, &w.t.cur
	if t.top != 0 || t.bottom != t.rows-1 {
		w.csi("", "r", t.top+1, t.bottom+1)
	}
	y, outside := c.y, false
	if t.modes.has(modeOrigin) {
		w.put("\x1b[?6h")
		outside = y < t.top || y > t.bottom
		y = min(max(y, t.top), t.bottom) - t.top
	}
	x := max(t.before(), 0)
	var left cell
	if r := t.grid.rows[c.y]; x < r.used {
		left = r.cells[x]
	}
	switch {
	case !outside && w.joins(x, left):
		w.setChars(c.chars)
		w.csi("", "H", y+1, x+1)
		if w.insert() { // make room for what shifts the row
			r, _ := utf8.DecodeRune(w.text(&t.tab, left))
			w.csi("", "P", max(int(classOf(r)&classWidth), 1))
		}
		w.again(left)
		return
	case !outside && c.pending:
		w.setChars(defaultCharsets)
		w.csi("", "H", y+1, x+1)
		w.setPen(t.tab.styles.list[left>>cellStyle])
		w.b = append(w.b, w.text(&t.tab, left)...)
		w.put("\x0f") // nothing joins it
	default:
		w.csi("", "H", y+1, c.x+1)
	}
	w.setPen(c.pen)
	w.setChars(c.chars)
	w.insert()
}

// insert sets insert mode, if it is set.
func (w *snapshot) insert() bool {
	if !w.t.modes.has(modeInsert) {
		return false
	}
	w.put("\x1b[4h")
	return true
}

// joins says whether left, the cell in column x, was printed last, and printing it
// again leaves the cursor where it is and the row as it is.
func (w *snapshot) joins(x int, left cell) bool {
	t, c := w.t, &w.t.cur
	if !c.joins || left&cellKind == tail || t.modes.has(modeInsert) && t.grid.rows[c.y].wrapped {
		return false
	}
	end := x + 1
	if left&cellKind == wide {
		end++
	}
	if c.pending != (end == t.cols) || !c.pending && end != c.x {
		return false
	}
	text := w.text(&t.tab, left)
	r, _ := utf8.DecodeLastRune(text)
	return r == c.code && (len(c.last) == 0 || string(text) == string(c.last))
}

// again prints a cell as the program did last: it may be followed by SGR, behind which
// nothing is repeated, or its last code point came in another style than it has.
func (w *snapshot) again(x cell) {
	c := &w.t.cur
	text := w.text(&w.t.tab, x)
	w.setPen(w.t.tab.styles.list[x>>cellStyle])
	pen := w.pen
	pen.fg, pen.bg, pen.ul, pen.attrs = c.pen.fg, c.pen.bg, c.pen.ul, c.pen.attrs
	if len(c.last) > 0 && pen != w.pen {
		_, n := utf8.DecodeLastRune(text)
		w.b = append(w.b, text[:len(text)-n]...)
		w.pen = pen
		w.sgr()
		w.b = append(w.b, text[len(text)-n:]...)
		return
	}
	w.b = append(w.b, text...)
	w.pen = pen
	if len(c.last) == 0 {
		w.sgr()
	}
}

// mainRows are the newest rows of the history and those of the main screen.
func (w *snapshot) mainRows(history int) iter.Seq2[*row, *table] {
	return func(yield func(*row, *table) bool) {
		h := &w.t.hist
		tb := table{most: MaxCluster}
		tb.reset()
		var r row
		for i := h.end - uint64(min(max(history, 0), h.rows())); i < h.end; {
			c, k := h.at(i)
			for ; k < len(c.rows); k++ {
				if tb.full() {
					tb.reset()
				}
				unpack(&tb, &r, c, k, w.t.cols)
				if !yield(&r, &tb) {
					return
				}
				i++
			}
		}
		for r, tb := range w.screenRows(&w.t.main) {
			if !yield(r, tb) {
				return
			}
		}
	}
}

// screenRows are the rows of a screen; the last one goes on nowhere.
func (w *snapshot) screenRows(s *screen) iter.Seq2[*row, *table] {
	return func(yield func(*row, *table) bool) {
		for y, r := range s.rows {
			if y == len(s.rows)-1 && r.wrapped {
				last := *r
				last.wrapped = false
				r = &last
			}
			if !yield(r, &w.t.tab) {
				return
			}
		}
	}
}
