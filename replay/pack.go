package replay

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// Packed text is the text of cells from the left, tails and spacers left out.
// A cell is 0x00 if it was never written, one code point of the width that the
// width table gives it, or a mark:
//
//	0     0xFF
//	1     bits 0..6 length of the cluster, 1..127; bit 7 set: it takes two columns
//	2     the cluster
const clusterMark = 0xFF

// push moves a copy of r into the history.
func (t *Terminal) push(r *row) {
	h := &t.hist
	if h.open && h.lineLen >= MaxLine {
		t.closeHistory()
	}
	c := h.begin(r.written, r.used)
	h.finish(t.tab.pack(h, c, r, t.cols))
	if !h.open {
		t.lineDone()
	}
	h.evict()
}

// pack appends the cells of r to c, and returns what finish wants.
func (tb *table) pack(h *history, c *chunk, r *row, cols int) (_ *chunk, width int, flags uint8, l runLoad) {
	n := r.length()
	if r.wrapped {
		flags, n = packedWrapped, cols
		if r.used == cols && r.cells[cols-1] == spacer {
			n--
		}
	}
	if r.reported {
		flags |= packedReported
	}
	if r.styled {
		l = tb.packRuns(h, c, r, n)
	}
	k := min(n, r.used)
	at := len(c.text)
	if !r.multi {
		c.text = extend(c.text, k)
		dst := c.text[at:]
		for i, x := range r.cells[:len(dst)] {
			dst[i] = byte(x)
		}
		c.text = append(c.text, make([]byte, n-k)...)
		return c, n, flags | packedASCII | voids(c.text[at:]), l
	}
	for _, x := range r.cells[:k] {
		if x < 0x80 {
			c.text = append(c.text, byte(x))
			continue
		}
		if cols == 1 {
			x = tb.natural(x)
		}
		var f uint8
		c.text, f = tb.appendCell(c.text, x)
		flags |= f
	}
	c.text = append(c.text, make([]byte, n-k)...)
	return c, n, flags | voids(c.text[at:]), l
}

// voids returns packedVoids if p has cells that were never written.
func voids(p []byte) uint8 {
	if bytes.IndexByte(p, 0) >= 0 {
		return packedVoids
	}
	return 0
}

// appendCell appends the packed form of x, and returns the flags that it gives its
// row.
func (tb *table) appendCell(dst []byte, x cell) ([]byte, uint8) {
	kind := x & cellKind
	if kind == tail {
		return dst, 0
	}
	r := rune(x & cellText)
	if x&cellCluster == 0 {
		if kind == spacer {
			return append(dst, 0), 0
		}
		if r < 0x80 && kind == narrow {
			return append(dst, byte(r)), 0
		}
		k := classOf(r)
		if w := k & classWidth; w == 1 && kind == narrow || w == 2 && kind == wide {
			return utf8.AppendRune(dst, r), opensFlag(k)
		}
	}
	at := len(dst)
	dst = tb.appendText(append(dst, clusterMark, 0), x)
	dst[at+1] = byte(len(dst) - at - 2)
	if kind == wide {
		dst[at+1] |= 0x80
	}
	return dst, packedClusters | packedOpens
}

func opensFlag(k class) uint8 {
	if k&(classOpens|classPrepend) != 0 {
		return packedOpens
	}
	return 0
}

// natural gives a cell of a one-column screen the width that its text has: wide
// text stands in one column there, and gets its second one back in a wider screen.
func (tb *table) natural(x cell) cell {
	var buf [MaxCluster + utf8.UTFMax]byte
	if x >= 0x80 && x&cellKind == narrow && clusterWidth(tb.appendText(buf[:0], x)) == 2 {
		x |= wide
	}
	return x
}

// packRuns appends the styles of the first n columns of r, the last run of the
// default style left out.
func (tb *table) packRuns(h *history, c *chunk, r *row, n int) runLoad {
	var runs runCounter
	plain := false // some hyperlink was left out
	cells := r.cells[:min(n, r.used)]
	var scratch [MaxCluster * 2]byte
	for i := 0; i < len(cells); {
		style := cells[i] >> cellStyle
		j, size := i, 0
		for j < len(cells) && cells[j]>>cellStyle == style {
			switch {
			case !r.multi || cells[j] < 0x80:
				size++
			case cells[j]&cellKind != tail:
				x := cells[j]
				if len(r.cells) == 1 {
					x = tb.natural(x)
				}
				b, _ := tb.appendCell(scratch[:0], x)
				size += len(b)
			}
			j++
		}
		if style == 0 && j == len(cells) {
			break
		}
		c.runs = binary.AppendUvarint(c.runs, uint64(size))
		local := h.hints.find(c, tb.styles.list, uint32(style))
		if n := runs.linkSize(&c.styles[local]); n > 0 {
			if h.links+n > h.linkBudget {
				s := c.styles[local]
				s.link = nil
				number := tb.style(s) // which may make the list another one
				local, n, plain = h.hints.find(c, tb.styles.list, number), 0, true
			}
			h.links += n
		}
		c.runs = binary.AppendUvarint(c.runs, uint64(local))
		runs.addOther(&c.styles[local])
		i = j
	}
	if plain { // it may look like what is beside it now
		runs = c.trimRuns()
	}
	return loadOf(runs.n)
}

// linkBytes returns what the hyperlinks of r count towards MaxLinkBytes, at most.
func (tb *table) linkBytes(r *row) int {
	n, style := 0, cell(0)
	for _, x := range r.cells[:r.used] {
		if x >>= cellStyle; x != style {
			style = x
			n += tb.styles.list[x].link.size()
		}
	}
	return n
}

const blanks = "                                                                                "

// pad appends n spaces.
func pad(dst []byte, n int) []byte {
	for ; n > len(blanks); n -= len(blanks) {
		dst = append(dst, blanks...)
	}
	if n > 0 {
		dst = append(dst, blanks[:n]...)
	}
	return dst
}

// extend makes room for n bytes, whose contents are undefined.
func extend(b []byte, n int) []byte {
	if len(b)+n <= cap(b) {
		return b[:len(b)+n]
	}
	return append(b, make([]byte, n)...)
}

// unit returns the bytes and columns of the first cell of packed text.
func unit(p []byte) (size, width int) {
	b := p[0]
	if b < 0x80 {
		return 1, 1
	}
	if b == clusterMark && len(p) > 1 {
		return min(2+int(p[1]&0x7F), len(p)), 1 + int(p[1]>>7)
	}
	var r rune
	switch { // it is valid UTF-8
	case b < 0xE0 && len(p) > 1:
		r, size = rune(b&0x1F)<<6|rune(p[1]&0x3F), 2
	case b < 0xF0 && len(p) > 2:
		r, size = rune(b&0x0F)<<12|rune(p[1]&0x3F)<<6|rune(p[2]&0x3F), 3
	default:
		r, size = utf8.DecodeRune(p)
	}
	return size, max(int(classOf(r)&classWidth), 1)
}

// unitCell returns the cell for a unit, without style.
func (tb *table) unitCell(p []byte, width int) cell {
	var c cell
	if p[0] == clusterMark {
		c = tb.cluster(tb.fit(p[2:]))
	} else {
		r, _ := utf8.DecodeRune(p)
		c = cell(r)
	}
	if width == 2 {
		c |= wide
	}
	return c
}

// unpack makes r what row k of c was packed from.
func unpack(tb *table, r *row, c *chunk, k, cols int) {
	p := &c.rows[k]
	r.reset(p.written)
	r.wrapped = p.flags&packedWrapped != 0
	r.reported = p.flags&packedReported != 0
	text, runs := c.textOf(k), c.runsOf(k)
	if len(text) == 0 && !r.wrapped {
		return
	}
	if r.cells == nil {
		r.cells = make([]cell, cols)
	}
	r.styled = len(runs) > 0
	r.multi = p.flags&packedASCII == 0
	x := 0
	for len(text) > 0 {
		n, num := len(text), cell(0)
		if len(runs) > 0 {
			var style uint64
			n, style, runs = nextRun(runs)
			n = min(n, len(text))
			if style != 0 && style < uint64(len(c.styles)) {
				num = cell(tb.style(c.styles[style])) << cellStyle
			}
		}
		for i := 0; i < n; {
			if text[i] < 0x80 {
				if x < cols {
					r.cells[x] = num | cell(text[i])
					x++
				}
				i++
				continue
			}
			size, width := unit(text[i:])
			width = min(width, cols)
			if x+width <= cols {
				r.cells[x] = num | tb.unitCell(text[i:i+size], width)
				if width == 2 {
					r.cells[x+1] = num | tail
				}
				x += width
			}
			i += size
		}
		text = text[n:]
	}
	if r.wrapped && x == cols-1 {
		r.cells[x] = spacer
		r.multi = true
		x++
	}
	r.used = x
}

func nextRun(runs []byte) (size int, style uint64, rest []byte) {
	a, n := binary.Uvarint(runs)
	b, m := binary.Uvarint(runs[n:])
	return int(a), b, runs[n+m:]
}
