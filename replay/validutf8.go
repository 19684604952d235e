package replay

import "unicode/utf8"

// AppendValidUTF8 appends p to dst, with U+FFFD for every maximal subpart of what is no
// UTF-8 (Unicode 3.9, table 3-7), as Lexer reads text. rest is the beginning of a
// character at the end of p, at most 3 bytes, which was not appended: it goes before
// the bytes that follow. At the end of a stream it is one U+FFFD.
func AppendValidUTF8(dst, p []byte) (out, rest []byte) {
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n == 1 {
			if n = subpart(p); n == len(p) && !utf8.FullRune(p) {
				return dst, p
			}
			dst = append(dst, replacement...)
		} else {
			dst = append(dst, p[:n]...)
		}
		p = p[n:]
	}
	return dst, nil
}
