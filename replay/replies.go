package replay

import (
	"strconv"
	"strings"

	"looptape/checkpoint"
)

// Version is what XTVERSION answers.
const Version = "looptape(1)"

// What the terminal says that it is: a VT220 with ANSI colour and a clipboard-less
// xterm of version 0.
const (
	primaryAttributes   = "\x1b[?62;22c"
	secondaryAttributes = "\x1b[>1;10;0c"
	tertiaryAttributes  = "\x1bP!|00000000\x1b\\"
)

// Pixels of a cell in the reports of XTWINOPS: no display stands behind a pane, so
// these are a usual font's.
const (
	cellWidth  = 8
	cellHeight = 16
)

func itoa(n int) string { return strconv.Itoa(n) }

// deviceStatus is DSR 5 and 6, and DECXCPR.
func (t *Terminal) deviceStatus(what int, private bool) {
	mark := ""
	if private {
		mark = "?"
	}
	switch {
	case what == 5 && !private:
		t.reply("\x1b[0n")
	case what == 6:
		y := t.cur.y
		if t.modes.has(modeOrigin) {
			y -= t.top
		}
		t.reply("\x1b[" + mark + itoa(y+1) + ";" + itoa(t.cur.x+1) + "R")
	case what == 996 && private: // colour scheme: dark
		t.reply("\x1b[?997;1n")
	}
}

// requestMode is DECRQM: 0 not recognized, 1 set, 2 reset, 3 permanently set.
func (t *Terminal) requestMode(number int, prefix byte) {
	if prefix != 0 && prefix != '?' {
		return
	}
	state := 0
	private := prefix == '?'
	mode, known := findMode(number, private)
	switch {
	case known && t.modes.has(mode):
		state = 1
	case known:
		state = 2
	case private && (number == 47 || number == 1047 || number == 1049):
		state = 2
		if t.grid != &t.main {
			state = 1
		}
	case private && number == 1048:
		state = 2
		if t.grid.saved != nil {
			state = 1
		}
	case private && number == 2027: // clusters are always what a cell holds
		state = 3
	}
	mark := ""
	if private {
		mark = "?"
	}
	t.reply("\x1b[" + mark + itoa(number) + ";" + itoa(state) + "$y")
}

// windowOperation is XTWINOPS: reports and the title stacks. What would change a
// window does nothing.
func (t *Terminal) windowOperation() {
	switch t.lex.Param(0, 0) {
	case 14:
		t.reply("\x1b[4;" + itoa(t.rows*cellHeight) + ";" + itoa(t.cols*cellWidth) + "t")
	case 16:
		t.reply("\x1b[6;" + itoa(cellHeight) + ";" + itoa(cellWidth) + "t")
	case 18:
		t.reply("\x1b[8;" + itoa(t.rows) + ";" + itoa(t.cols) + "t")
	case 22:
		t.pushTitles(t.lex.Param(1, 0))
	case 23:
		t.popTitles(t.lex.Param(1, 0))
	}
}

func (t *Terminal) pushTitles(which int) {
	n := &t.names
	if which != 2 {
		n.icons = pushName(n.icons, n.icon)
	}
	if which != 1 {
		n.titles = pushName(n.titles, n.title)
	}
}

// pushName pushes onto a stack of at most maxTitles; the oldest falls off.
func pushName(stack []string, s string) []string {
	if len(stack) == maxTitles {
		copy(stack, stack[1:])
		stack = stack[:maxTitles-1]
	}
	return append(stack, s)
}

func (t *Terminal) popTitles(which int) {
	n := &t.names
	if k := len(n.icons) - 1; which != 2 && k >= 0 {
		n.icon, n.icons = n.icons[k], n.icons[:k]
	}
	if k := len(n.titles) - 1; which != 1 && k >= 0 {
		n.title, n.titles = n.titles[k], n.titles[:k]
		t.event(TitleChanged, n.title)
	}
}

// maxKitty is the depth of the stack of keyboard flags; the oldest falls off.
const maxKitty = 16

// kitty is the kitty keyboard protocol: push, pop, set and query flags (5 bits).
func (t *Terminal) kitty(prefix byte) {
	s := &t.grid.kitty
	now := uint8(0)
	if n := len(*s); n > 0 {
		now = (*s)[n-1]
	}
	flags := uint8(t.lex.Param(0, 0) & 0x1F)
	switch prefix {
	case '?':
		t.reply("\x1b[?" + itoa(int(now)) + "u")
	case '>':
		if len(*s) == maxKitty {
			copy(*s, (*s)[1:])
			*s = (*s)[:maxKitty-1]
		}
		*s = append(*s, flags)
	case '<':
		*s = (*s)[:max(len(*s)-max(t.lex.Param(0, 1), 1), 0)]
	case '=':
		switch t.lex.Param(1, 1) {
		case 2:
			flags |= now
		case 3:
			flags = now &^ flags
		}
		if len(*s) == 0 {
			*s = append(*s, 0)
		}
		(*s)[len(*s)-1] = flags
	}
}

// saveModes is XTSAVE and XTRESTORE for the modes that are only a bit.
func (t *Terminal) saveModes(save bool) {
	for i := range t.lex.Params() {
		m, ok := findMode(t.lex.Param(i, 0), true)
		switch {
		case !ok:
		case save:
			t.modes.saved.set(m, t.modes.has(m))
		case t.modes.has(m) != t.modes.saved.has(m):
			t.setMode(t.lex.Param(i, 0), true, t.modes.saved.has(m))
		}
	}
}

// dcs carries out a device control string: DECRQSS ($ q) and XTGETTCAP (+ q), which
// knows no capability.
func (t *Terminal) dcs(final byte, data []byte) {
	if final != 'q' || t.lex.prefix != 0 || t.lex.ninter != 1 {
		return
	}
	switch t.lex.inter[0] {
	case '$':
		if s, ok := t.setting(string(data)); ok {
			t.reply("\x1bP1$r" + s + string(data) + "\x1b\\")
		} else {
			t.reply("\x1bP0$r\x1b\\")
		}
	case '+':
		t.reply("\x1bP0+r\x1b\\")
	}
}

// setting returns the parameters with which the control function that data ends
// would set what it sets now.
func (t *Terminal) setting(data string) (string, bool) {
	switch data {
	case "m":
		return t.cur.pen.sgr(), true
	case "r":
		return itoa(t.top+1) + ";" + itoa(t.bottom+1), true
	case " q":
		return itoa(int(t.cur.shape)), true
	case "\"p":
		return "62;1", true
	case "\"q":
		return itoa(int(t.cur.pen.attrs & checkpoint.Protected / checkpoint.Protected)), true
	}
	return "", false
}

// sgr returns s as SGR parameters.
func (s style) sgr() string {
	var b strings.Builder
	b.WriteByte('0')
	for p, bit := range sgrOn {
		if bit != 0 && s.attrs&bit != 0 {
			b.WriteString(";" + itoa(p))
		}
	}
	switch u := s.attrs & checkpoint.UnderlineMask >> checkpoint.UnderlineShift; u {
	case 0:
	case 1:
		b.WriteString(";4")
	default:
		b.WriteString(";4:" + itoa(int(u)))
	}
	if s.attrs&checkpoint.Overline != 0 {
		b.WriteString(";53")
	}
	writeColor(&b, s.fg, 30)
	writeColor(&b, s.bg, 40)
	if s.ul != 0 {
		writeColor(&b, s.ul, 50)
	}
	return b.String()
}

// writeColor writes a colour as a parameter based on 30, 40 or 50.
func writeColor(b *strings.Builder, c checkpoint.Color, base int) {
	v := int(c & 0xFFFFFF)
	switch {
	case c == 0:
	case c&checkpoint.ColorRGB != 0:
		b.WriteString(";" + itoa(base+8) + ":2::" + itoa(v>>16) + ":" + itoa(v>>8&0xFF) + ":" + itoa(v&0xFF))
	case v < 8 && base < 50:
		b.WriteString(";" + itoa(base+v))
	case v < 16 && base < 50:
		b.WriteString(";" + itoa(base+60+v-8))
	default:
		b.WriteString(";" + itoa(base+8) + ":5:" + itoa(v))
	}
}
