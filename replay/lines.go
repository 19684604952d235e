package replay

// Line is a logical line of the main screen: its text joined over soft wraps,
// trailing blanks trimmed. Text is valid during the call only. Offset is behind
// the last write to any of its rows. Runs are the styles of Text from the left, if
// they were asked for (StyleLines); valid during the call too. Trailing blanks that
// have a background or a line are part of Text then.
type Line struct {
	Text   []byte
	Offset uint64
	Runs   []Run
}

// SetLineSink makes f receive every logical line once, when it leaves the screen
// for good: when its last row scrolls into the history, or when it is cleared,
// deleted or scrolled away while it held text that f has not had. Text that is
// overwritten in place is not reported; the alternate screen is when it is left.
// A nil f (the default) turns this off.
func (t *Terminal) SetLineSink(f func(Line)) { t.out.sink = f }

// FlushLines reports what is on the screens and was not reported: the end. A gap, a
// restart and a respawn do so by themselves.
func (t *Terminal) FlushLines() {
	t.flush(t.main.rows, true)
	if t.grid != &t.main {
		t.flush(t.alt.rows, false)
	}
}

// flush reports the lines of a screen up to the last row with text.
func (t *Terminal) flush(rows []*row, main bool) {
	n := len(rows)
	for n > 0 && rows[n-1].blank() {
		n--
	}
	if n == 0 && main && t.hist.open {
		t.closeHistory()
	}
	for y := 0; y < n; {
		end := segment(rows, y, n)
		t.emit(rows[y:end], main && y == 0 && t.hist.open, true)
		y = end
	}
}

// segment returns the row behind the logical line that begins in row y, at most n.
func segment(rows []*row, y, n int) int {
	end := y + 1
	for end < n && rows[end-1].wrapped {
		end++
	}
	return end
}

// lose reports rows [y0, y1) of the screen shown, which are about to be lost.
func (t *Terminal) lose(y0, y1 int) {
	if t.out.sink == nil || t.grid != &t.main {
		return
	}
	for y := y0; y < y1; {
		end := segment(t.grid.rows, y, y1)
		t.emit(t.grid.rows[y:end], y == 0 && t.hist.open, false)
		y = end
	}
}

// loseAlternate reports the alternate screen, which is about to be left.
func (t *Terminal) loseAlternate() {
	if t.out.sink != nil {
		t.flush(t.alt.rows, false)
	}
}

// emit reports one logical line: rows, and before them the open line of the
// history if head. A line without text is reported only if blank.
func (t *Terminal) emit(rows []*row, head, blank bool) {
	o := &t.out
	done := true
	var offset uint64
	o.begin()
	if head {
		done, offset = t.openLine()
	}
	for _, r := range rows {
		done = done && r.reported
		r.reported = true
		offset = max(offset, r.written)
		at, n := len(o.line), t.lineEnd(r)
		o.line = t.tab.appendRow(o.line, r, n)
		if o.styled {
			o.runs = t.tab.appendRuns(o.runs, r, n, len(o.line)-at)
		}
	}
	if done {
		return
	}
	if o.sink != nil {
		o.report(offset, blank)
	}
}

// ReportFrom readies a Terminal that was restored for its line sink, where the log
// begins or goes on behind a gap: the lines of its history whose Offset is since or
// more are reported at once, and of what is on its screens those will be.
func (t *Terminal) ReportFrom(since uint64) {
	h := &t.hist
	for _, c := range h.chunks {
		k := int(max(h.oldest, c.first) - c.first)
		for first := k; k < len(c.rows); k++ {
			if c.rows[k].flags&packedWrapped == 0 {
				t.reportAgain(c, first, k, since)
				first = k + 1
			} else if k == len(c.rows)-1 { // the open line: its end is on the screen
				for ; first <= k; first++ {
					c.rows[first].flags &^= packedReported
					if c.rows[first].written < since {
						c.rows[first].flags |= packedReported
					}
				}
			}
		}
	}
	for _, s := range []*screen{&t.main, &t.alt} {
		for _, r := range s.rows {
			r.reported = r.written < since
		}
	}
}

// reportAgain reports the line in rows [first, k] of c, if its offset is since or
// more.
func (t *Terminal) reportAgain(c *chunk, first, k int, since uint64) {
	t.out.begin()
	if _, offset := t.gather(c, first, k); t.out.sink != nil && offset >= since {
		t.out.report(offset, true)
	}
}

// lineEnd returns the columns of r that belong to its logical line.
func (t *Terminal) lineEnd(r *row) int {
	switch {
	case !r.wrapped:
		return r.length()
	case r.used == len(r.cells) && r.used > 0 && r.cells[r.used-1] == spacer:
		return r.used - 1
	}
	return len(r.cells)
}

// openLine appends the newest logical line of the history to the scratch line and
// marks it as reported. It returns whether it was already, and its offset.
func (t *Terminal) openLine() (done bool, offset uint64) {
	c := t.hist.last()
	k := len(c.rows) - 1
	first := k
	for first > 0 && c.rows[first-1].flags&packedWrapped != 0 {
		first--
	}
	return t.gather(c, first, k)
}

// gather is openLine for rows [first, k] of c.
func (t *Terminal) gather(c *chunk, first, k int) (done bool, offset uint64) {
	done = true
	for ; first <= k; first++ {
		p := &c.rows[first]
		done = done && p.flags&packedReported != 0
		p.flags |= packedReported
		offset = max(offset, p.written)
		switch {
		case t.out.sink == nil:
		case t.out.styled:
			t.out.appendStyled(c, first)
		default:
			t.out.line = appendPacked(t.out.line, c.textOf(first), p.flags)
		}
	}
	return done, offset
}

// lineDone is called when the newest line of the history is complete.
func (t *Terminal) lineDone() {
	c := t.hist.last()
	k := len(c.rows) - 1
	if k < 0 {
		return
	}
	if t.out.sink == nil && (k == 0 || c.rows[k-1].flags&packedWrapped == 0) {
		c.rows[k].flags |= packedReported
		return
	}
	t.reportLine(c, k)
}

// closeHistory ends the history's open line: what follows does not continue it.
func (t *Terminal) closeHistory() {
	h := &t.hist
	if !h.open {
		return
	}
	h.open = false
	c := h.last()
	if k := len(c.rows) - 1; k >= 0 {
		c.rows[k].flags &^= packedWrapped
		t.lineDone()
	}
}

// reportSince reports the complete lines of the history that end behind row index
// from and were not reported.
func (t *Terminal) reportSince(from uint64) {
	h := &t.hist
	if from >= h.end {
		return
	}
	for _, c := range h.chunks[h.find(max(from, h.oldest)):] {
		k := 0
		if from > c.first {
			k = int(from - c.first)
		}
		for ; k < len(c.rows); k++ {
			p := &c.rows[k]
			switch {
			case p.flags&(packedWrapped|packedReported) != 0:
			case t.out.sink == nil && (k == 0 || c.rows[k-1].flags&packedWrapped == 0):
				p.flags |= packedReported
			default:
				t.reportLine(c, k)
			}
		}
	}
}

// reportLine reports the line that ends in row k of c.
func (t *Terminal) reportLine(c *chunk, k int) {
	first := k
	for first > 0 && c.rows[first-1].flags&packedWrapped != 0 {
		first--
	}
	t.out.begin()
	done, offset := t.gather(c, first, k)
	if t.out.sink != nil && !done {
		t.out.report(offset, true)
	}
}
