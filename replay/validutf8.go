package replay

import "unicode/utf8"

// AppendValidUTF8 appends p to dst, with U+FFFD for every maximal subpart of what is no
// UTF-8 (Unicode 3.9, table 3-7), as Lexer reads text. rest is the beginning of a
// character at the end of p, at most 3 bytes, which was not appended: it goes before
// the bytes that follow. At the end of a stream it is one U+FFFD.
func AppendValidUTF8(dst, p []byte) (out, rest []byte) {
	valid := 0 // p[valid:i] is UTF-8 that is yet to be appended
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, p[valid:i]...)
			if n = subpart(p[i:]); n == len(p)-i && !utf8.FullRune(p[i:]) {
				return dst, p[i:]
			}
			dst = append(dst, replacement...)
			valid = i + n
		}
		i += n
	}
	return append(dst, p[valid:]...), nil
}
