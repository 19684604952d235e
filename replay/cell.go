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
type link struct {
	linkKey
	number uint64 // tells it from others, as a rule
}

type linkKey struct{ id, uri string }

// linkBytes is what a link takes besides its texts.
const linkBytes = 48

// size is what l counts towards MaxLinkBytes.
func (l *link) size() int {
	if l == nil {
		return 0
	}
	return len(l.id) + len(l.uri) + linkBytes
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
	styles   styleSet
	clusters []string
	clustNum map[string]uint32
	links    map[linkKey]*link
	made     uint64 // links so far
	room     int    // for links, see roomForLink
	limit    int    // compact when a table is longer than this
	most     int    // bytes of a cluster
}

const minTable = 1024

// MaxLinks is the most hyperlinks that the cells of both screens have at a time;
// text beyond it, or close to it, is written without one.
const MaxLinks = 4096

func (tb *table) reset() {
	*tb = table{
		styles:   styleSet{list: []style{{}}},
		clusters: []string{""},
		clustNum: map[string]uint32{},
		links:    map[linkKey]*link{},
		made:     tb.made,
		room:     tb.room,
		most:     tb.most,
		limit:    minTable,
	}
}

func (tb *table) full() bool {
	return len(tb.styles.list) > tb.limit || len(tb.clusters) > tb.limit
}

// style returns the number of s.
func (tb *table) style(s style) uint32 { return tb.styles.number(s) }

// cluster returns the cell text for b, which is one grapheme cluster.
func (tb *table) cluster(b []byte) cell {
	if r, n := utf8.DecodeRune(b); n == len(b) {
		return cell(r)
	}
	n, ok := tb.clustNum[string(b)]
	if !ok {
		if !tb.clusterRoom() {
			r, _ := utf8.DecodeRune(b)
			return cell(r)
		}
		n = uint32(len(tb.clusters))
		s := string(b)
		tb.clusters = append(tb.clusters, s)
		tb.clustNum[s] = n
	}
	return cell(n) | cellCluster
}

// fit returns the first code points of the cluster b, as many as a cell may hold.
func (tb *table) fit(b []byte) []byte {
	if len(b) <= tb.most {
		return b
	}
	n := tb.most
	for !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// shorten makes the clusters of cells fit.
func (tb *table) shorten(cells []cell) {
	for i, c := range cells {
		if c&cellCluster == 0 {
			continue
		}
		if b := tb.clusters[c&cellText]; len(b) > tb.most {
			cells[i] = c&^(cellText|cellCluster) | tb.cluster(tb.fit([]byte(b)))
		}
	}
}

// link interns a hyperlink; nil for an empty URI.
func (tb *table) link(id, uri string) *link {
	if uri == "" {
		return nil
	}
	k := linkKey{id, uri}
	l := tb.links[k]
	if l == nil {
		l = &link{k, tb.made}
		tb.links[k] = l
		tb.made++
	}
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

// compact renumbers styles and clusters so that only those in the rows remain. When
// that happens must not show in anything.
// Cluster numbers are limited to 21 bits, so the cells of both screens must be
// fewer than 2^21 with distinct clusters; beyond that compact cannot help and
// clusterRoom is false.
func (tb *table) compact(screens ...*screen) {
	old := *tb
	tb.reset()
	scanned := 0
	for _, s := range screens {
		for _, r := range s.rows {
			scanned += r.used
			for i, c := range r.cells[:r.used] {
				if n := c >> cellStyle; n != 0 {
					c = c&(1<<cellStyle-1) | cell(tb.style(old.styles.list[n]))<<cellStyle
				}
				if c&cellCluster != 0 {
					c = c&^(cellText|cellCluster) | tb.cluster([]byte(old.clusters[c&cellText]))
				}
				r.cells[i] = c
			}
		}
	}
	for _, s := range tb.styles.list {
		if s.link != nil {
			tb.links[s.link.linkKey] = s.link
		}
	}
	tb.setLimit(scanned)
}

// setLimit sets when to compact again, so that what is new pays for it. scanned is the
// number of cells to look at.
func (tb *table) setLimit(scanned int) {
	tb.limit = minTable + max(2*len(tb.styles.list), 2*len(tb.clusters), scanned/8)
}

// clusterRoom says whether another cluster can be numbered.
func (tb *table) clusterRoom() bool { return len(tb.clusters) < int(cellText) }
