package replay

import (
	"math/bits"
	"slices"
)

// control carries out a C0 control. DEL and C1 code points do nothing.
func (t *Terminal) control(code rune) {
	c := &t.cur
	switch code {
	case 0x0A:
	case 0x0D:
		t.work += workReturn
	default:
		t.work += workControl
	}
	switch code {
	case 0x07:
		t.event(Bell, "")
	case 0x08:
		t.back(1)
	case 0x09:
		t.tab1()
	case 0x0A, 0x0B, 0x0C:
		t.lineFeed()
		if t.modes.has(modeNewline) {
			c.x = 0
		}
	case 0x0D:
		c.x, c.pending = 0, false
	case 0x0E:
		c.chars.GL = 1
	case 0x0F:
		c.chars.GL = 0
	}
}

// lineFeed is IND: down one row, scrolling at the bottom margin.
func (t *Terminal) lineFeed() {
	c := &t.cur
	c.pending = false
	switch {
	case c.y == t.bottom:
		t.scrollUp(t.top, t.bottom, 1, false)
	case c.y < t.rows-1:
		c.y++
	}
}

// reverseIndex is RI: up one row, scrolling at the top margin.
func (t *Terminal) reverseIndex() {
	c := &t.cur
	c.pending = false
	switch {
	case c.y == t.top:
		t.scrollDown(t.top, t.bottom, 1)
	case c.y > 0:
		c.y--
	}
}

// escape carries out an escape sequence.
func (t *Terminal) escape(final byte) {
	c := &t.cur
	if t.lex.ninter == 1 {
		t.designate(t.lex.inter[0], final)
		return
	}
	if t.lex.ninter > 1 {
		return
	}
	switch final {
	case '7':
		t.saveCursor()
	case '8':
		t.restoreCursor()
	case 'D':
		t.lineFeed()
	case 'E':
		t.lineFeed()
		c.x = 0
	case 'M':
		t.reverseIndex()
	case 'H':
		t.tabs.set(c.x, true)
	case 'n', 'o': // LS2, LS3
		c.chars.GL = final - 'n' + 2
	case '=':
		t.modes.set(modeAppKeypad, true)
	case '>':
		t.modes.set(modeAppKeypad, false)
	case 'Z': // DECID
		t.reply(primaryAttributes)
	case 'c':
		t.reset()
	}
}

// designate carries out SCS and DECALN.
func (t *Terminal) designate(inter, final byte) {
	switch inter {
	case '(', ')', '*', '+':
		t.cur.chars.G[inter-'('] = final
	case '-', '.', '/':
		t.cur.chars.G[inter-'-'+1] = final
	case '#':
		if final == '8' {
			t.top, t.bottom = 0, t.rows-1
			t.align()
			t.cur.x, t.cur.y, t.cur.pending = 0, 0, false
		}
	}
}

// graphics is the DEC special character set from ` on.
var graphics = []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

// translate maps r through the character set that is shifted in.
func (t *Terminal) translate(r rune) rune {
	ch := &t.cur.chars
	set := ch.G[ch.GL&3]
	switch {
	case set == '0' && r >= '`' && r <= '~':
		return graphics[r-'`']
	case set == 'A' && r == '#':
		return '£'
	}
	return r
}

// tab1 goes to the next tab stop, at most to the last column. The cells it passes
// stay as they are.
func (t *Terminal) tab1() {
	c := &t.cur
	x := t.tabs.next(c.x)
	t.work += tabWork(c.x, x)
	c.x = x
}

// tabWork is the work of finding the tab stop at x1 from x0.
func tabWork(x0, x1 int) uint64 { return uint64(max(x0-x1, x1-x0) / 64) }

// tabStops is a bit a column.
type tabStops struct {
	bits []uint64
	cols int
}

// reset puts a stop into every eighth column.
func (s *tabStops) reset(cols int) {
	if s.cols != cols {
		s.bits, s.cols = make([]uint64, (cols+63)/64), cols
	}
	for i := range s.bits {
		s.bits[i] = 0x0101010101010101
	}
}

// resize keeps the stops of columns that stay, and gives new columns the usual ones.
func (s *tabStops) resize(cols int) {
	old, was := s.bits, s.cols
	s.reset(cols)
	n := min(was, cols)
	copy(s.bits, old[:n/64])
	for x := n &^ 63; x < n; x++ {
		s.set(x, old[x/64]>>(x%64)&1 != 0)
	}
}

func (s *tabStops) clear() { clear(s.bits) }

func (s *tabStops) set(x int, on bool) {
	if on {
		s.bits[x/64] |= 1 << (x % 64)
	} else {
		s.bits[x/64] &^= 1 << (x % 64)
	}
}

func (s *tabStops) has(x int) bool { return s.bits[x/64]>>(x%64)&1 != 0 }

func (s *tabStops) next(x int) int {
	for x++; x < s.cols; x = x&^63 + 64 {
		if w := s.bits[x/64] >> (x % 64); w != 0 {
			return min(x+bits.TrailingZeros64(w), s.cols-1)
		}
	}
	return s.cols - 1
}

func (s *tabStops) previous(x int) int {
	for x--; x > 0; x = x&^63 - 1 {
		if w := s.bits[x/64] << (63 - x%64); w != 0 {
			return x - bits.LeadingZeros64(w)
		}
	}
	return 0
}

// columns lists the stops.
func (s *tabStops) columns() []int {
	var c []int
	for x := range s.cols {
		if s.has(x) {
			c = append(c, x)
		}
	}
	return slices.Clip(c)
}

// softReset is DECSTR (xterm): modes, margins, pen, charsets and the saved cursor.
func (t *Terminal) softReset() {
	c := &t.cur
	t.modes.set(modeInsert, false)
	t.modes.set(modeOrigin, false)
	t.modes.set(modeAppKeys, false)
	t.modes.set(modeAppKeypad, false)
	t.modes.set(modeWrap, true)
	t.modes.set(modeReverseWrap, false)
	t.modes.set(modeCursor, true)
	t.top, t.bottom = 0, t.rows-1
	t.setPen(style{})
	c.chars = defaultCharsets
	t.grid.saved = nil
	t.grid.kitty = nil
	t.modes.otherKeys = 0
}

// reset is RIS: as new, but for what counts the stream and the rows.
func (t *Terminal) reset() {
	if t.grid == &t.main {
		t.lose(0, t.rows)
	} else {
		t.loseAlternate()
		t.grid = &t.main
		t.lose(0, t.rows)
	}
	t.closeHistory()
	t.work += uint64(t.rows)*workRow + workEscape + workClear
	for _, r := range t.main.rows {
		r.reset(t.offset)
	}
	t.alt = screen{}
	t.defaults()
	t.names = names{cwd: t.names.cwd}
	t.palette = nil
	t.hist.drop()
	t.bump()
}
