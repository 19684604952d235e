package replay

import (
	"slices"
	"testing"
)

// TestReplies: answers as xterm's ctlseqs give them (the attributes and the version
// are looptape's own), once each, and a query cut anywhere is still one.
func TestReplies(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"\x1b[c", "\x1b[?62;22c"}, {"\x1b[0c", "\x1b[?62;22c"}, {"\x1b[1c", ""}, {"\x1bZ", "\x1b[?62;22c"},
		{"\x1b[>c", "\x1b[>1;10;0c"}, {"\x1b[=c", "\x1bP!|00000000\x1b\\"},
		{"\x1b[5n", "\x1b[0n"}, {"\x1b[6n", "\x1b[1;1R"}, {"abc\r\nd\x1b[6n", "\x1b[2;2R"}, {"\x1b[?6n", "\x1b[?1;1R"},
		{"0123456789\x1b[6n", "\x1b[1;10R"},                // a pending wrap is the last column
		{"\x1b[2;4r\x1b[?6h\x1b[2;3H\x1b[6n", "\x1b[2;3R"}, // origin mode: from the top margin
		{"\x1b[?7$p", "\x1b[?7;1$y"}, {"\x1b[?7l\x1b[?7$p", "\x1b[?7;2$y"}, {"\x1b[4$p", "\x1b[4;2$y"}, {"\x1b[4h\x1b[4$p", "\x1b[4;1$y"},
		{"\x1b[?69$p", "\x1b[?69;0$y"}, {"\x1b[?2026h\x1b[?2026$p", "\x1b[?2026;1$y"}, {"\x1b[?2027$p", "\x1b[?2027;3$y"},
		{"\x1b[?1049h\x1b[?1049$p", "\x1b[?1049;1$y"}, {"\x1b[?1049$p", "\x1b[?1049;2$y"},
		{"\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"}, {"\x1b[1;4:3;31;48;2;1;2;3m\x1bP$qm\x1b\\", "\x1bP1$r0;1;4:3;31;48:2::1:2:3m\x1b\\"},
		{"\x1b[2;4r\x1bP$qr\x1b\\", "\x1bP1$r2;4r\x1b\\"}, {"\x1b[5 q\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\"}, {"\x1b[1\"q\x1bP$q\"q\x1b\\", "\x1bP1$r1\"q\x1b\\"},
		{"\x1bP$qx\x1b\\", "\x1bP0$r\x1b\\"}, {"\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\"},
		{"\x1b[>q", "\x1bP>|looptape(1)\x1b\\"}, {"\x1b[>0q", "\x1bP>|looptape(1)\x1b\\"},
		{"\x1b[14t", "\x1b[4;80;80t"}, {"\x1b[16t", "\x1b[6;16;8t"}, {"\x1b[18t", "\x1b[8;5;10t"}, {"\x1b]0;secret\a\x1b[21t", ""},
		{"\x1b]10;?\a", "\x1b]10;rgb:e5e5/e5e5/e5e5\a"}, {"\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\"},
		{"\x1b]11;#123456\a\x1b]11;?\a", "\x1b]11;rgb:1212/3434/5656\a"}, {"\x1b]11;rgb:f/8/0\a\x1b]11;?\a", "\x1b]11;rgb:ffff/8888/0000\a"},
		{"\x1b]11;#123456\a\x1b]111\a\x1b]11;?\a", "\x1b]11;rgb:0000/0000/0000\a"},
		{"\x1b]10;?;?\a", "\x1b]10;rgb:e5e5/e5e5/e5e5\a\x1b]11;rgb:0000/0000/0000\a"},
		{"\x1b]4;1;?\a", "\x1b]4;1;rgb:cdcd/0000/0000\a"}, {"\x1b]4;16;?;231;?\a", "\x1b]4;16;rgb:0000/0000/0000\a\x1b]4;231;rgb:ffff/ffff/ffff\a"},
		{"\x1b]4;1;#abcdef\a\x1b]4;1;?\a", "\x1b]4;1;rgb:abab/cdcd/efef\a"}, {"\x1b]4;1;#abcdef\a\x1b]104;1\a\x1b]4;1;?\a", "\x1b]4;1;rgb:cdcd/0000/0000\a"},
		{"\x1b[?u", "\x1b[?0u"}, {"\x1b[>5u\x1b[?u", "\x1b[?5u"}, {"\x1b[>5u\x1b[>1u\x1b[<u\x1b[?u", "\x1b[?5u"}, {"\x1b[=3u\x1b[=4;2u\x1b[=1;3u\x1b[?u", "\x1b[?6u"},
		{"\x1b[>5u\x1b[?1049h\x1b[?u\x1b[?1049l\x1b[?u", "\x1b[?0u\x1b[?5u"},
		{"\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m"}, {"\x1b]52;c;?\a", ""}, {"\x05", ""},
	} {
		whole := New(10, 5, 10)
		whole.Feed([]byte(c.in))
		if got := string(whole.TakeReplies()); got != c.want {
			t.Errorf("%q answers %q, want %q", c.in, got, c.want)
		}
		if again := whole.TakeReplies(); len(again) > 0 {
			t.Errorf("%q answers twice: %q", c.in, again)
		}
		cut := New(10, 5, 10)
		var got []byte
		for i := range len(c.in) {
			cut.Feed([]byte(c.in[i : i+1]))
			got = append(got, cut.TakeReplies()...)
		}
		if string(got) != c.want {
			t.Errorf("%q byte by byte answers %q, want %q", c.in, got, c.want)
		}
	}
}

// TestEvents: what is observed, at the offset behind it.
func TestEvents(t *testing.T) {
	term := New(20, 5, 10)
	var got []Event
	term.SetEventSink(func(e Event) { got = append(got, e) })
	in := "a\a\x1b]0;T\x1b\\\x1b]7;file:///x\a\x1b]133;A\a$ \x1b]133;B\als\r\n\x1b]133;C\a\x1b]133;D;2\a\x1b]9;done\a\x1b]777;notify;a;b\a\x1b]9;4;1;50\a\x1b]8;;http://h/\ax\x1b]8;;\a"
	term.Feed([]byte(in))
	want := []Event{
		{Bell, 2, ""}, {TitleChanged, 9, "T"}, {CwdChanged, 23, "file:///x"}, {PromptStart, 31, ""}, {CommandStart, 41, ""},
		{OutputStart, 53, ""}, {CommandEnd, 63, "2"}, {Notification, 72, "done"}, {Notification, 89, "a;b"}, {Hyperlink, 115, "http://h/"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("events\n%v, want\n%v", got, want)
	}
	if term.Title() != "T" || term.Cwd() != "file:///x" {
		t.Errorf("title %q, cwd %q", term.Title(), term.Cwd())
	}
	term.Feed([]byte("\x1b[22t\x1b]2;U\a\x1b[23t"))
	if term.Title() != "T" {
		t.Errorf("title %q from the stack", term.Title())
	}
}
