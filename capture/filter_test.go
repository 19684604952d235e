package capture

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// pieces are what streams are made of, with the text that a person reads from
// each of them alone; "" where the context decides.
var pieces = []string{
	"plain text", "é", "漢字", "👨‍👩‍👧", "\xff", "\xe2\x82", "\xc3", "\xf0\x9f", "\x80",
	"\r\n", "\r", "\n", "\r\r\r\n", "\t", "\b", "\a", "\x00", "\x7f", "\u0085",
	"\x1b[31m", "\x1b[0;1;38;2;1;2;3m", "\x1b[2J", "\x1b[1\n2m", "\x1b[?1049h", "\x1b[\x18", "\x1b[3\x1b[4m",
	"\x1b]0;title\a", "\x1b]8;;http://x\x1b\\", "\x1b]unfinished", "\x1bP1$r\x1b\\", "\x1b_apc\x1b\\", "\x1b(B", "\x1b7", "\x1b",
	"\x1b^pm\x1a", "\x1b]2;é\x9c\a",
}

func randomStream(r *rand.Rand, n int) []byte {
	var b []byte
	for range n {
		b = append(b, pieces[r.IntN(len(pieces))]...)
	}
	return b
}

func filterAll(p []byte) string {
	f := filter{bytes: unlimited, lines: unlimited}
	text, taken := f.feed(nil, p)
	if taken != len(p) {
		panic("an unlimited filter stopped")
	}
	return string(f.finish(text))
}

// TestFilterRules states the rules of contract.md, section 7, one by one; the
// right-hand sides are a person's reading of them.
func TestFilterRules(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a\r\nb", "a\nb"},
		{"a\r\r\r\nb", "a\nb"},
		{"50%\r60%\r", "50%\n60%"},
		{"50%\r\tx", "50%\n\tx"},
		{"a\r\x1b[Kb", "a\nb"},
		{"a\r\x1b[K\nb", "a\nb"},
		{"a\bb\ac\x00d\x7fe\u0085f", "abcdef"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b[1\n2mx", "\nx"},
		{"\x1b[3\r1mx", "\nx"},
		{"\x1b]0;title\ax\x1b]0;t\x1b\\y", "xy"},
		{"\x1bPq#0\x1b\\a\x1b_b\x1b\\c\x1b^d\x1b\\e\x1bXf\x1b\\g", "aceg"},
		{"\x1b]0;a\x1b[31mb", "b"},
		{"\x1b[31\x18mx", "mx"},
		{"\x1b]0;t\x1ax", "x"},
		{"\xff", "\uFFFD"},
		{"\xe2\x82", "\uFFFD"},
		{"\xe2\x82x", "\uFFFDx"},
		{"\xf0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
		{"\x80\x9b31m", "\uFFFD\uFFFD31m"},
		{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
		{"é漢👍", "é漢👍"},
		{"\x1b(0lqk", "lqk"},
	} {
		if got := filterAll([]byte(c.in)); got != c.want {
			t.Errorf("%q gives %q, not %q", c.in, got, c.want)
		}
	}
}

// TestFilterCuts cuts streams into answers at every byte of the limits, with
// the filter's state carried from answer to answer as a cursor carries it.
func TestFilterCuts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		stream := randomStream(r, 1+r.IntN(12))
		want := filterAll(stream)
		maxBytes, maxLines := 1+r.IntN(9), 1+r.IntN(3)
		var got strings.Builder
		var state []byte
		for at := 0; ; {
			f := filter{bytes: maxBytes, lines: maxLines}
			if state != nil {
				if err := f.setState(state); err != nil {
					t.Fatal(err)
				}
			}
			end := min(len(stream), at+1+r.IntN(8)) // as far as the log goes yet
			if r.IntN(2) == 0 {
				end = len(stream)
			}
			text, n := f.feed(nil, stream[at:end])
			at += n
			if at == len(stream) {
				text = f.finish(text)
			}
			if !utf8.Valid(text) {
				t.Fatalf("%q: an answer cuts a character: %q", stream, text)
			}
			if len(text) > maxBytes && utf8.RuneCount(text) > 1 || bytes.Count(text, []byte("\n")) > maxLines {
				t.Fatalf("%q: %q is beyond %d bytes, %d lines", stream, text, maxBytes, maxLines)
			}
			if len(text) == 0 && n == 0 && at < len(stream) {
				t.Fatalf("%q: no way on at %d", stream, at)
			}
			got.Write(text)
			state = f.appendState(nil)
			if at == len(stream) && len(f.lexer.Held()) == 0 {
				break
			}
		}
		if got.String() != want {
			t.Fatalf("%q by %d bytes, %d lines: %q, not %q", stream, maxBytes, maxLines, got.String(), want)
		}
	}
}

func TestTailStart(t *testing.T) {
	for _, c := range []struct {
		text         string
		bytes, lines int
		want         string
	}{
		{"one\ntwo\nthree", 100, 2, "two\nthree"},
		{"one\ntwo\nthree\n", 100, 2, "two\nthree\n"},
		{"one\ntwo\nthree\n", 100, 3, "one\ntwo\nthree\n"},
		{"one\ntwo", 3, 9, "two"},
		{"aé", 1, 9, "é"},
		{"aé", 2, 9, "é"},
		{"aéb", 2, 9, "b"},
		{"", 1, 1, ""},
		{"\n", 1, 1, "\n"},
		{"\n\n", 9, 1, "\n"},
	} {
		if got := c.text[tailStart([]byte(c.text), c.bytes, c.lines):]; got != c.want {
			t.Errorf("the end of %q by %d bytes, %d lines is %q, not %q", c.text, c.bytes, c.lines, got, c.want)
		}
	}
}

func FuzzFilter(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(randomStream(r, 6), uint8(r.IntN(256)))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint8) {
		want := filterAll(stream)
		k := int(cut) % (len(stream) + 1)
		a := filter{bytes: unlimited, lines: unlimited}
		text, _ := a.feed(nil, stream[:k])
		b := filter{bytes: unlimited, lines: unlimited}
		if err := b.setState(a.appendState(nil)); err != nil {
			t.Fatal(err)
		}
		text, _ = b.feed(text, stream[k:])
		if got := string(b.finish(text)); got != want {
			t.Fatalf("%q cut at %d: %q, not %q", stream, k, got, want)
		}
		if !utf8.ValidString(want) || strings.ContainsFunc(want, func(r rune) bool {
			return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7F && r < 0xA0
		}) {
			t.Fatalf("%q gives %q", stream, want)
		}
	})
}

// TestCursorDamage: every other bit and every cut of a cursor is refused.
func TestCursorDamage(t *testing.T) {
	c := Cursor{Store: [16]byte{1, 2, 3}, Pane: 7, Generation: 1, Offset: 1 << 40, Filter: []byte{1, 0, 0xE2, 0x82}}
	s := c.String()
	back, err := ParseCursor(s)
	if err != nil || back.String() != s || back.Offset != c.Offset || back.Pane != c.Pane {
		t.Fatalf("%q comes back as %+v, %v", s, back, err)
	}
	for i := range s {
		for bit := range 7 {
			bad := []byte(s)
			bad[i] ^= 1 << bit
			if _, err := ParseCursor(string(bad)); err == nil {
				t.Errorf("bit %d of byte %d flipped: accepted", bit, i)
			}
		}
		if _, err := ParseCursor(s[:i]); err == nil {
			t.Errorf("cut at %d: accepted", i)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add(Cursor{Filter: []byte{0, 0}}.String())
	f.Add("cs1:")
	f.Add("cs2:xyz")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := ParseCursor(s); err == nil && c.String() != s {
			t.Fatalf("%q is read as %q", s, c.String())
		}
	})
}
