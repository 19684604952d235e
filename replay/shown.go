package replay

import (
	"bytes"
	"iter"
)

// ShownLine is a line of the screen shown or of its history, and its first row in
// the current epoch.
type ShownLine struct {
	Line
	Row uint64
}

// Lines returns the logical lines of the rows within Bounds whose Offset is wanted,
// oldest first; one whose beginning is gone begins with what is left. Its cost is
// that of those lines, and little for each other row.
func (t *Terminal) Lines(wanted func(offset uint64) bool) iter.Seq[ShownLine] {
	return func(yield func(ShownLine) bool) {
		b := t.Bounds()
		first, offset := b.Oldest, uint64(0)
		var c *chunk
		for n := b.Oldest; n < b.End; n++ {
			var written uint64
			var wrapped bool
			if i := t.hist.base + n; n < b.Active {
				if c == nil || i >= c.end() {
					c, _ = t.hist.at(i)
				}
				row := &c.rows[i-c.first]
				written, wrapped = row.written, row.flags&packedWrapped != 0
			} else {
				row := t.grid.rows[n-b.Active]
				written, wrapped = row.written, row.wrapped
			}
			offset = max(offset, written)
			if wrapped && n+1 < b.End {
				continue
			}
			if wanted(offset) && !yield(ShownLine{Line{Text: t.lineText(b, first, n), Offset: offset}, first}) {
				return
			}
			first, offset = n+1, 0
		}
	}
}

// lineText returns the text of the line in rows [first, last], valid until the next
// call.
func (t *Terminal) lineText(b Bounds, first, last uint64) []byte {
	o := &t.out
	o.line = o.line[:0]
	for ; first <= last; first++ {
		if first < b.Active {
			c, k := t.hist.at(t.hist.base + first)
			o.line = appendPacked(o.line, c.textOf(k), c.rows[k].flags)
		} else {
			r := t.grid.rows[first-b.Active]
			o.line = t.tab.appendRow(o.line, r, t.lineEnd(r))
		}
	}
	return bytes.TrimRight(o.line, " ")
}
