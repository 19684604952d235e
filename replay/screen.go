package replay

import "looptape/checkpoint"

// row is one physical row of a screen.
type row struct {
	cells    []cell // nil until something is written, then one a column
	used     int    // cells from here on are zero
	written  uint64 // stream offset behind the last write
	wrapped  bool   // the line goes on in the next row
	reported bool   // the line sink has had its text
	styled   bool   // some cell has a style
	multi    bool   // some cell is not one ASCII character in one column
}

// reset makes r a blank row written at offset.
func (r *row) reset(offset uint64) {
	clear(r.cells[:r.used])
	*r = row{cells: r.cells, written: offset}
}

// length returns the columns up to the last one that was written or has a style.
func (r *row) length() int {
	n := r.used
	for n > 0 && r.cells[n-1].blank() {
		n--
	}
	return n
}

// blank says whether r shows no text.
func (r *row) blank() bool {
	for _, c := range r.cells[:r.used] {
		if c&cellKind == tail || c&cellCluster != 0 || c&cellText > ' ' {
			return false
		}
	}
	return true
}

// screen is the grid of one of the two screens and what belongs to it alone.
// Exactly one of them is shown; t.cur is the cursor on that one.
type screen struct {
	rows  []*row
	saved *saved  // DECSC
	kitty []uint8 // stack of kitty keyboard flags
	x, y  int     // the cursor when the screen was left
	pend  bool
}

func newScreen(rows int, offset uint64) screen {
	s := screen{rows: make([]*row, rows)}
	backing := make([]row, rows)
	for i := range s.rows {
		s.rows[i] = &backing[i]
		s.rows[i].written = offset
	}
	return s
}

// row returns row y with its cells allocated.
func (t *Terminal) row(y int) *row {
	r := t.grid.rows[y]
	if r.cells == nil {
		r.cells = make([]cell, t.cols)
	}
	return r
}

// eraseCell is what erasing leaves: a blank with the pen's background (BCE).
func (t *Terminal) eraseCell() cell {
	if t.cur.pen.bg == 0 {
		return 0
	}
	return cell(t.tab.style(style{bg: t.cur.pen.bg})) << cellStyle
}

// split makes the border left of column x of r a border between clusters: a wide
// one that straddles it becomes blanks.
func (r *row) split(x int) {
	if r.multi && x > 0 && x < r.used && r.cells[x]&cellKind == tail {
		r.cells[x-1] &^= cellText | cellCluster | cellKind
		r.cells[x] &^= cellText | cellCluster | cellKind
	}
}

// erase blanks columns [x0, x1) of row y. A row that is blanked as a whole does not
// continue the one above any longer.
func (t *Terminal) erase(y, x0, x1 int) {
	r := t.grid.rows[y]
	r.written = t.offset
	r.reported = false
	if x1 == t.cols {
		r.wrapped = false
		if x0 == 0 {
			t.unlink(y)
		}
	}
	t.work += uint64(x1 - x0)
	e := t.eraseCell()
	if e == 0 && x0 >= r.used {
		return
	}
	r = t.row(y)
	r.split(x0)
	r.split(x1)
	if e != 0 {
		for i := x0; i < x1; i++ {
			r.cells[i] = e
		}
		r.used, r.styled = max(r.used, x1), true
		return
	}
	end := min(x1, r.used)
	clear(r.cells[x0:end])
	if end == r.used {
		r.used = x0
	}
}

// unlink says that what stands above row y does not go on in it any longer.
func (t *Terminal) unlink(y int) {
	switch {
	case y > 0:
		t.grid.rows[y-1].wrapped = false
	case t.grid == &t.main:
		t.closeHistory()
	}
}

// blankRow makes r a row as scrolling brings it in.
func (t *Terminal) blankRow(r *row) {
	r.reset(t.offset)
	if e := t.eraseCell(); e != 0 {
		if r.cells == nil {
			r.cells = make([]cell, t.cols)
		}
		for i := range r.cells {
			r.cells[i] = e
		}
		r.used, r.styled = t.cols, true
		t.work += uint64(t.cols)
	}
}

// scrollUp moves rows [top, bottom] up by n. Rows that leave a region at the top
// of the main screen go to the history. soft is set while a line wraps.
func (t *Terminal) scrollUp(top, bottom, n int, soft bool) {
	rows := t.grid.rows
	n = min(n, bottom-top+1)
	if top > 0 || bottom < t.rows-1 || t.grid != &t.main {
		t.moved = t.offset
	}
	if !soft {
		rows[bottom].wrapped = false
	}
	if top == 0 && t.grid == &t.main {
		for _, r := range rows[:n] {
			t.push(r)
		}
	} else {
		t.lose(top, top+n)
		t.unlink(top)
	}
	if n == 1 {
		t.work += t.scrollWork()
		r := rows[top]
		copy(rows[top:], rows[top+1:bottom+1])
		rows[bottom] = r
		t.blankRow(r)
		return
	}
	t.work += uint64(bottom - top)
	rotate(rows[top:bottom+1], n)
	for _, r := range rows[bottom+1-n : bottom+1] {
		t.blankRow(r)
	}
}

// scrollDown moves rows [top, bottom] down by n; what leaves is lost.
func (t *Terminal) scrollDown(top, bottom, n int) {
	rows := t.grid.rows
	t.moved = t.offset
	n = min(n, bottom-top+1)
	t.lose(bottom+1-n, bottom+1)
	t.unlink(top)
	if n <= bottom-top {
		rows[bottom-n].wrapped = false
	}
	t.work += uint64(bottom - top)
	rotate(rows[top:bottom+1], bottom-top+1-n)
	for _, r := range rows[top : top+n] {
		t.blankRow(r)
	}
}

// rotate moves the first n rows behind the others.
func rotate(rows []*row, n int) {
	reverse(rows[:n])
	reverse(rows[n:])
	reverse(rows)
}

func reverse(rows []*row) {
	for i, j := 0, len(rows)-1; i < j; i, j = i+1, j-1 {
		rows[i], rows[j] = rows[j], rows[i]
	}
}

// insertCells shifts columns [x, cols) of row y right by n (ICH, IRM).
func (t *Terminal) insertCells(y, x, n int) {
	r := t.row(y)
	n = min(n, t.cols-x)
	t.work += uint64(t.cols - x)
	r.split(x)
	r.split(t.cols - n)
	if r.used > x {
		copy(r.cells[x+n:], r.cells[x:r.used])
		r.used = min(r.used+n, t.cols)
		if r.cells[t.cols-1]&cellKind == wide {
			r.cells[t.cols-1] &^= cellText | cellCluster | cellKind
		}
	}
	t.fill(r, x, x+n)
}

// deleteCells shifts columns [x+n, cols) of row y left by n (DCH).
func (t *Terminal) deleteCells(y, x, n int) {
	r := t.row(y)
	n = min(n, t.cols-x)
	t.work += uint64(t.cols - x)
	r.split(x)
	r.split(x + n)
	if r.used > x {
		moved := 0
		if r.used > x+n {
			moved = copy(r.cells[x:], r.cells[x+n:r.used])
		}
		clear(r.cells[x+moved : r.used])
		r.used = x + moved
	}
	r.wrapped = false
	t.fill(r, t.cols-n, t.cols)
}

// fill writes erased cells to [x0, x1) of r, which is being edited.
func (t *Terminal) fill(r *row, x0, x1 int) {
	r.written, r.reported = t.offset, false
	e := t.eraseCell()
	if e == 0 {
		if x0 < r.used {
			clear(r.cells[x0:min(x1, r.used)])
		}
		return
	}
	for i := x0; i < x1; i++ {
		r.cells[i] = e
	}
	r.used, r.styled = max(r.used, x1), true
}

// align fills the screen with E (DECALN).
func (t *Terminal) align() {
	t.lose(0, t.rows)
	t.unlink(0)
	t.work += uint64(t.cols * t.rows)
	for y := range t.grid.rows {
		r := t.row(y)
		r.reset(t.offset)
		for i := range r.cells {
			r.cells[i] = 'E'
		}
		r.used = t.cols
	}
}

// saved is what DECSC keeps.
type saved struct {
	x, y    int
	pending bool
	pen     style
	chars   checkpoint.Charsets
	origin  bool
}

// saveCursor is DECSC.
func (t *Terminal) saveCursor() {
	c := &t.cur
	t.grid.saved = &saved{c.x, c.y, c.pending, c.pen, c.chars, t.modes.has(modeOrigin)}
}

// restoreCursor is DECRC; without a DECSC before it, it homes the cursor and
// resets what DECSC saves (DEC STD 070). A wrap is never pending behind it.
func (t *Terminal) restoreCursor() {
	s := t.grid.saved
	if s == nil {
		s = &saved{chars: defaultCharsets}
		s.chars.GL = t.cur.chars.GL
	}
	c := &t.cur
	c.x, c.y, c.pending = min(s.x, t.cols-1), min(s.y, t.rows-1), false
	c.chars = s.chars
	t.setPen(s.pen)
	t.modes.set(modeOrigin, s.origin)
}
