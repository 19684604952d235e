package replay

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// modesOf returns the modes behind a stream.
func modesOf(in string) Modes {
	t := New(80, 24, 0)
	t.Feed([]byte(in))
	return t.Modes()
}

// TestEncodeKey: what xterm sends, from its ctlseqs.
func TestEncodeKey(t *testing.T) {
	for _, c := range []struct{ modes, key, want string }{
		{"", "a", "a"}, {"", "A", "A"}, {"", "S-a", "A"}, {"", "é", "é"}, {"", "漢", "漢"}, {"", "-", "-"}, {"", "^", "^"},
		{"", "Enter", "\r"}, {"", "RET", "\r"}, {"", "<return>", "\r"}, {"", "M-Enter", "\x1b\r"},
		{"", "Tab", "\t"}, {"", "S-Tab", "\x1b[Z"}, {"", "BTab", "\x1b[Z"}, {"", "Space", " "}, {"", "SPC", " "},
		{"", "Escape", "\x1b"}, {"", "BSpace", "\x7f"}, {"", "DEL", "\x7f"}, {"", "M-BSpace", "\x1b\x7f"}, {"", "C-BSpace", "\x08"},
		{"", "C-c", "\x03"}, {"", "^c", "\x03"}, {"", "C-C", "\x03"}, {"", "C-Space", "\x00"}, {"", "C-@", "\x00"},
		{"", "C-[", "\x1b"}, {"", "C-_", "\x1f"}, {"", "C-/", "\x1f"}, {"", "C-?", "\x7f"}, {"", "C-\\", "\x1c"},
		{"", "M-x", "\x1bx"}, {"", "C-M-x", "\x1b\x18"}, {"", "M-C-x", "\x1b\x18"}, {"", "M-X", "\x1bX"},
		{"", "Up", "\x1b[A"}, {"\x1b[?1h", "Up", "\x1bOA"}, {"", "S-Up", "\x1b[1;2A"}, {"\x1b[?1h", "C-Left", "\x1b[1;5D"},
		{"", "M-Right", "\x1b[1;3C"}, {"", "Home", "\x1b[H"}, {"\x1b[?1h", "Home", "\x1bOH"}, {"\x1b[?1h", "<end>", "\x1bOF"},
		{"", "PPage", "\x1b[5~"}, {"", "PageUp", "\x1b[5~"}, {"", "<next>", "\x1b[6~"}, {"", "IC", "\x1b[2~"}, {"", "DC", "\x1b[3~"}, {"", "C-Delete", "\x1b[3;5~"},
		{"", "F1", "\x1bOP"}, {"", "F5", "\x1b[15~"}, {"", "<f12>", "\x1b[24~"}, {"", "S-F5", "\x1b[15;2~"}, {"", "C-F1", "\x1b[1;5P"}, {"", "F13", "\x1b[25~"},
		{"", "KP5", "5"}, {"\x1b=", "KP5", "\x1bOu"}, {"\x1b=", "KPEnter", "\x1bOM"},
	} {
		got, err := EncodeKey(c.key, modesOf(c.modes))
		if err != nil || string(got) != c.want {
			t.Errorf("%q behind %q: %q, %v; want %q", c.key, c.modes, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "C-", "F0", "F25", "Frob", "ab", "\x01", "\xff", "<>", "C-F"} {
		if got, err := EncodeKey(bad, Modes{}); bad == "C-F" {
			if string(got) != "\x06" {
				t.Errorf("C-F: %q, %v", got, err)
			}
		} else if !errors.Is(err, ErrKey) {
			t.Errorf("%q: %q, %v; want ErrKey", bad, got, err)
		}
	}
}

// TestEncodePaste: an embedded end mark cannot break out of the brackets.
func TestEncodePaste(t *testing.T) {
	plain, bracketed := modesOf(""), modesOf("\x1b[?2004h")
	if got := EncodePaste("a\nb\r\nc", plain); string(got) != "a\rb\rc" {
		t.Errorf("plain paste: %q", got)
	}
	for _, text := range []string{
		"a\nb", "x\x1b[201~rm -rf\n", "\x1b[20\x1b[201~1~y", "\x1b[2\x1b[200~01~z", strings.Repeat("\x1b[20", 50) + strings.Repeat("1~", 50),
	} {
		got := EncodePaste(text, bracketed)
		inner, ok := bytes.CutPrefix(got, []byte(pasteStart))
		inner, ok2 := bytes.CutSuffix(inner, []byte(pasteEnd))
		if !ok || !ok2 || bytes.Contains(inner, []byte(pasteEnd)) {
			t.Errorf("paste of %q: %q", text, got)
		}
	}
}

// TestEncodeMouse: xterm's formats.
func TestEncodeMouse(t *testing.T) {
	click := Mouse{Button: 1, Col: 4, Row: 2}
	drag := Mouse{Action: MouseMotion, Button: 1, Col: 4, Row: 2}
	up := Mouse{Action: MouseRelease, Button: 1, Col: 4, Row: 2}
	far := Mouse{Button: 1, Col: 150, Row: 2}
	for _, c := range []struct {
		modes string
		ev    Mouse
		want  string
	}{
		{"", click, ""},
		{"\x1b[?1000h", click, "\x1b[M %#"},
		{"\x1b[?1000h", up, "\x1b[M#%#"},
		{"\x1b[?1000h", drag, ""},
		{"\x1b[?1000h", far, "\x1b[M \xb7#"},
		{"\x1b[?1000h", Mouse{Button: 1, Col: 300}, ""},
		{"\x1b[?1002h", drag, "\x1b[M@%#"},
		{"\x1b[?1000h\x1b[?1006h", click, "\x1b[<0;5;3M"},
		{"\x1b[?1000h\x1b[?1006h", up, "\x1b[<0;5;3m"},
		{"\x1b[?1003h\x1b[?1006h", Mouse{Action: MouseMotion, Col: 299, Row: 9}, "\x1b[<35;300;10M"},
		{"\x1b[?1000h\x1b[?1006h", Mouse{Button: 4, Col: 0, Row: 0, Ctrl: true}, "\x1b[<80;1;1M"},
		{"\x1b[?9h", up, ""},
	} {
		if got := EncodeMouse(c.ev, modesOf(c.modes)); string(got) != c.want {
			t.Errorf("%+v behind %q: %q, want %q", c.ev, c.modes, got, c.want)
		}
	}
}

func BenchmarkEncodeKey(b *testing.B) {
	for b.Loop() {
		EncodeKey("C-c", Modes{})
	}
}
