package replay

import (
	"math"
	"unicode/utf8"
)

// AppendRow appends to dst the bytes that show row y of the screen, 0 at the top, in a
// row of another terminal that is cols columns wide: with the cursor in that row's
// first column and the pen as after a reset, before and after. Columns beyond cols are
// left out, a wide character that does not fit is a blank, and what is right of the
// row's end is erased. Where terminals may differ over how wide a cluster is, the
// column is set behind it. The bytes wrap nothing, and keep to the row if the other
// terminal does not wrap (?7).
func (t *Terminal) AppendRow(dst []byte, y, cols int) []byte {
	w := snapshot{t: t, b: dst, chars: defaultCharsets, limit: math.MaxInt}
	r := t.grid.rows[y]
	n := min(r.length(), cols)
	for x := 0; x < n; {
		c := r.cells[x]
		w.setPen(t.tab.styles.list[c>>cellStyle])
		if c&cellKind == wide && x+2 > n {
			w.print(blankText)
			x++
			continue
		}
		text := w.text(&t.tab, c)
		w.print(text)
		x++
		if c&cellKind == wide {
			x++
		}
		if _, size := utf8.DecodeRune(text); size < len(text) && x < cols {
			w.csi("", "G", x+1)
		}
	}
	w.setPen(style{})
	if n < cols {
		w.put("\x1b[K")
	}
	return w.b
}
