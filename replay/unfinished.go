package replay

import "strconv"

// appendUnfinished appends bytes that bring a lexer in the ground state to where l is.
// A sequence that will have no effect is replaced by a short one that has none.
func (l *Lexer) appendUnfinished(dst []byte) []byte {
	switch l.phase {
	case ground:
		return append(dst, l.Held()...)
	case escape:
		dst = append(dst, 0x1B)
	case escapeInter:
		dst = append(append(dst, 0x1B), l.Inter()...)
		if l.dropped {
			dst = append(dst, ' ') // one more than are kept
		}
	case csiEntry, csiParam, csiInter, csiIgnore:
		dst = l.appendOpening(append(dst, "\x1b["...))
		if l.phase == csiIgnore {
			dst = append(dst, '<') // out of place, except behind CSI
		}
	case oscString, oscEnd:
		dst = append(dst, "\x1b]"...)
		if l.dropped {
			dst = append(dst, "9999;"...) // means nothing to anybody
		}
		dst = append(dst, l.data...)
	case dcsEntry, dcsParam, dcsInter:
		dst = l.appendOpening(append(dst, "\x1bP"...))
	case dcsPass, dcsEnd:
		if !l.dropped {
			dst = append(l.appendOpening(append(dst, "\x1bP"...)), l.data...)
			break
		}
		fallthrough
	case dcsIgnore:
		dst = append(dst, "\x1bP0<"...)
	case plainString:
		dst = append(dst, "\x1bX"...)
	}
	if l.phase == oscEnd || l.phase == dcsEnd {
		dst = append(dst, 0x1B)
	}
	return dst
}

// appendOpening appends private marker, parameters and intermediates.
func (l *Lexer) appendOpening(dst []byte) []byte {
	if l.prefix != 0 {
		dst = append(dst, l.prefix)
	}
	for i := range l.Params() {
		if i > 0 {
			b := byte(';')
			if l.Colon(i) {
				b = ':'
			}
			dst = append(dst, b)
		}
		if l.params[i] >= 0 {
			dst = strconv.AppendInt(dst, int64(l.params[i]), 10)
		}
	}
	if l.nparams > MaxParams {
		dst = append(dst, ';')
	}
	return append(dst, l.Inter()...)
}
