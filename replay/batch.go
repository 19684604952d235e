package replay

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// The batch path: when a piece of the stream holds many more lines than the screen
// has rows, most of them are off the screen again before anybody can look. They are
// appended to the history as packed text, without ever being cells. It takes whole
// lines of text, tabs, SGR and EL 0, written at the bottom of the main screen in the
// ordinary modes; the first other thing takes back the line it stands in and leaves
// the rest to the cells. The result is the same to the last byte of a State.
type batch struct {
	off  bool // for tests
	next int  // place in the piece from which it may begin
	wait int  // how much the last attempt that did not pay puts off the next one
}

const (
	batchMax  = 256 << 10 // bytes taken at once, so that history cannot pile up
	batchWait = 1 << 10
)

// begin looks at a new piece of the stream.
func (b *batch) begin(p []byte, rows int) {
	b.next = math.MaxInt
	if !b.off && len(p) > 2*rows && bytes.Count(p, []byte{'\n'}) > 2*rows {
		b.next = 0
	}
}

// due says whether the batch path may begin at p[i]: at the start of a line.
func (b *batch) due(p []byte, i int) bool {
	return i >= b.next && (i == 0 || p[i-1] == '\n')
}

// ready says whether the terminal is in the state that the batch path is made for.
func (t *Terminal) ready() bool {
	c := &t.cur
	if t.grid != &t.main || t.top != 0 || t.bottom != t.rows-1 || c.y != t.bottom || c.pending || t.cols < 2 {
		return false
	}
	const must, mustNot = 1 << modeWrap, 1<<modeInsert | 1<<modeNewline
	if t.modes.modeSet&(must|mustNot) != must || t.lex.phase != ground || t.lex.nheld > 0 || c.pen.bg != 0 || c.pen.link != nil {
		return false
	}
	if c.chars.GL != 0 || c.chars.G[0] != 'B' {
		return false
	}
	rows := t.main.rows
	if r := rows[c.y]; r.used != 0 || r.wrapped || r.reported {
		return false
	}
	if t.rows > 1 {
		return !rows[c.y-1].wrapped && !(t.hist.open && t.hist.lineLen >= MaxLine/2)
	}
	return !t.hist.open
}

// fastLines takes whole lines from the start of p and returns their length.
func (t *Terminal) fastLines(p []byte, at int) int {
	rest := bytes.Count(p[:min(len(p), batchMax)], []byte{'\n'})
	if !t.ready() || rest <= 2*t.rows {
		t.batch.next = at + batchWait
		return 0
	}
	h := &t.hist
	from, base := h.end, t.offset
	bottom := t.main.rows[t.rows-1]
	f := fast{t: t, h: h, base: base, col: t.cur.x, written: bottom.written}
	done := 0
	if f.lift() {
		end := len(p)
		if end > batchMax {
			end = bytes.LastIndexByte(p[:batchMax], '\n') + 1
		}
		for done < end {
			if t.tab.full() {
				t.compact()
			}
			n := f.plain(p[:end], done)
			if n == 0 {
				if n = f.line(p[:end], done); n == 0 {
					break
				}
				f.lines++
			}
			done += n
		}
	}
	t.offset = base + uint64(done)
	f.lower(min(t.rows-1, int(h.end-from)))
	bottom.written = f.written
	t.cur.x = f.col
	t.reportSince(from)
	h.evict()
	if f.lines >= 2*t.rows {
		t.batch.wait = 0
	} else {
		t.batch.wait = min(max(2*t.batch.wait, batchWait), batchMax)
	}
	t.batch.next = at + done + t.batch.wait
	return done
}

// fast is the state of the batch path.
type fast struct {
	t       *Terminal
	h       *history
	c       *chunk
	lines   int    // taken
	base    uint64 // stream offset of p[0]
	written uint64 // of the current row
	col     int    // where the next character goes; cols if the wrap is pending
	ascii   bool   // so far the current row is ASCII
	voids   bool   // it has cells that were skipped
	opens   bool   // it has code points that something may join
	class   class  // of the last code point, if a cluster can go on there
	style   uint32 // local number of the style since text[styled]
	styled  int
	runs    runCounter // of the current row

	plainRun bool // the last of them is of the default style
}

// lift moves the rows of the screen but the blank last one into the history.
func (f *fast) lift() bool {
	t, h := f.t, f.h
	for _, r := range t.main.rows[:t.rows-1] {
		if h.open && h.lineLen >= MaxLine/2 || r.styled && h.links+t.tab.linkBytes(r) > h.linkBudget {
			return false // rows that go meanwhile may make room for its links
		}
		c := h.begin(r.written, r.used)
		h.finish(t.tab.pack(h, c, r, t.cols))
	}
	return true
}

// lower takes the newest n rows back onto the screen.
func (f *fast) lower(n int) {
	for y := n - 1; y >= 0; y-- {
		f.h.pop(&f.t.tab, f.t.main.rows[y], f.t.cols)
	}
}

// line takes the line at p[i:] and returns its length with the line feed; 0, and
// nothing has changed, if it cannot.
func (f *fast) line(p []byte, i int) int {
	t, h := f.t, f.h
	f.c = h.begin(f.written, t.cols)
	c := f.c
	rows, text, runs := len(c.rows)-1, len(c.text), len(c.runs)
	pen, end, size, col, written, work := t.cur.pen, h.end, h.bytes, f.col, f.written, t.work
	f.beginRow()
	if f.col > 0 {
		f.skip(f.col)
	}
	start := i
	for i < len(p) {
		n := f.step(p[i:], i)
		if n == 0 {
			break
		}
		i += n
		if p[i-1] == '\n' {
			f.finish(0)
			t.work += t.scrollWork()
			f.written = f.base + uint64(i)
			return i - start
		}
	}
	c.rows, c.text, c.runs = c.rows[:rows], c.text[:text], c.runs[:runs]
	h.end, h.bytes, h.open, h.lineLen = end, size, false, 0
	t.setPen(pen)
	f.col, f.written, t.work = col, written, work
	return 0
}

// plain takes lines of ASCII that fit a row, in the default style, from p[i:]. It
// returns their length. It is line without what such lines do not need.
func (f *fast) plain(p []byte, i int) int {
	h, cols := f.h, f.t.cols
	if f.col != 0 || f.t.cur.pen != (style{}) {
		return 0
	}
	start, work := i, workReturn+f.t.scrollWork()
	c := h.last()
	for i < len(p) {
		n := asciiRun(p[i:])
		end := i + n
		if n > cols || end+1 >= len(p) || p[end] != '\r' || p[end+1] != '\n' {
			break
		}
		if len(c.text)+n > chunkText || len(c.rows) >= chunkRows {
			c = h.begin(0, n)
			c.rows = c.rows[:len(c.rows)-1]
		}
		at := uint32(len(c.text))
		if n > 0 {
			f.written = f.base + uint64(end)
			c.text = append(c.text, p[i:end]...)
		}
		c.rows = append(c.rows, packedRow{text: at, size: uint32(n), written: f.written,
			runs: uint32(len(c.runs)), width: uint16(n), flags: packedASCII})
		c.widest = max(c.widest, uint16(n))
		h.end++
		h.lineLen = n
		h.bytes += n
		f.t.work += work
		f.lines++
		i = end + 2
		f.written = f.base + uint64(i)
	}
	return i - start
}

// step takes one run of characters or one function; p[0] is p[at] of the piece. 0
// means that the cells must do it.
func (f *fast) step(p []byte, at int) int {
	t := f.t
	if n := asciiRun(p); n > 0 {
		if f.class&classPrepend != 0 || !f.ascii1(p[:n], at) {
			return 0
		}
		return n
	}
	switch b := p[0]; {
	case b == '\n':
		if t.cur.pen.bg != 0 {
			return 0
		}
		f.col = min(f.col, t.cols-1)
		return 1
	case b == '\r':
		n := 1
		for n < len(p) && p[n] == '\r' {
			n++
		}
		if n == len(p) || p[n] != '\n' || t.cur.pen.bg != 0 {
			return 0
		}
		f.col = 0
		t.work += uint64(n) * workReturn
		return n + 1
	case b == '\t':
		if f.col >= t.cols-1 {
			return 0
		}
		x := t.tabs.next(f.col)
		t.work += workControl + tabWork(f.col, x)
		f.skip(x - f.col)
		f.col = x
		f.class = 0
		return 1
	case b == 0x1B:
		return f.sequence(p, at)
	case b >= 0x80:
		return f.runes(p, at)
	}
	return 0
}

// sequence takes SGR and EL 0.
func (f *fast) sequence(p []byte, at int) int {
	t := f.t
	l := &t.lex
	tok, n := l.Next(p)
	if tok.Kind == CSI && l.prefix == 0 && l.ninter == 0 {
		switch {
		case tok.Code == 'm':
			t.sgr()
			f.restyle()
			return n
		case tok.Code == 'K' && l.Param(0, 0) == 0 && l.colons == 0 && t.cur.pen.bg == 0:
			f.class = 0
			if f.col < t.cols {
				f.written = f.base + uint64(at+n)
				t.work += uint64(t.cols - f.col)
			}
			return n
		}
	}
	l.Reset()
	return 0
}

// ascii1 appends a run of ASCII, over as many rows as it takes.
func (f *fast) ascii1(p []byte, at int) bool {
	cols := f.t.cols
	for {
		n := min(len(p), cols-f.col)
		f.c.text = append(f.c.text, p[:n]...)
		f.col += n
		at += n
		if n > 0 {
			f.written = f.base + uint64(at)
		}
		p = p[n:]
		if len(p) == 0 {
			f.class = classKnown | 1
			return true
		}
		if !f.wrap() {
			return false
		}
	}
}

// runes appends a run of code points that each are a cluster.
func (f *fast) runes(p []byte, at int) int {
	i := 0
	for i < len(p) && p[i] >= 0x80 {
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && size <= 1 || r < 0xA0 {
			return 0
		}
		k := classOf(r)
		w := int(k & classWidth)
		if w == 0 || mayJoin(f.class, k) {
			return 0
		}
		f.opens = f.opens || k&(classOpens|classPrepend) != 0
		if w > f.t.cols-f.col {
			if f.col < f.t.cols {
				f.written = f.base + uint64(at+i+size)
			}
			if !f.wrap() {
				return 0
			}
		}
		f.c.text = append(f.c.text, p[i:i+size]...)
		f.ascii = false
		f.col += w
		f.class = k
		i += size
		f.t.work += workHigh
		f.written = f.base + uint64(at+i)
	}
	return i
}

// skip appends n cells that are not written.
func (f *fast) skip(n int) {
	f.restyleTo(0)
	f.c.text = append(f.c.text, make([]byte, n)...)
	f.voids = true
	f.restyle()
}

// wrap ends the row softly and begins the next one.
func (f *fast) wrap() bool {
	h := f.h
	if f.t.cur.pen.bg != 0 || h.lineLen > MaxLine/2 {
		return false
	}
	f.finish(packedWrapped)
	f.t.work += f.t.wrapWork() + f.t.scrollWork()
	h.begin(f.written, f.t.cols)
	f.col = 0
	f.beginRow()
	return true
}

func (f *fast) beginRow() {
	f.ascii, f.voids, f.opens, f.class = true, false, false, 0
	f.style, f.styled, f.runs, f.plainRun = 0, len(f.c.text), runCounter{}, false
	f.restyle()
}

// finish ends the current row.
func (f *fast) finish(flags uint8) {
	c := f.c
	row := &c.rows[len(c.rows)-1]
	if f.voids && flags == 0 {
		for n := len(c.text); n > int(row.text) && c.text[n-1] == 0; n-- {
			c.text = c.text[:n-1]
		}
		f.styled = min(f.styled, len(c.text))
	}
	if f.style != 0 {
		f.run()
	}
	if f.plainRun {
		f.runs = c.trimRuns()
	}
	if f.ascii {
		flags |= packedASCII
	}
	if f.opens {
		flags |= packedOpens
	}
	text := c.text[row.text:]
	width := len(text)
	if !f.ascii {
		width = columns(text)
	}
	row.written = f.written
	f.h.finish(c, width, flags|f.voidFlag(text), loadOf(f.runs.n))
}

func (f *fast) voidFlag(text []byte) uint8 {
	if f.voids {
		return voids(text)
	}
	return 0
}

// restyle makes the pen's style that of what follows.
func (f *fast) restyle() {
	t := f.t
	var n uint32
	if t.cur.pen != (style{}) {
		n = f.h.hints.find(f.c, t.tab.styles.list, uint32(t.penCell()>>cellStyle))
	}
	f.restyleTo(n)
}

func (f *fast) restyleTo(n uint32) {
	if n == f.style {
		return
	}
	f.run()
	f.style = n
}

// run writes the run of the style so far.
func (f *fast) run() {
	c := f.c
	if n := len(c.text) - f.styled; n > 0 {
		c.runs = binary.AppendUvarint(c.runs, uint64(n))
		c.runs = binary.AppendUvarint(c.runs, uint64(f.style))
		f.runs.add(&c.styles[f.style])
		f.plainRun = f.style == 0
	}
	f.styled = len(c.text)
}
