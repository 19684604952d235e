package replay

import (
	"sync/atomic"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"github.com/clipperhouse/uax29/v2/graphemes"
)

// WidthTable names the tables that decide about clusters and widths. States say
// with which one they were made.
const WidthTable = "displaywidth 0.11.0, uax29 2.7.0"

// MaxCluster is the most bytes of one cell's text; marks beyond it are dropped. On a
// screen of more than 2^19 cells it is less, so that its text takes at most
// MaxScreenText: 8 bytes where there are 2^22.
const MaxCluster = 64

// MaxScreenText bounds the text of the cells of one screen, in bytes. It keeps a State
// small enough for a checkpoint.
const MaxScreenText = 32 << 20

// mostCluster is the most bytes of one cell's text on a screen of that size.
func mostCluster(cols, rows int) int { return min(MaxCluster, MaxScreenText/(cols*rows)) }

// class is what printing has to know of a code point.
type class uint8

const (
	classWidth   class = 3      // columns, 0..2
	classExtend  class = 1 << 2 // joins whatever is before it (Extend, ZWJ, SpacingMark)
	classJoins   class = 1 << 3 // may join what is before it, by a rule of UAX #29
	classOpens   class = 1 << 4 // a code point that is not Extend may join it
	classPrepend class = 1 << 5 // anything joins it
	classHangul  class = 1 << 6 // a Hangul syllable: two of them never join
	classKnown   class = 1 << 7
)

// pages holds the classes of the code points that were seen, 256 at a time: they
// are found by asking the width and segmentation libraries, which takes some
// microseconds a page, once in a process.
var pages [utf8.MaxRune>>8 + 1]atomic.Pointer[[256]class]

func classOf(r rune) class {
	if p := pages[r>>8].Load(); p != nil {
		return p[r&0xFF]
	}
	return makePage(r >> 8)[r&0xFF]
}

func makePage(n rune) *[256]class {
	p := new([256]class)
	for i := range p {
		p[i] = probe(n<<8 + rune(i))
	}
	pages[n].Store(p)
	return p
}

// Contexts in which a code point's behaviour at cluster borders shows.
var (
	joinsAfter = []string{"\u1100", "\uAC00", "\uAC01", "\U0001F469\u200D", "\U0001F1E6", "\u0915\u094D"}
	opensFor   = []string{"\u1161", "\u11A8", "\uAC00", "\U0001F1E6"}
)

func probe(r rune) class {
	c := classKnown
	if !utf8.ValidRune(r) {
		return c | 1
	}
	s := string(r)
	c |= class(min(displaywidth.String(s), 2))
	if joined("a" + s) {
		c |= classExtend
	}
	if joined(s + "a") {
		c |= classPrepend | classOpens
	}
	for _, before := range joinsAfter {
		if joined(before + s) {
			c |= classJoins
		}
	}
	for _, after := range opensFor {
		if joined(s + after) {
			c |= classOpens
		}
	}
	if r >= 0xAC00 && r <= 0xD7A3 {
		c |= classHangul
	}
	// ZWJ and the Indic linkers open a cluster for what their base allows.
	if joined("\U0001F469"+s+"\U0001F467") || joined("\u0915"+s+"\u0915") {
		c |= classOpens
	}
	return c
}

// mayJoin says whether a code point of class next, which takes columns, may join a
// cluster whose last code point is of class last.
func mayJoin(last, next class) bool {
	if last&classPrepend != 0 || next&classExtend != 0 {
		return true
	}
	return last&classOpens != 0 && next&classJoins != 0 && last&next&classHangul == 0
}

func joined(s string) bool {
	g := graphemes.FromString(s)
	return g.Next() && len(g.Value()) == len(s)
}

// isCluster says whether b is one grapheme cluster.
func isCluster(b []byte) bool {
	g := graphemes.FromBytes(b)
	return g.Next() && len(g.Value()) == len(b)
}

// clusterWidth returns the columns of a grapheme cluster, 1 or 2.
func clusterWidth(b []byte) int {
	g := displaywidth.BytesGraphemes(b)
	if !g.Next() {
		return 1
	}
	return min(max(g.Width(), 1), 2)
}
