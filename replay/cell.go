package replay

import (
	"unicode/utf8"

	"looptape/checkpoint"
)

// cell is one column of a row. The zero cell is a blank of the default style that
// was never written or was erased; it reads like a space, but is no text.
//
//	bits  0..20  code point, or the number of an interned cluster
//	bit   21     set: a cluster
//	bits 22..23  narrow, wide, tail or spacer
//	bits 24..55  number of an interned style
type cell uint64

const (
	cellText    cell = 1<<21 - 1
	cellCluster cell = 1 << 21
	cellKind    cell = 3 << 22
	cellStyle        = 24

	narrow cell = 0
	wide   cell = 1 << 22 // left half of a wide cluster
	tail   cell = 2 << 22 // right half
	spacer cell = 3 << 22 // last column, left blank by a wide cluster that wrapped
)

// blank says whether c is as if it had never been written.
func (c cell) blank() bool { return c == 0 || c == spacer }

// link is an interned hyperlink.
type link struct{ id, uri string }

func (l *link) size() int {
	if l == nil {
		return 0
	}
	return len(l.id) + len(l.uri)
}

// style is the look of a cell; comparable, so that it can be interned.
type style struct {
	fg, bg, ul checkpoint.Color
	attrs      uint16
	link       *link
}

// table interns the styles and clusters that cells refer to by number. Number 0
// is the default style. What no cell uses any longer is dropped by compact, so
// the tables are bounded by the number of cells.
type table struct {
	styles   []style
	styleNum map[style]uint32
	recent   [64]recentStyle
	clusters []string
	clustNum map[string]uint32
	links    map[link]*link
	limit    int // compact when a table is longer than this
}

type recentStyle struct {
	style style
	num   uint32 // 0: empty
}

const minTable = 1024

// MaxLinks is the most hyperlinks that the cells of both screens have at a time;
// text beyond it is written without one.
const MaxLinks = 4096

func (tb *table) reset() {
	*tb = table{
		styles:   []style{{}},
		styleNum: map[style]uint32{{}: 0},
		clusters: []string{""},
		clustNum: map[string]uint32{},
		links:    map[link]*link{},
		limit:    minTable,
	}
}

func (tb *table) full() bool {
	return len(tb.styles) > tb.limit || len(tb.clusters) > tb.limit
}

// style returns the number of s.
func (tb *table) style(s style) uint32 {
	if s == (style{}) {
		return 0
	}
	h := (uint32(s.fg)*0x9E3779B1 ^ uint32(s.bg)*0x85EBCA6B ^ uint32(s.attrs)*0xC2B2AE35) >> 26
	slot := &tb.recent[h]
	if slot.num != 0 && slot.style == s {
		return slot.num
	}
	n, ok := tb.styleNum[s]
	if !ok {
		n = uint32(len(tb.styles))
		tb.styles = append(tb.styles, s)
		tb.styleNum[s] = n
	}
	*slot = recentStyle{s, n}
	return n
}

// cluster returns the cell text for b, which is one grapheme cluster.
func (tb *table) cluster(b []byte) cell {
	if r, n := utf8.DecodeRune(b); n == len(b) {
		return cell(r)
	}
	n, ok := tb.clustNum[string(b)]
	if !ok {
		n = uint32(len(tb.clusters))
		s := string(b)
		tb.clusters = append(tb.clusters, s)
		tb.clustNum[s] = n
	}
	return cell(n) | cellCluster
}

// link interns a hyperlink; nil for an empty URI.
func (tb *table) link(id, uri string) *link {
	if uri == "" {
		return nil
	}
	k := link{id, uri}
	if l := tb.links[k]; l != nil {
		return l
	}
	l := &k
	tb.links[k] = l
	return l
}

// appendText appends the text of c; a blank is a space, a tail nothing.
func (tb *table) appendText(dst []byte, c cell) []byte {
	switch {
	case c&cellKind == tail:
		return dst
	case c&cellCluster != 0:
		return append(dst, tb.clusters[c&cellText]...)
	case c&cellText == 0:
		return append(dst, ' ')
	}
	return utf8.AppendRune(dst, rune(c&cellText))
}

// compact renumbers styles and clusters so that only those in the rows remain.
// Cluster numbers are limited to 21 bits, so the cells of both screens must be
// fewer than 2^21 with distinct clusters; beyond that compact cannot help and
// clusterRoom is false.
func (tb *table) compact(screens ...*screen) {
	old := *tb
	tb.reset()
	for _, s := range screens {
		for _, r := range s.rows {
			for i, c := range r.cells[:r.used] {
				if n := c >> cellStyle; n != 0 {
					c = c&(1<<cellStyle-1) | cell(tb.style(old.styles[n]))<<cellStyle
				}
				if c&cellCluster != 0 {
					c = c&^(cellText|cellCluster) | tb.cluster([]byte(old.clusters[c&cellText]))
				}
				r.cells[i] = c
			}
		}
	}
	for _, s := range tb.styles {
		if s.link != nil {
			tb.links[*s.link] = s.link
		}
	}
	tb.limit = minTable + 2*max(len(tb.styles), len(tb.clusters))
}

// clusterRoom says whether another cluster can be numbered.
func (tb *table) clusterRoom() bool { return len(tb.clusters) < int(cellText) }
