package replay

import (
	"encoding/binary"
	"slices"
)

// mark is a place in the history's text that a reflow keeps track of.
type mark struct {
	chunk *chunk
	row   int // in the chunk
	at    int // bytes into the row's packed text
	extra int // columns behind the end of the text
	col   int // after the reflow: its column, at most the width
	moved bool
}

// index returns the index of m's row.
func (m *mark) index() uint64 {
	if m.chunk == nil {
		return 0
	}
	return m.chunk.first + uint64(m.row)
}

// Resize sets the size, 1..MaxSide each. The lines of the main screen and its
// history are cut anew at their soft wraps; the cursor stays on its character. The
// alternate screen is cropped or padded. Rows below the cursor that no longer fit
// beside it leave for good. It begins a new epoch if it changes anything.
func (t *Terminal) Resize(cols, rows int) {
	cols, rows = clampSize(cols, rows)
	if cols == t.cols && rows == t.rows {
		return
	}
	t.tab.most = mostCluster(cols, rows)
	t.resizeMain(cols, rows)
	if t.grid == &t.alt {
		t.resizeAlternate(cols, rows)
	} else {
		t.alt.rows = nil
	}
	if cols != t.cols {
		t.tabs.resize(cols)
	}
	t.cols, t.rows = cols, rows
	t.top, t.bottom = 0, rows-1
	t.bump()
}

// resizeMain moves the main screen into the history, cuts the history anew, and
// takes the newest rows back.
func (t *Terminal) resizeMain(cols, rows int) {
	s, h := &t.main, &t.hist
	if t.grid == s {
		s.x, s.y, s.pend = t.cur.x, t.cur.y, t.cur.pending
	}
	last := t.rows - 1
	for last > s.y && s.rows[last].length() == 0 {
		last--
	}
	below := t.rows - 1 - last
	s.rows[last].wrapped = false
	h.trimFront()
	marks := make([]mark, 3) // the screen's top, the cursor, the saved cursor
	for y, r := range s.rows[:last+1] {
		if h.open && h.lineLen >= MaxLine {
			t.breakLine()
		}
		c := h.begin(r.written, r.used)
		h.finish(t.tab.pack(h, c, r, t.cols))
		if y == 0 {
			marks[0] = h.place(0, false)
		}
		if y == s.y {
			marks[1] = h.place(s.x, s.pend)
		}
		if s.saved != nil && y == min(s.saved.y, last) {
			marks[2] = h.place(s.saved.x, s.saved.pending)
		}
	}
	t.work += resizeWork(t.cols, t.rows) + resizeWork(cols, rows)
	if cols != t.cols {
		t.work += uint64(h.rows())*workRecut + uint64(h.bytes)
		if t.cols == 1 {
			h.measure()
		}
		h.recut(cols, h.limit+rows, marks)
	} else {
		for i := range marks {
			marks[i].locate()
		}
	}
	t.showNewest(cols, rows, below, marks)
}

// breakLine ends the history's open line without reporting anything.
func (t *Terminal) breakLine() {
	c := t.hist.last()
	c.rows[len(c.rows)-1].flags &^= packedWrapped
	t.hist.open = false
}

// place returns a mark for column x of the newest row; pending says that it is
// meant to be behind that column.
func (h *history) place(x int, pending bool) mark {
	c := h.last()
	m := mark{chunk: c, row: len(c.rows) - 1}
	text := c.textOf(m.row)
	if pending {
		x++
	}
	col := 0
	for m.at < len(text) && col < x {
		size, w := unit(text[m.at:])
		if col+w > x {
			break
		}
		col += w
		m.at += size
	}
	if m.at == len(text) {
		m.extra = x - col
	}
	return m
}

// locate finds m's column where nothing was cut anew.
func (m *mark) locate() {
	if m.chunk != nil {
		m.col = columns(m.chunk.textOf(m.row)[:m.at]) + m.extra
	}
}

func columns(p []byte) int {
	n := 0
	for len(p) > 0 {
		size, w := unit(p)
		n += w
		p = p[size:]
	}
	return n
}

// trimFront drops what is left of rows that were evicted.
func (h *history) trimFront() {
	for len(h.chunks) > 1 && h.chunks[0].end() <= h.oldest {
		h.chunks = slices.Delete(h.chunks, 0, 1)
	}
	if len(h.chunks) == 0 {
		return
	}
	if c := h.chunks[0]; c.first < h.oldest {
		n := min(int(h.oldest-c.first), len(c.rows))
		c.rows = slices.Delete(c.rows, 0, n)
		c.first += uint64(n)
	}
}

// recut cuts logical lines at cols columns and moves the marks along, the newest
// first. Text stays where it is; indexes of rows change. When there are enough rows
// above the chunk of the first mark, the rest goes: a narrow screen would make millions
// of rows of it.
func (h *history) recut(cols, enough int, marks []mark) {
	n := len(h.chunks)
	for above := -1; n > 0 && above < enough; n-- {
		c := h.chunks[n-1]
		if c.joined || int(c.widest) > cols {
			h.count(c, -1)
			r := recutter{c: c, cols: cols, marks: marks}
			r.run()
			h.count(c, 1)
		} else {
			for i := range marks {
				if marks[i].chunk == c {
					marks[i].locate()
				}
			}
		}
		switch {
		case above >= 0:
			above += len(c.rows)
		case c == marks[0].chunk:
			above = 0
		}
	}
	for _, c := range h.chunks[:n] {
		h.count(c, -1)
	}
	h.chunks = slices.Delete(h.chunks, 0, n)
	h.end = h.oldest
	for _, c := range h.chunks {
		c.first = h.end
		h.end += uint64(len(c.rows))
	}
}

// measure finds the width of rows that come from a screen of one column, where wide
// text takes one.
func (h *history) measure() {
	for _, c := range h.chunks {
		for k := range c.rows {
			if p := &c.rows[k]; p.flags&packedASCII == 0 {
				p.width = uint16(columns(c.textOf(k)))
				c.widest = max(c.widest, p.width)
			}
		}
	}
}

// count adds sign times what the rows of c count towards the limits.
func (h *history) count(c *chunk, sign int) {
	for k := range c.rows {
		h.bytes += sign * c.rows[k].cost()
		if c.linked {
			h.links += sign * c.linkBytes(k)
		}
	}
}

// recutter cuts the lines of one chunk.
type recutter struct {
	c     *chunk
	cols  int
	marks []mark
	rows  []packedRow
	runs  []byte
}

func (r *recutter) run() {
	c := r.c
	c.widest, c.joined = 0, false
	for a := 0; a < len(c.rows); {
		b := a + 1
		for b < len(c.rows) && c.rows[b-1].flags&packedWrapped != 0 {
			b++
		}
		first := len(r.rows)
		if b == a+1 && int(c.rows[a].width) <= r.cols {
			p := c.rows[a]
			p.runs = uint32(len(r.runs))
			r.runs = append(r.runs, c.runsOf(a)...)
			r.rows = append(r.rows, p)
		} else {
			r.line(a, b)
		}
		for _, p := range r.rows[first:] {
			c.widest = max(c.widest, p.width)
			c.joined = c.joined || p.flags&packedWrapped != 0
		}
		r.moveMarks(a, b, first)
		a = b
	}
	c.rows, c.runs = r.rows, r.runs
}

// line cuts the logical line of old rows [a, b).
func (r *recutter) line(a, b int) {
	c := r.c
	from, to := int(c.rows[a].text), int(c.rows[b-1].text+c.rows[b-1].size)
	for to > from && c.text[to-1] == 0 {
		to-- // what was never written makes no row
	}
	const sticky = packedClusters | packedVoids | packedOpens
	flags := uint8(packedASCII | packedReported)
	for _, p := range c.rows[a:b] {
		flags &= p.flags | sticky
		flags |= p.flags & sticky
	}
	first := len(r.rows)
	for at := from; ; {
		end, width := r.cut(at, to, flags)
		f := flags
		if end < to {
			f |= packedWrapped
		}
		r.rows = append(r.rows, packedRow{text: uint32(at), size: uint32(end - at), width: uint16(width), flags: f})
		at = end
		if at >= to {
			break
		}
	}
	r.spreadOffsets(a, b, first)
	r.spreadRuns(a, b, first)
	for i, end := len(r.rows)-1, len(r.runs); i >= first; i-- {
		p := &r.rows[i]
		p.load, end = c.loadOf(r.runs[p.runs:end]), int(p.runs)
	}
}

// cut returns where a row that begins at byte at ends, and its columns.
func (r *recutter) cut(at, to int, flags uint8) (end, width int) {
	text := r.c.text
	if flags&packedASCII != 0 {
		end = min(at+r.cols, to)
		return end, end - at
	}
	for at < to {
		size, w := unit(text[at:to])
		if width+w > r.cols && width > 0 {
			break
		}
		width += min(w, r.cols)
		at += size
	}
	return at, width
}

// spreadOffsets gives each new row from first on the newest write to any old row
// of [a, b) whose text it has.
func (r *recutter) spreadOffsets(a, b, first int) {
	c := r.c
	old := a
	for i := first; i < len(r.rows); i++ {
		p := &r.rows[i]
		end := p.text + p.size
		for old+1 < b && c.rows[old+1].text <= p.text {
			old++
		}
		for k := old; k < b && (k == old || c.rows[k].text < end); k++ {
			p.written = max(p.written, c.rows[k].written)
		}
	}
}

// spreadRuns encodes the styles of old rows [a, b) for the new ones.
func (r *recutter) spreadRuns(a, b, first int) {
	c := r.c
	old, left, style := a-1, 0, uint64(0)
	var runs []byte
	rowLeft := 0
	for i := first; i < len(r.rows); i++ {
		p := &r.rows[i]
		p.runs = uint32(len(r.runs))
		size := int(p.size)
		blank := 0 // bytes of the default style that are not written yet
		for size > 0 {
			for left == 0 {
				if rowLeft == 0 {
					old++
					if old >= b {
						break
					}
					rowLeft, runs = len(c.textOf(old)), c.runsOf(old)
					continue
				}
				left, style = rowLeft, 0
				if len(runs) > 0 {
					left, style, runs = nextRun(runs)
					left = min(left, rowLeft)
				}
				rowLeft -= left
			}
			if left == 0 {
				break
			}
			n := min(left, size)
			left -= n
			size -= n
			if style == 0 {
				blank += n
				continue
			}
			if blank > 0 {
				r.runs = binary.AppendUvarint(binary.AppendUvarint(r.runs, uint64(blank)), 0)
				blank = 0
			}
			r.runs = binary.AppendUvarint(binary.AppendUvarint(r.runs, uint64(n)), style)
		}
	}
}

// moveMarks moves the marks in old rows [a, b) to the new rows from first on.
func (r *recutter) moveMarks(a, b, first int) {
	for i := range r.marks {
		m := &r.marks[i]
		if m.chunk != r.c || m.moved || m.row < a || m.row >= b {
			continue
		}
		at := int(r.c.rows[m.row].text) + m.at
		k := first
		for k+1 < len(r.rows) && int(r.rows[k+1].text) <= at {
			k++
		}
		p := &r.rows[k]
		if end := int(p.text + p.size); at > end {
			m.extra += columns(r.c.text[end:at])
			at = end
		}
		m.row, m.moved = k, true
		m.at = at - int(p.text)
		m.col = columns(r.c.text[p.text:at]) + m.extra
	}
}

// showNewest makes the newest rows of the history the screen. Blank rows below the
// cursor stay as far as there is room; without them the history comes down.
func (t *Terminal) showNewest(cols, rows, below int, marks []mark) {
	s, h := &t.main, &t.hist
	anchor, cursor := marks[0].index(), marks[1].index()
	start := anchor
	switch n := int(h.end - anchor); {
	case n > rows:
		start = min(h.end-uint64(rows), cursor)
	case below == 0:
		start = h.oldest
		if h.rows() > rows {
			start = h.end - uint64(rows)
		}
	}
	s.rows = newScreen(rows, t.offset).rows
	var lost []*row
	for h.end > start {
		y := int(h.end - 1 - start)
		r := &row{}
		if y < rows {
			r = s.rows[y]
		}
		h.pop(&t.tab, r, cols)
		if y >= rows {
			lost = append(lost, r)
		}
	}
	t.reportSince(anchor)
	h.evict()
	if len(lost) > 0 {
		slices.Reverse(lost)
		s.rows[rows-1].wrapped = false
		for y := 0; y < len(lost) && t.out.sink != nil; {
			end := segment(lost, y, len(lost))
			t.emit(lost[y:end], false, false)
			y = end
		}
	}
	settle := func(m *mark, x, y *int, pending *bool) {
		*y = min(int(max(m.index(), start)-start), rows-1)
		*pending = m.col >= cols && m.extra == 0
		*x = min(m.col, cols-1)
	}
	settle(&marks[1], &s.x, &s.y, &s.pend)
	if t.grid == s {
		t.cur.x, t.cur.y, t.cur.pending = s.x, s.y, s.pend
	}
	if s.saved != nil {
		settle(&marks[2], &s.saved.x, &s.saved.y, &s.saved.pending)
	}
}

// resizeAlternate crops or pads the alternate screen: rows below the cursor go
// first, then rows at the top.
func (t *Terminal) resizeAlternate(cols, rows int) {
	c, s := &t.cur, &t.alt
	drop := max(t.rows-rows, 0)
	end := t.rows - min(drop, t.rows-1-c.y)
	top := max(end-rows, 0)
	was := s.rows[top:end]
	*s = screen{rows: newScreen(rows, t.offset).rows, saved: s.saved, kitty: s.kitty}
	for y, r := range was {
		if r.used > 0 {
			n := s.rows[y]
			*n = *r
			n.cells = make([]cell, cols)
			n.used = copy(n.cells, r.cells[:r.used])
			if n.cells[cols-1]&cellKind == wide {
				n.cells[cols-1] &^= cellText | cellCluster | cellKind
			}
			n.wrapped = n.wrapped && cols == len(r.cells)
			if t.tab.most < MaxCluster {
				t.tab.shorten(n.cells[:n.used])
			}
		}
	}
	c.y -= top
	if cols != t.cols {
		if c.pending && cols > t.cols {
			c.x++
		}
		c.x, c.pending = min(c.x, cols-1), false
	}
}
