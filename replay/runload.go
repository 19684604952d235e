package replay

import "math/bits"

// A row's load is how many runs of one style its text has, rounded down to five
// significant bits, in a byte. It counts towards MaxHistoryBytes, and so it depends
// on what the row looks like only, not on how its runs happen to be encoded.
//
//	0..15   so many
//	16..    (16 + low four bits) << (high four bits - 1)
type runLoad uint8

// runBytes is what a run counts: its encoding, and a style of its own.
const runBytes = 20

func loadOf(runs int) runLoad {
	if runs < 16 {
		return runLoad(runs)
	}
	shift := bits.Len(uint(runs)) - 5
	return runLoad(16*(shift+1) + runs>>shift&15)
}

// bytes is what the load counts towards MaxHistoryBytes.
func (l runLoad) bytes() int {
	if l < 16 {
		return int(l) * runBytes
	}
	return (16 + int(l)&15) << (l>>4 - 1) * runBytes
}

// cost is what a row counts towards MaxHistoryBytes.
func (p *packedRow) cost() int { return int(p.size) + p.load.bytes() }

// same reports whether two styles look the same; the link of each may be interned by
// itself.
func (s *style) same(o *style) bool {
	return *s == *o || s.link != nil && o.link != nil && s.link.linkKey == o.link.linkKey &&
		s.fg == o.fg && s.bg == o.bg && s.ul == o.ul && s.attrs == o.attrs
}

// runCounter counts runs of one style; of two neighbours that look the same it
// counts one.
type runCounter struct {
	n    int
	last *style
}

func (c *runCounter) add(s *style) {
	if c.last == nil || !c.last.same(s) {
		c.n++
	}
	c.last = s
}

// addOther is add for a style that is not the last one, but may look the same if it
// has a link.
func (c *runCounter) addOther(s *style) {
	if s.link == nil || c.last == nil || !c.last.same(s) {
		c.n++
	}
	c.last = s
}

// linkSize is what the link of s counts towards MaxLinkBytes in the next run: nothing
// if that goes on with the last one.
func (c *runCounter) linkSize(s *style) int {
	if s.link == nil || c.last != nil && c.last.same(s) {
		return 0
	}
	return s.link.size()
}

// loadOf counts the runs in the encoding of a row of c.
func (c *chunk) loadOf(runs []byte) runLoad {
	var n runCounter
	for len(runs) > 0 {
		var style uint64
		_, style, runs = nextRun(runs)
		n.add(&c.styles[style])
	}
	return loadOf(n.n)
}

// trimRuns takes away the last runs of the newest row as far as they are of the default
// style, and counts the rest.
func (c *chunk) trimRuns() (kept runCounter) {
	end := int(c.rows[len(c.rows)-1].runs)
	for runs, n := c.runs[end:], (runCounter{}); len(runs) > 0; {
		var style uint64
		_, style, runs = nextRun(runs)
		if n.add(&c.styles[style]); style != 0 {
			end, kept = len(c.runs)-len(runs), n
		}
	}
	c.runs = c.runs[:end]
	return kept
}
