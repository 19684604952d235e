package replay

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// The examples of the Unicode Standard, tables 3-8 to 3-11.
func TestValidUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82A": strings.Repeat("\uFFFD", 8) + "A",
		"\xED\xA0\x80\xED\xBF\xBF\xED\xAFA": strings.Repeat("\uFFFD", 8) + "A",
		"\xF4\x91\x92\x93\xFFA\x80\xBFB":    strings.Repeat("\uFFFD", 5) + "A\uFFFD\uFFFDB",
		"\xE1\x80\xE2\xF0\x91\x92\xF1\xBFA": "\uFFFD\uFFFD\uFFFD\uFFFDA",
		"a\u00E9\u65E5\U0001F600":           "a\u00E9\u65E5\U0001F600",
	} {
		out, rest := AppendValidUTF8(nil, []byte(in))
		if string(out) != want || len(rest) > 0 {
			t.Errorf("%q becomes %q, %q", in, out, rest)
		}
	}
	for _, begun := range []string{"\xC3", "\xE6\x97", "\xF0\x9F\x98"} {
		if out, rest := AppendValidUTF8(nil, []byte("a"+begun)); string(out) != "a" || string(rest) != begun {
			t.Errorf("a%q becomes %q, %q", begun, out, rest)
		}
	}
}

// Wherever a stream is cut, it becomes the same; the result is UTF-8, and that is
// what UTF-8 was before.
func FuzzValidUTF8(f *testing.F) {
	f.Add([]byte("a\xE6\x97\xA5\xE6\x97b\xF0\x9F\x98\x80\xFF"), 4)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		whole, rest := AppendValidUTF8(nil, in)
		if !utf8.Valid(whole) || len(rest) > 3 || len(rest) > 0 && utf8.FullRune(rest) {
			t.Fatalf("%q becomes %q, %q", in, whole, rest)
		}
		if utf8.Valid(in) && !bytes.Equal(whole, in) {
			t.Fatalf("%q becomes %q", in, whole)
		}
		if cut < 0 || cut > len(in) {
			return
		}
		pieces, held := AppendValidUTF8(nil, in[:cut])
		pieces, last := AppendValidUTF8(pieces, append(bytes.Clone(held), in[cut:]...))
		if !bytes.Equal(pieces, whole) || !bytes.Equal(last, rest) {
			t.Fatalf("%q, cut at %d, becomes %q, %q instead of %q, %q", in, cut, pieces, last, whole, rest)
		}
	})
}
