package replay

import (
	"iter"
	"unicode/utf8"
)

// paint writes rows from the top left corner of a blank screen on, by printing, so
// that what is above the screen scrolls into the history, and soft-wrapped rows wrap.
// all says that the cursor goes to the last row even if nothing is in it.
func (w *snapshot) paint(rows iter.Seq2[*row, *table], all bool) {
	w.setChars(defaultCharsets)
	lines := -1 // line feeds due
	var soft, gap bool
	for r, tb := range rows {
		if w.full() {
			return
		}
		continues := soft
		switch {
		case soft:
			w.wrap(tb, r, gap)
		default:
			lines++
			if r.length() > 0 || r.wrapped {
				w.feed(lines)
				lines = 0
			}
		}
		soft, gap = r.wrapped, w.row(tb, r, continues)
	}
	if all {
		w.feed(lines)
	}
}

// feed goes to the start of the n-th next line. Rows that scrolling brings in have the
// pen's background.
func (w *snapshot) feed(n int) {
	if n > 0 && w.pen.bg != 0 {
		w.setPen(style{})
	}
	for range n {
		w.put("\r\n")
	}
}

// wrap makes the cursor, which is behind a full row, go to the start of the next one,
// r. gap says that the row is full but for a column, for want of a wide character.
// Where r's first character cannot do it, another one does.
func (w *snapshot) wrap(tb *table, r *row, gap bool) {
	if r.used > 0 && !void(r.cells[0]) && tb.styles.list[r.cells[0]>>cellStyle].bg == 0 {
		first, _ := utf8.DecodeRune(w.text(tb, r.cells[0]))
		if !gap || classOf(first)&classWidth == 2 {
			return
		}
	}
	if w.pen.bg != 0 {
		w.setPen(style{})
	}
	filler := " "
	if gap {
		filler = "\u3000"
	}
	w.print([]byte(filler))
	w.put("\r")
}

// row writes r from its first column on; continues says that it does so at the end of
// the row above or where something already is in the first column. It returns whether
// the row goes on but leaves its last column to a wide character.
func (w *snapshot) row(tb *table, r *row, continues bool) (gap bool) {
	cols := w.t.cols
	n, printed := r.length(), cols // columns; where blanks must be printed
	if r.wrapped {
		n = cols
		printed = cols - 1
		if r.used == cols && r.cells[cols-1] == spacer {
			n, gap = cols-1, true
		}
	}
	if continues {
		n = max(n, 1)
	}
	at := func(x int) cell {
		if x < r.used {
			return r.cells[x]
		}
		return 0
	}
	for x := 0; x < n && !w.full(); {
		c := at(x)
		s := tb.styles.list[c>>cellStyle]
		if !void(c) || s != (style{bg: s.bg}) || x >= printed || cols == 1 && continues {
			w.setPen(s)
			w.print(w.text(tb, c))
			x++
			if c&cellKind == wide {
				x++
			}
			continue
		}
		end := x + 1
		over := continues && x == 0 // erasing all of the row would unwrap it
		for !over && end < min(n, printed) && void(at(end)) && at(end)>>cellStyle == c>>cellStyle {
			end++
		}
		if over || s.bg != 0 {
			w.setPen(s)
			w.csi("", "X", end-x)
		}
		if end < n || r.wrapped {
			w.csi("", "C", end-x)
		}
		x = end
	}
	return gap
}

// void says whether c has no text.
func void(c cell) bool {
	return c&(cellText|cellCluster) == 0
}

// print writes the text of a cell, with SI before it where it would join what is in
// front: the control does nothing but that.
func (w *snapshot) print(text []byte) {
	r, _ := utf8.DecodeRune(text)
	if mayJoin(w.last, classOf(r)) {
		w.b = append(w.b, 0x0F)
	}
	w.b = append(w.b, text...)
	r, _ = utf8.DecodeLastRune(text)
	w.last = classOf(r)
}

// text returns the text of c, without what would make it take more columns than it has.
// It is valid until the next call.
func (w *snapshot) text(tb *table, c cell) []byte {
	text := tb.appendText(w.scratch[:0], c)
	w.scratch = text
	if c&cellCluster == 0 || c&cellKind != narrow || w.t.cols == 1 {
		return text
	}
	for len(text) > 0 && clusterWidth(text) > 1 {
		_, n := utf8.DecodeLastRune(text)
		text = text[:len(text)-n]
	}
	if len(text) == 0 {
		return blankText
	}
	return text
}
