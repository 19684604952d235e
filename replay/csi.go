package replay

import "looptape/checkpoint"

// csi carries out a control sequence. The functions are those of ECMA-48 and of
// xterm's ctlseqs; a sequence that is not listed does nothing.
func (t *Terminal) csi(final byte) {
	l := &t.lex
	if l.colons != 0 {
		l.dropSubparameters()
	}
	switch {
	case l.ninter == 0 && l.prefix == 0:
		if !t.csiCursor(final) && !t.csiEdit(final) {
			t.csiOther(final)
		}
	case l.ninter == 0:
		t.csiPrivate(l.prefix, final)
	case l.ninter == 1:
		t.csiInter(l.prefix, l.inter[0], final)
	}
}

// count returns parameter 0 as a repetition: absent and 0 mean 1.
func (t *Terminal) count() int { return max(t.lex.Param(0, 1), 1) }

// pos returns parameter i as a 0-based position: absent and 0 mean the first.
func (t *Terminal) pos(i int) int { return max(t.lex.Param(i, 1), 1) - 1 }

// csiCursor carries out the functions that move the cursor.
func (t *Terminal) csiCursor(final byte) bool {
	c := &t.cur
	switch final {
	case 'A': // CUU
		t.up(t.count())
	case 'B', 'e': // CUD, VPR
		t.down(t.count())
	case 'C', 'a': // CUF, HPR
		t.setX(c.x + t.count())
	case 'D': // CUB
		t.back(t.count())
	case 'E': // CNL
		t.down(t.count())
		t.setX(0)
	case 'F': // CPL
		t.up(t.count())
		t.setX(0)
	case 'G', '`': // CHA, HPA
		t.setX(t.pos(0))
	case 'd': // VPA
		t.setY(t.pos(0))
	case 'H', 'f': // CUP, HVP
		t.moveTo(t.pos(1), t.pos(0))
	case 'I': // CHT
		for range min(t.count(), t.cols) {
			t.work++
			if t.tab1(); c.x == t.cols-1 {
				break
			}
		}
	case 'Z': // CBT
		c.pending = false
		for range min(t.count(), t.cols) {
			x := t.tabs.previous(c.x)
			t.work += 1 + tabWork(c.x, x)
			if c.x = x; x == 0 {
				break
			}
		}
	case 's': // SCOSC; DECSLRM is not supported, as ?69 is not
		t.saveCursor()
	case 'u': // SCORC
		t.restoreCursor()
	case 'r': // DECSTBM
		t.setRegion(t.pos(0), t.lex.Param(1, 0))
	default:
		return false
	}
	return true
}

// csiEdit carries out the functions that change cells.
func (t *Terminal) csiEdit(final byte) bool {
	c := &t.cur
	switch final {
	case '@': // ICH
		t.insertCells(c.y, c.x, t.count())
		c.pending = false
	case 'P': // DCH
		t.deleteCells(c.y, c.x, t.count())
		c.pending = false
	case 'X': // ECH
		t.erase(c.y, c.x, min(c.x+t.count(), t.cols))
		c.pending = false
	case 'J': // ED
		t.eraseDisplay(t.lex.Param(0, 0), false)
	case 'K': // EL
		t.eraseLine(t.lex.Param(0, 0), false)
	case 'L': // IL
		if c.y >= t.top && c.y <= t.bottom {
			t.scrollDown(c.y, t.bottom, t.count())
			c.x, c.pending = 0, false
		}
	case 'M': // DL
		if c.y >= t.top && c.y <= t.bottom {
			t.deleteRows(c.y, t.count())
			c.x, c.pending = 0, false
		}
	case 'S': // SU
		t.work += uint64(min(t.count(), t.rows)) * workLine
		t.scrollUp(t.top, t.bottom, t.count(), false)
	case 'T': // SD; with five parameters it is mouse tracking
		if t.lex.Params() <= 1 {
			t.scrollDown(t.top, t.bottom, t.count())
		}
	case '^': // SD of ECMA-48
		t.scrollDown(t.top, t.bottom, t.count())
	default:
		return false
	}
	return true
}

// csiOther carries out the remaining functions without prefix or intermediates.
func (t *Terminal) csiOther(final byte) {
	switch final {
	case 'c': // DA1
		if t.lex.Param(0, 0) == 0 {
			t.reply(primaryAttributes)
		}
	case 'g': // TBC
		switch t.lex.Param(0, 0) {
		case 0:
			t.tabs.set(t.cur.x, false)
		case 3:
			t.tabs.clear()
		}
	case 'h', 'l': // SM, RM
		for i := range t.lex.Params() {
			t.setMode(t.lex.Param(i, 0), false, final == 'h')
		}
	case 'n': // DSR
		t.deviceStatus(t.lex.Param(0, 0), false)
	case 't': // XTWINOPS
		t.windowOperation()
	}
}

// csiPrivate carries out sequences with one of the markers < = > ?.
func (t *Terminal) csiPrivate(prefix, final byte) {
	l := &t.lex
	switch string([]byte{prefix, final}) {
	case "?h", "?l": // DECSET, DECRST
		for i := range l.Params() {
			t.setMode(l.Param(i, 0), true, final == 'h')
		}
	case "?s", "?r": // XTSAVE, XTRESTORE
		t.saveModes(final == 's')
	case "?J": // DECSED
		t.eraseDisplay(l.Param(0, 0), true)
	case "?K": // DECSEL
		t.eraseLine(l.Param(0, 0), true)
	case "?n":
		t.deviceStatus(l.Param(0, 0), true)
	case ">c": // DA2
		if l.Param(0, 0) == 0 {
			t.reply(secondaryAttributes)
		}
	case "=c": // DA3
		if l.Param(0, 0) == 0 {
			t.reply(tertiaryAttributes)
		}
	case ">q": // XTVERSION
		if l.Param(0, 0) == 0 {
			t.reply("\x1bP>|" + Version + "\x1b\\")
		}
	case ">m": // XTMODKEYS
		if n := l.Param(0, -1); n == -1 || n == 4 {
			t.modes.otherKeys = uint8(min(l.Param(1, 0), 2))
		}
	case ">n":
		if n := l.Param(0, -1); n == -1 || n == 4 {
			t.modes.otherKeys = 0
		}
	case "?m": // XTQMODKEYS
		if l.Param(0, 0) == 4 {
			t.reply("\x1b[>4;" + itoa(int(t.modes.otherKeys)) + "m")
		}
	case ">u", "<u", "=u", "?u":
		t.kitty(prefix)
	}
}

// csiInter carries out sequences with one intermediate byte.
func (t *Terminal) csiInter(prefix, inter, final byte) {
	l := &t.lex
	switch string([]byte{inter, final}) {
	case " q": // DECSCUSR
		if n := l.Param(0, 0); prefix == 0 && n <= 6 {
			t.cur.shape = uint8(n)
		}
	case "\"q": // DECSCA
		pen := t.cur.pen
		pen.attrs &^= checkpoint.Protected
		if l.Param(0, 0) == 1 {
			pen.attrs |= checkpoint.Protected
		}
		t.setPen(pen)
	case "!p": // DECSTR
		if prefix == 0 {
			t.softReset()
		}
	case "$p": // DECRQM
		t.requestMode(l.Param(0, 0), prefix)
	}
}

// up moves the cursor up, not across the top margin if it stands in the region.
func (t *Terminal) up(n int) {
	c := &t.cur
	limit := 0
	if c.y >= t.top {
		limit = t.top
	}
	c.y, c.pending = max(c.y-n, limit), false
}

// down moves the cursor down, not across the bottom margin from inside.
func (t *Terminal) down(n int) {
	c := &t.cur
	limit := t.rows - 1
	if c.y <= t.bottom {
		limit = t.bottom
	}
	c.y, c.pending = min(c.y+n, limit), false
}

// back moves the cursor left. With reverse wrap it goes on at the end of the row
// above if that continues in this one.
func (t *Terminal) back(n int) {
	c := &t.cur
	c.pending = false
	if n <= c.x || !t.modes.has(modeReverseWrap) || !t.modes.has(modeWrap) {
		c.x = max(c.x-n, 0)
		return
	}
	for n > c.x && c.y > t.top && t.grid.rows[c.y-1].wrapped {
		t.work++
		n -= c.x + 1
		c.y--
		c.x = t.cols - 1
	}
	c.x = max(c.x-n, 0)
}

func (t *Terminal) setX(x int) {
	t.cur.x, t.cur.pending = min(x, t.cols-1), false
}

// setY goes to row y, counted from the top margin in origin mode.
func (t *Terminal) setY(y int) {
	limit := t.rows - 1
	if t.modes.has(modeOrigin) {
		y += t.top
		limit = t.bottom
	}
	t.cur.y, t.cur.pending = min(y, limit), false
}

func (t *Terminal) moveTo(x, y int) {
	t.setX(x)
	t.setY(y)
}

// setRegion is DECSTBM: top is 0-based, bottom the last row 1-based or 0 for the
// last one of the screen. A region of less than two rows is refused.
func (t *Terminal) setRegion(top, bottom int) {
	if bottom == 0 || bottom > t.rows {
		bottom = t.rows
	}
	if top >= bottom-1 {
		return
	}
	t.top, t.bottom = top, bottom-1
	t.moveTo(0, 0)
}

// deleteRows is DL: rows that leave are gone, they never feed the history.
func (t *Terminal) deleteRows(y, n int) {
	n = min(n, t.bottom-y+1)
	t.moved = t.offset
	rows := t.grid.rows
	rows[t.bottom].wrapped = false
	t.lose(y, y+n)
	t.unlink(y)
	t.work += uint64(t.bottom - y)
	rotate(rows[y:t.bottom+1], n)
	for _, r := range rows[t.bottom+1-n : t.bottom+1] {
		t.blankRow(r)
	}
}
