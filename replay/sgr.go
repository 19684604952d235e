package replay

import "looptape/checkpoint"

// sgr carries out SGR with the parameters of the last control sequence.
func (t *Terminal) sgr() {
	l := &t.lex
	s := t.cur.pen
	n := l.Params()
	if n == 0 {
		s.clear()
	}
	t.work += uint64(max(n-6, 0)) * workParam
	for i := 0; i < n; {
		i += t.applySGR(&s, i, n)
	}
	t.setPen(s)
}

// clear is SGR 0: links and protection are not its concern.
func (s *style) clear() {
	*s = style{link: s.link, attrs: s.attrs & checkpoint.Protected}
}

// applySGR carries out the attribute in parameter i of n on s, and returns how many
// parameters it took.
func (t *Terminal) applySGR(s *style, i, n int) int {
	l := &t.lex
	p := l.Param(i, 0)
	took := 1
	for i+took < n && l.Colon(i+took) {
		took++
	}
	switch {
	case p == 0:
		s.clear()
	case p == 4:
		u := 1
		if took > 1 {
			u = l.Param(i+1, 1)
		}
		if u <= 5 {
			s.underline(u)
		}
	case p < 10:
		s.attrs |= sgrOn[p]
	case p == 21:
		s.underline(2)
	case p == 24:
		s.underline(0)
	case p >= 22 && p <= 29:
		s.attrs &^= sgrOff[p-22]
	case p >= 30 && p <= 37:
		s.fg = checkpoint.ColorIndexed | checkpoint.Color(p-30)
	case p >= 40 && p <= 47:
		s.bg = checkpoint.ColorIndexed | checkpoint.Color(p-40)
	case p >= 90 && p <= 97:
		s.fg = checkpoint.ColorIndexed | checkpoint.Color(p-90+8)
	case p >= 100 && p <= 107:
		s.bg = checkpoint.ColorIndexed | checkpoint.Color(p-100+8)
	case p == 39:
		s.fg = 0
	case p == 49:
		s.bg = 0
	case p == 59:
		s.ul = 0
	case p == 53:
		s.attrs |= checkpoint.Overline
	case p == 55:
		s.attrs &^= checkpoint.Overline
	case p == 38 || p == 48 || p == 58:
		c, ok, used := t.color(i, n, took)
		took = used
		if ok {
			switch p {
			case 38:
				s.fg = c
			case 48:
				s.bg = c
			case 58:
				s.ul = c
			}
		}
	}
	return took
}

var sgrOn = [10]uint16{
	1: checkpoint.Bold, 2: checkpoint.Faint, 3: checkpoint.Italic, 5: checkpoint.Blink,
	6: checkpoint.RapidBlink, 7: checkpoint.Inverse, 8: checkpoint.Invisible, 9: checkpoint.Strike,
}

// sgrOff is what 22..29 turn off.
var sgrOff = [8]uint16{
	0: checkpoint.Bold | checkpoint.Faint, 1: checkpoint.Italic,
	3: checkpoint.Blink | checkpoint.RapidBlink, 5: checkpoint.Inverse,
	6: checkpoint.Invisible, 7: checkpoint.Strike,
}

func (s *style) underline(kind int) {
	s.attrs = s.attrs&^checkpoint.UnderlineMask | uint16(kind)<<checkpoint.UnderlineShift
}

// color reads the colour that follows 38, 48 or 58 in parameter i: with colons
// (sub of them, i included: 5:n, 2:r:g:b, 2:space:r:g:b) or with semicolons.
func (t *Terminal) color(i, n, sub int) (c checkpoint.Color, ok bool, took int) {
	l := &t.lex
	if sub > 1 {
		switch kind := l.Param(i+1, 0); {
		case kind == 5 && sub >= 3:
			t.work += workIndex
			v := l.Param(i+2, 0)
			return checkpoint.ColorIndexed | checkpoint.Color(v), v < 256, sub
		case kind == 2 && sub >= 5:
			at := i + 2
			if sub >= 6 {
				at++
			}
			c, ok := t.rgb(at)
			return c, ok, sub
		}
		return 0, false, sub
	}
	switch l.Param(i+1, 0) {
	case 5:
		t.work += workIndex
		if i+2 < n {
			v := l.Param(i+2, 0)
			return checkpoint.ColorIndexed | checkpoint.Color(v), v < 256, 3
		}
	case 2:
		if i+4 < n {
			c, ok := t.rgb(i + 2)
			return c, ok, 5
		}
	}
	return 0, false, n - i // nothing behind it can be told apart from its arguments
}

func (t *Terminal) rgb(i int) (checkpoint.Color, bool) {
	t.work += workRGB
	l := &t.lex
	r, g, b := l.Param(i, 0), l.Param(i+1, 0), l.Param(i+2, 0)
	return checkpoint.ColorRGB | checkpoint.Color(r<<16|g<<8|b), r < 256 && g < 256 && b < 256
}
