package replay

import (
	"bytes"
	"unicode/utf8"
)

// setPen changes the pen.
func (t *Terminal) setPen(s style) {
	t.cur.pen = s
	t.cur.stale = true
}

// penCell returns the pen's style in cell position.
func (t *Terminal) penCell() cell {
	c := &t.cur
	if c.stale {
		c.pencell = cell(t.tab.style(c.pen)) << cellStyle
		c.stale = false
	}
	return c.pencell
}

// print writes text at the cursor.
func (t *Terminal) print(tok Token) {
	p := tok.Text
	if &p[0] == &replacement[0] {
		t.work += workInvalid
	}
	special := t.special()
	for len(p) > 0 {
		n := len(p)
		if !tok.ASCII {
			n = asciiRun(p)
		}
		if n > 0 && !special && !(t.cur.joins && t.cur.class&classPrepend != 0) {
			t.printASCII(p[:n], 1)
			p = p[n:]
			continue
		}
		if !special {
			if n := t.printRunes(p); n > 0 {
				p = p[n:]
				continue
			}
		}
		r, size := utf8.DecodeRune(p)
		t.offset += uint64(size)
		if size > 1 {
			t.work += workHigh
		}
		if special {
			r = t.translate(r)
		}
		t.printRune(r)
		p = p[size:]
	}
}

// special says whether characters do not go to the cells as they are.
func (t *Terminal) special() bool {
	return t.modes.has(modeInsert) || t.cur.chars.GL != 0 || t.cur.chars.G[0] != 'B'
}

// printASCII writes a run of printable ASCII in the ordinary modes. step is the
// number of stream bytes that a character stands for.
func (t *Terminal) printASCII(p []byte, step uint64) {
	c := &t.cur
	last := p[len(p)-1]
	for len(p) > 0 {
		if c.pending {
			if !t.modes.has(modeWrap) {
				t.offset += step * uint64(len(p)-1)
				p = p[len(p)-1:]
			} else {
				t.wrapLine()
			}
		}
		r := t.row(c.y)
		n := min(len(p), t.cols-c.x)
		end := c.x + n
		if r.multi {
			r.split(c.x)
			r.split(end)
		}
		pen := t.penCell()
		cells := r.cells[c.x:end]
		s := p[:len(cells)]
		for i, b := range s {
			cells[i] = pen | cell(b)
		}
		t.offset += step * uint64(n)
		r.written, r.reported = t.offset, false
		r.styled = r.styled || pen != 0
		r.used = max(r.used, end)
		c.x = end
		if end == t.cols {
			c.x, c.pending = end-1, true
			r.wrapped = false
		}
		p = p[n:]
	}
	c.last = append(c.last[:0], last)
	c.joins, c.code, c.class = true, rune(last), classKnown|1
}

// printRunes writes code points above ASCII that are clusters of their own and fit
// the row, and returns how many bytes of p they take. It is printRune without what
// they do not need.
func (t *Terminal) printRunes(p []byte) int {
	c := &t.cur
	if c.pending {
		return 0
	}
	row, pen := t.row(c.y), t.penCell()
	x, i, n := c.x, 0, uint64(0)
	var last rune
	for i < len(p) && p[i] >= 0x80 {
		r, size := utf8.DecodeRune(p[i:])
		k := classOf(r)
		w := int(k & classWidth)
		if w == 0 || x+w >= len(row.cells) || c.joins && mayJoin(c.class, k) {
			break
		}
		row.split(x)
		row.split(x + w)
		row.cells[x] = pen | cell(r)
		if w == 2 {
			row.cells[x] |= wide
			row.cells[x+1] = pen | tail
		}
		row.multi = true
		x += w
		row.used = max(row.used, x)
		c.joins, c.class, last = true, k, r
		i += size
		n++
	}
	if i == 0 {
		return 0
	}
	t.offset += uint64(i)
	t.work += n * workHigh
	row.written, row.reported = t.offset, false
	row.styled = row.styled || pen != 0
	c.x, c.code = x, last
	c.last = utf8.AppendRune(c.last[:0], last)
	return i
}

// wrapLine goes to the start of the next row, which continues this one.
func (t *Terminal) wrapLine() {
	c := &t.cur
	r := t.grid.rows[c.y]
	c.x, c.pending = 0, false
	t.work += t.wrapWork()
	switch {
	case c.y == t.bottom:
		r.wrapped = true
		t.scrollUp(t.top, t.bottom, 1, true)
	case c.y < t.rows-1:
		r.wrapped = true
		c.y++
	}
}

// printRune writes one code point: into the cluster left of the cursor if it
// belongs there, else as a cluster of its own.
func (t *Terminal) printRune(r rune) {
	c := &t.cur
	k := classOf(r)
	w := int(k & classWidth)
	if (w == 0 || c.joins && mayJoin(c.class, k)) && t.join(r, k) {
		return
	}
	if w == 0 {
		// Nothing to stand on: a blank carries the mark.
		var buf [utf8.UTFMax + 1]byte
		buf[0] = ' '
		t.place(t.tab.cluster(utf8.AppendRune(buf[:1], r)), 1)
		c.last = utf8.AppendRune(append(c.last[:0], ' '), r)
	} else {
		t.place(cell(r), w)
		c.last = utf8.AppendRune(c.last[:0], r)
	}
	c.joins, c.code, c.class = true, r, k
}

// place writes a cluster of w columns at the cursor.
func (t *Terminal) place(text cell, w int) {
	c := &t.cur
	if c.pending && t.modes.has(modeWrap) {
		t.wrapLine()
	}
	if w > t.cols-c.x {
		if t.cols < w || !t.modes.has(modeWrap) {
			if t.cols >= w {
				c.pending = false
				return // no room at the margin and no wrapping
			}
			w = t.cols // a screen of one column: half a character is better than none
		} else {
			t.leaveSpacer()
			t.wrapLine()
		}
	}
	if t.modes.has(modeInsert) {
		t.insertCells(c.y, c.x, w)
	}
	r := t.row(c.y)
	r.split(c.x)
	r.split(c.x + w)
	pen := t.penCell()
	if w == 2 {
		r.cells[c.x] = pen | text | wide
		r.cells[c.x+1] = pen | tail
	} else {
		r.cells[c.x] = pen | text
	}
	r.written, r.reported = t.offset, false
	r.styled = r.styled || pen != 0
	r.multi = r.multi || w == 2 || text >= 0x80
	c.x += w
	r.used = max(r.used, c.x)
	c.pending = false
	if c.x == t.cols {
		c.x, c.pending = t.cols-1, true
		r.wrapped = false
	}
}

// leaveSpacer blanks the last column, which a wide cluster does not fit into.
func (t *Terminal) leaveSpacer() {
	c := &t.cur
	r := t.row(c.y)
	r.split(c.x)
	clear(r.cells[c.x:])
	r.cells[t.cols-1] = spacer
	r.used, r.multi = t.cols, true
	r.written, r.reported = t.offset, false
}

// before returns the column of the cluster left of the cursor; -1 if there is
// none in the row.
func (t *Terminal) before() int {
	c := &t.cur
	x := c.x - 1
	if c.pending {
		x = c.x
	}
	if r := t.grid.rows[c.y]; x > 0 && x < r.used && r.cells[x]&cellKind == tail {
		x--
	}
	return x
}

// join adds r to the cluster left of the cursor, if it belongs to it: always if it
// takes no column, else if UAX #29 says so.
func (t *Terminal) join(r rune, k class) bool {
	c := &t.cur
	x := t.before()
	if x < 0 {
		return false
	}
	t.work += workCluster
	w := int(k & classWidth)
	row := t.row(c.y)
	old := row.cells[x]
	var buf [MaxCluster + utf8.UTFMax]byte
	text := t.tab.appendText(buf[:0], old)
	text = utf8.AppendRune(text, r)
	if w > 0 && !isCluster(text) {
		return false
	}
	c.joins, c.code, c.class = true, r, k
	if len(text) > t.tab.most || !t.tab.clusterRoom() {
		return true // beyond the limit: dropped
	}
	t.widen(x, old, text)
	c.last = append(c.last[:0], text...)
	return true
}

// widen replaces the cluster in column x by text, which may take another column.
func (t *Terminal) widen(x int, old cell, text []byte) {
	c := &t.cur
	row := t.grid.rows[c.y]
	num := t.tab.cluster(text)
	style := old &^ (cellText | cellCluster | cellKind)
	had, kind := 1, narrow
	if old&cellKind == wide {
		had, kind = 2, wide
	}
	w := clusterWidth(text)
	row.written, row.reported = t.offset, false
	row.multi = true
	row.used = max(row.used, x+had)
	switch {
	case w == had || w < had || t.cols < 2:
		row.cells[x] = style | num | kind
	case x+1 < t.cols:
		row.split(x + 2)
		row.cells[x] = style | num | wide
		row.cells[x+1] = style | tail
		row.used = max(row.used, x+2)
		if c.x == x+1 && !c.pending {
			c.x++
			if c.x == t.cols {
				c.x, c.pending = t.cols-1, true
				row.wrapped = false
			}
		}
	case c.pending && t.modes.has(modeWrap):
		// It was written in the last column and is too wide for it now.
		pen := c.pen
		t.leaveSpacerAt(row)
		t.wrapLine()
		c.pencell, c.stale = style, false
		t.place(num, 2)
		t.setPen(pen)
	default:
		row.cells[x] = style | num
	}
}

func (t *Terminal) leaveSpacerAt(row *row) {
	row.cells[t.cols-1] = spacer
	row.used, row.multi = t.cols, true
}

// repeat writes the last cluster n more times (REP). Only a REP that follows its
// character at once does anything; n is bounded by the cells of a screen.
func (t *Terminal) repeat(n int) {
	c := &t.cur
	if len(c.last) == 0 {
		return
	}
	n = min(max(n, 1), t.cols*t.rows)
	text := bytes.Clone(t.tab.fit(c.last)) // it may be from before a resize
	w := 1
	if len(text) > 1 {
		w = clusterWidth(text)
	}
	t.work += 2 * uint64(n)
	if len(text) == 1 && text[0] < 0x80 && !t.modes.has(modeInsert) {
		for run := bytes.Repeat(text, min(n, 256)); n > 0; n -= len(run) {
			run = run[:min(n, len(run))]
			t.printASCII(run, 0)
		}
		return
	}
	t.work += uint64(n) * uint64(workRepeat+len(text)/4)
	num := t.tab.cluster(text)
	for n > 0 {
		k := t.placeMany(num, w, n)
		if k == 0 {
			t.place(num, w)
			k = 1
		}
		n -= k
	}
}

// placeMany places as many of n clusters of w columns as go into the row without a
// wrap. It returns their number, 0 if it is better to place one alone.
func (t *Terminal) placeMany(text cell, w, n int) int {
	c := &t.cur
	n = min(n, (t.cols-c.x)/w)
	if n < 2 || c.pending || t.modes.has(modeInsert) {
		return 0
	}
	r, pen := t.row(c.y), t.penCell()
	end := c.x + n*w
	r.split(c.x)
	r.split(end)
	for x := c.x; x < end; x += w {
		r.cells[x] = pen | text
		if w == 2 {
			r.cells[x] |= wide
			r.cells[x+1] = pen | tail
		}
	}
	r.written, r.reported = t.offset, false
	r.styled = r.styled || pen != 0
	r.multi = r.multi || w == 2 || text >= 0x80
	r.used = max(r.used, end)
	if c.x = end; end == t.cols {
		c.x, c.pending = t.cols-1, true
		r.wrapped = false
	}
	return n
}
