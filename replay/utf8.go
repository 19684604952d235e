package replay

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

var replacement = []byte("\uFFFD")

// text returns the longest run of complete printable characters.
func (l *Lexer) text(p []byte) (Token, int) {
	i := asciiRun(p)
	if i == len(p) || p[i] < 0x80 {
		return Token{Kind: Text, ASCII: true, Text: p[:i]}, i
	}
	start := i
	for i < len(p) {
		b := p[i]
		if b < 0x80 {
			n := asciiRun(p[i:])
			i += n
			if n == 0 {
				break
			}
			continue
		}
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && size <= 1 || r < 0xA0 {
			break
		}
		i += size
	}
	if i > 0 {
		return Token{Kind: Text, ASCII: i == start, Text: p[:i]}, i
	}
	if p[0] == 0xC2 && len(p) > 1 && p[1] >= 0x80 && p[1] < 0xA0 {
		return Token{Kind: Control, Code: rune(p[1])}, 2
	}
	n := subpart(p)
	if n == len(p) && !utf8.FullRune(p) {
		l.nheld = uint8(copy(l.held[:], p))
		return Token{}, n
	}
	return Token{Kind: Text, Text: replacement}, n
}

// resume goes on with a character whose first bytes are held.
func (l *Lexer) resume(p []byte) (Token, int) {
	n := int(l.nheld)
	for i, b := range p {
		var buf [4]byte
		copy(buf[:], l.held[:n])
		buf[n] = b
		if subpart(buf[:n+1]) != n+1 {
			l.nheld = 0
			return Token{Kind: Text, Text: replacement}, i
		}
		l.held, n = buf, n+1
		if !utf8.FullRune(buf[:n]) {
			l.nheld = uint8(n)
			continue
		}
		l.nheld = 0
		if r, _ := utf8.DecodeRune(buf[:n]); r < 0xA0 {
			return Token{Kind: Control, Code: r}, i + 1
		}
		l.char = buf
		return Token{Kind: Text, Text: l.char[:n]}, i + 1
	}
	return Token{}, len(p)
}

// subpart returns the length of the longest prefix of p that begins a well-formed
// UTF-8 sequence, at least 1: the maximal subpart of Unicode 3.9, table 3-7.
func subpart(p []byte) int {
	var need int
	lo, hi := byte(0x80), byte(0xBF)
	switch b := p[0]; {
	case b >= 0xC2 && b <= 0xDF:
		need = 1
	case b == 0xE0:
		need, lo = 2, 0xA0
	case b == 0xED:
		need, hi = 2, 0x9F
	case b >= 0xE1 && b <= 0xEF:
		need = 2
	case b == 0xF0:
		need, lo = 3, 0x90
	case b == 0xF4:
		need, hi = 3, 0x8F
	case b >= 0xF1 && b <= 0xF3:
		need = 3
	}
	n := 1
	for n <= need && n < len(p) && p[n] >= lo && p[n] <= hi {
		lo, hi = 0x80, 0xBF
		n++
	}
	return n
}

// asciiRun returns how many printable ASCII bytes p begins with.
func asciiRun(p []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		// Bit 7 of a byte: it is below 0x20, is 0x7F, or is above it. A borrow or
		// carry can only mark bytes above the first one that is marked rightly.
		if m := (w | (w - ones*0x20) | (w + ones)) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(p) && p[i] >= 0x20 && p[i] < 0x7F {
		i++
	}
	return i
}
