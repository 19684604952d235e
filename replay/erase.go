package replay

import "looptape/checkpoint"

// eraseDisplay is ED, or DECSED if it spares protected cells. It never feeds the
// history; ED 3 drops it. A pending wrap stays pending, and its cursor counts as
// standing behind the last column: nothing is right of it.
func (t *Terminal) eraseDisplay(what int, spare bool) {
	c := &t.cur
	switch what {
	case 0:
		if c.x > 0 || spare {
			t.eraseLine(0, spare)
			t.eraseRows(c.y+1, t.rows, spare)
		} else {
			t.eraseRows(c.y, t.rows, spare)
		}
	case 1:
		t.eraseRows(0, c.y, spare)
		if c.x == t.cols-1 {
			t.eraseRows(c.y, c.y+1, spare)
		} else {
			t.eraseLine(1, spare)
		}
	case 2:
		t.eraseRows(0, t.rows, spare)
	case 3:
		if !spare {
			t.dropHistory()
		}
	}
}

// dropHistory is ED 3: the main screen's history goes, a new epoch begins.
func (t *Terminal) dropHistory() {
	t.work += workClear
	t.closeHistory()
	t.hist.drop()
	t.bump()
}

// eraseLine is EL, or DECSEL if it spares protected cells.
func (t *Terminal) eraseLine(what int, spare bool) {
	c := &t.cur
	switch what {
	case 0:
		if !c.pending {
			t.eraseCells(c.y, c.x, t.cols, spare)
		}
	case 1:
		t.eraseCells(c.y, 0, c.x+1, spare)
	case 2:
		t.eraseRows(c.y, c.y+1, spare)
	}
}

// eraseRows blanks rows [y0, y1) as a whole, after their text was reported.
func (t *Terminal) eraseRows(y0, y1 int, spare bool) {
	if y0 >= y1 {
		return
	}
	if spare {
		for y := y0; y < y1; y++ {
			t.eraseCells(y, 0, t.cols, true)
		}
		return
	}
	t.lose(y0, y1)
	t.unlink(y0)
	for y := y0; y < y1; y++ {
		t.erase(y, 0, t.cols)
		r := t.grid.rows[y]
		r.styled, r.multi = t.cur.pen.bg != 0, false
	}
}

// eraseCells blanks columns [x0, x1) of row y, but for protected ones if spare.
func (t *Terminal) eraseCells(y, x0, x1 int, spare bool) {
	r := t.grid.rows[y]
	if !spare || !r.styled {
		t.erase(y, x0, x1)
		return
	}
	protected := func(x int) bool {
		return x < r.used && t.tab.styles.list[r.cells[x]>>cellStyle].attrs&checkpoint.Protected != 0
	}
	for x := x0; x < x1; {
		for x < x1 && protected(x) {
			x++
		}
		from := x
		for x < x1 && !protected(x) {
			x++
		}
		if from < x {
			t.erase(y, from, x)
		}
	}
}
