package replay_test

import (
	"fmt"
	"testing"

	"looptape/replay"
)

// snapshotStreams set what the generated streams do not.
var snapshotStreams = []string{
	"\x1b[?1h\x1b=\x1b[?5h\x1b[?7l\x1b[?8l\x1b[?12h\x1b[?25l\x1b[?45h\x1b[?67h\x1b[?1007l\x1b[?1034h\x1b[?1039h\x1b[?2004h\x1b[?2031h\x1b[20h\x1b[4htext",
	"\x1b[?9h", "\x1b[?1000h\x1b[?1005h", "\x1b[?1002h\x1b[?1006h", "\x1b[?1003h\x1b[?1015h", "\x1b[?1003;1016h\x1b[?1004h", "\x1b[?2026htext",
	"\x1b[?1000;1004;25s\x1b[?1000;1004h\x1b[?1000;1004s\x1b[?1004l\x1b[?25lx", "\x1b[>4;2m\x1b[3 q", "\x1b[>1u\x1b[>5u\x1b[?1049h\x1b[>3u\x1b[=1;2u",
	"\x1b]0;both\x07\x1b[22t\x1b]2;title\x1b\\\x1b]1;icon\x07\x1b[22;2t\x1b]2;\x07\x1b]7;file://host/home/x%20y\x07",
	"\x1b]4;1;#102030;255;rgb:ff/00/7f\x07\x1b]10;#eeeeee\x07\x1b]11;rgb:0101/0202/0303\x07\x1b]12;#ff0000\x07",
	"\x1b[3g\x1b[5G\x1bH\x1b[9G\x1bHx", "\x1b[2;3r\x1b[?6h\x1b[2;2Hx\x1b7\x1b[1;1Hy", "\x1b(0\x1b)A\x1b*B\x1b+0qqq", "\x0eabc\x1b)0lqk", "\x1bnx\x1boy",
	"\x1b]8;id=a;http://x.example/a;b\x07link\x1b[1mbold\x1b]8;;http://y.example\x07other", "\x1b[1\"qkept\x1b[0\"qlost\x1b[1\"q\x1b[?2J",
	"\x1b[1;2;3;5;6;7;8;9;53;4:3;38;2;1;2;3;48;5;200;58:2::4:5:6mall\x1b[22;24m\x1b[4:5;97;107mless",
	"0123456789wraps\x1b[44mcoloured and wraps\x1b[K\r\n\x1b[41m\x1b[2Kbg\x1b[m\x1b[999D\x1b[3X", "012345678漢字漢字漢字", "012345678漢\x1b[2Dx\x1b[H\x1b[3@",
	"0123456789\x1b[S", "0123456789\x1b[T", "0123456789\x1b[2J", "0123456789\x1b[?1049h", "0123456789\x1b[?47hx\x1b[?47l", "ab\x1b[2D\x1b[31m\x1b[1@\x1b7\x1b[?1049h\x1b[42m\x1b7alt\x1b[?1049l",
	"\x1b[?1049h\x1b7\x1b[3;3Hx\x1b[?1049l\x1b[2;2H", "👩\u200d👧\u200d", "🇩🇪🇫", "🇩\x1b[C🇪\x1b[1;3H🇫", "012345678❤\ufe0fx", "\x1b[?7l0123456789❤\ufe0f", "e\x1b[31m\u0301", "a\u0301\x1b[m", "漢\x1b[2D\x1b[3mx",
	"\n\n\n\n\x1b[44m0123456789\x1b[ma\r\x1b[44mb\x1b[m", "\n\n\n\n\x1b[44m0123456789\x1b[m\x1b[7mabc\x1b[m\r\x1b[X", "\x1b[44m\x1b[?1049h\x1b[m\x1b[2Jx", "012345678漢\x1b[2Dx", "012345678漢\x1b[2D\x1b[2X",
	"\u0600a\x1b[2;1H\u0600\x1b[2;2Hb", "x\x1b[5b", "x\x1b[31m\x1b[5b", "क\u094d", "\x1b]0;unfinished", "\x1b]8;;http://x\x1b", "\x1b[?20", "\x1b[38:2::1", "\x1b[1;;3", "\x1b[1$", "\x1b[1$ !", "\x1b[1<", "\x1b[<",
	"\x1b( ", "\x1b(  ", "\x1bP1$q", "\x1bP$qm\x1b", "\x1bP1<x", "\x1bX", "\x1b_G", "\x1b", "\xe6\xbc", "\xf0\x9f\x98", "漢\xe6",
}

// TestSnapshotFunctions: what the generated streams do not set, with what they do
// behind it, on screens of some sizes.
func TestSnapshotFunctions(t *testing.T) {
	for i, in := range snapshotStreams {
		for k, size := range [][2]int{{10, 4}, {80, 24}, {2, 2}, {1, 3}, {1, 1}, {5, 1}} {
			c := generate(mixedGroup, uint64(7000+10*i+k), 20).asCase("", "")
			c.Cols, c.Rows = size[0], size[1]
			c.Steps = append([]caseStep{{In: []byte(in)}}, c.Steps...)
			eachCut(c, 8, uint64(i), func(term *replay.Terminal, at string, rest []caseStep) {
				checkSnapshot(t, fmt.Sprintf("%q, %s, %dx%d %s", in, at, c.Cols, c.Rows, c.quote()), term, rest)
			})
		}
	}
}

// FuzzSnapshot: whatever the stream, a fresh terminal that is fed a snapshot taken
// anywhere, between two resizes, is the same, and stays it.
func FuzzSnapshot(f *testing.F) {
	seeds(f, func(in []byte, cols, rows uint16) {
		if len(in) < 1<<10 {
			f.Add(in, cols, rows, uint16(len(in)/2), uint16(cols/2), uint16(rows))
		}
	})
	for _, in := range snapshotStreams {
		f.Add([]byte(in), uint16(10), uint16(4), uint16(len(in)), uint16(7), uint16(5))
		f.Add([]byte(in), uint16(2), uint16(2), uint16(len(in)), uint16(1), uint16(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, cols, rows, cut, cols2, rows2 uint16) {
		c, r := fuzzSize(cols%200, rows%60)
		c2, r2 := fuzzSize(cols2%200, rows2%60)
		k := int(cut) % (len(in) + 1)
		term := replay.New(c, r, fuzzScrollback)
		term.Feed(in[:k/2])
		term.Resize(c2, r2)
		term.Feed(in[k/2 : k])
		checkSnapshot(t, fmt.Sprintf("%q cut at %d and %d, %dx%d then %dx%d", in, k/2, k, c, r, c2, r2), term,
			[]caseStep{{In: in[k:]}, {Resize: &[2]int{c, r}}})
	})
}
