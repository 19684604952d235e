package replay

import (
	"iter"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Names of the screens in Bounds.
const (
	Primary   = "primary"
	Alternate = "alternate"
)

// Bounds are the rows that can be read: [Oldest, End) in Epoch, of which
// [Active, End) are the screen. The alternate screen has no history: 0, 0, Rows.
type Bounds struct {
	Screen              string
	Epoch               uint32
	Oldest, Active, End uint64
	Cols, Rows          int
}

// Bounds returns the bounds of the screen shown.
func (t *Terminal) Bounds() Bounds {
	b := Bounds{Screen: Primary, Epoch: t.epoch, Cols: t.cols, Rows: t.rows}
	if t.grid == &t.main {
		b.Oldest, b.Active = t.hist.oldest-t.hist.base, t.hist.end-t.hist.base
	} else {
		b.Screen = Alternate
	}
	b.End = b.Active + uint64(t.rows)
	return b
}

// Row is one physical row. Text is what every column shows, in UTF-8 and exactly
// Cols columns wide: whole grapheme clusters, a space for an empty cell, nothing
// for the right half of a wide cluster, never a control. It is valid until the
// next row is asked for.
type Row struct {
	Number  uint64 // in the epoch
	Text    []byte
	Written uint64 // stream offset behind the last write to the row
	Wrapped bool   // the line goes on in the next row
}

// Rows returns rows [start, end) of the current epoch, cut to Bounds. Its cost is
// that of the rows returned. The terminal must not change meanwhile.
func (t *Terminal) Rows(start, end uint64) iter.Seq[Row] {
	b := t.Bounds()
	start, end = max(start, b.Oldest), min(end, b.End)
	return func(yield func(Row) bool) {
		buf := t.out.text
		defer func() { t.out.text = buf }()
		n := start
		if n < min(end, b.Active) {
			i := t.hist.find(t.hist.base + n)
			for ; n < min(end, b.Active); i++ {
				c := t.hist.chunks[i]
				for k := int(t.hist.base + n - c.first); k < len(c.rows) && n < min(end, b.Active); k++ {
					p := &c.rows[k]
					buf = appendRowText(buf[:0], c.textOf(k), p.flags)
					buf = t.fit(pad(buf, t.cols-int(p.width)))
					if !yield(Row{n, buf, p.written, p.flags&packedWrapped != 0}) {
						return
					}
					n++
				}
			}
		}
		var packed []byte
		for ; n < end; n++ {
			r := t.grid.rows[n-b.Active]
			if r.multi {
				packed = packed[:0]
				for _, x := range r.cells[:r.used] {
					packed, _ = t.tab.appendCell(packed, x)
				}
				buf = appendRowText(buf[:0], packed, packedOpens)
			} else {
				buf = t.tab.appendRow(buf[:0], r, r.used)
			}
			buf = t.fit(pad(buf, t.cols-r.used))
			if !yield(Row{n, buf, r.written, r.wrapped}) {
				return
			}
		}
	}
}

// fit puts U+FFFD for a wide cluster that stands in the only column.
func (t *Terminal) fit(text []byte) []byte {
	if t.cols == 1 && len(text) > 1 && clusterWidth(text) > 1 {
		return append(text[:0], replacement...)
	}
	return text
}

// appendRowText appends packed text as a row of its own: where the clusters of
// neighbouring cells would be read as one, a zero width non-joiner keeps them apart.
func appendRowText(dst, text []byte, flags uint8) []byte {
	if flags&packedOpens == 0 {
		return appendPacked(dst, text, flags)
	}
	var last class
	var before []byte
	for len(text) > 0 {
		n, _ := unit(text)
		u := text[:n]
		if u[0] == clusterMark {
			u = u[2:]
		} else if u[0] == 0 {
			u = blankText
		}
		r, _ := utf8.DecodeRune(u)
		if mayJoin(last, classOf(r)) && !bordered(before, u) {
			dst = append(dst, nonJoiner...)
		}
		dst = append(dst, u...)
		r, _ = utf8.DecodeLastRune(u)
		last, before, text = classOf(r), u, text[n:]
	}
	if last&classPrepend != 0 {
		dst = append(dst, nonJoiner...)
	}
	return dst
}

const nonJoiner = "\u200C"

var blankText = []byte{' '}

// bordered says whether there is a border between clusters between a and b.
func bordered(a, b []byte) bool {
	var buf [2 * MaxCluster]byte
	s := append(append(buf[:0], a...), b...)
	g := graphemes.FromBytes(s)
	for n := 0; n < len(a) && g.Next(); {
		if n += len(g.Value()); n == len(a) {
			return true
		}
	}
	return false
}

// appendPacked appends packed text as it reads: without cluster marks, and with
// spaces for what was never written.
func appendPacked(dst, text []byte, flags uint8) []byte {
	if flags&packedVoids != 0 {
		at := len(dst)
		dst = appendPacked(dst, text, flags&^packedVoids)
		for i := at; i < len(dst); i++ {
			if dst[i] == 0 {
				dst[i] = ' '
			}
		}
		return dst
	}
	if flags&packedClusters == 0 {
		return append(dst, text...)
	}
	for len(text) > 0 {
		n, _ := unit(text)
		if text[0] == clusterMark {
			dst = append(dst, text[2:n]...)
		} else {
			dst = append(dst, text[:n]...)
		}
		text = text[n:]
	}
	return dst
}

// appendRow appends the text of the first n columns of r.
func (tb *table) appendRow(dst []byte, r *row, n int) []byte {
	used := min(n, r.used)
	if !r.multi {
		at := len(dst)
		dst = extend(dst, used)
		for i, x := range r.cells[:used] {
			dst[at+i] = max(byte(x&0x7F), ' ')
		}
	} else {
		for _, x := range r.cells[:used] {
			dst = tb.appendText(dst, x)
		}
	}
	return pad(dst, n-used)
}
