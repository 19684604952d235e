package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/clipperhouse/displaywidth"

	"looptape/replay"
)

// fuzzScrollback is the history limit under fuzzing: small, so that eviction
// happens too.
const fuzzScrollback = 20

// maxFuzzCells bounds the screens of the fuzz targets, so that one input
// stays quick: 65535x4 fits.
const maxFuzzCells = 1 << 18

// fuzzSize makes a legal size of any two numbers: 1x1 to 65535x4 and 4x65535.
func fuzzSize(cols, rows uint16) (int, int) {
	c, r := max(1, int(cols)), max(1, int(rows))
	return c, min(r, max(1, maxFuzzCells/c))
}

// seeds hands the corpus to add, and input that is no terminal's business.
func seeds(f *testing.F, add func(in []byte, cols, rows uint16)) {
	for _, c := range corpus(f) {
		var in []byte
		for _, s := range c.Steps {
			in = append(in, s.In...)
		}
		add(in, uint16(c.Cols), uint16(c.Rows))
	}
	for _, in := range []string{
		"", "\x1b", "\x1b[", "\x1b]", "\x1bP", "\xff\xfe\xfd", "\xf0\x9f\x98", "\x00\x00",
		"\x1b[1;25r\x1b[S\x1b[L\x1b[M", "\x1b[?69h\x1b[2;999s\x1b[P", "x\x1b[100000000b",
		"\x1b[2147483646X\x1b[2147483646Z\x1b[2147483646I\x1b[99999999999999999999A",
		"\x1b[4294967297C\x1b[65536;65536H\x1b[-5B", "\x1b[c\x1b[>c\x1b[5n\x1b[6n\x1b[?6n\x1bP$qm\x1b\\\x1b[?2026$p\x1b[18t",
		"\x1b[38;2;1;2;3;38;5;300;48:2:1:2:3:4:5:6;4:9;58;2m", "\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33;34;35m",
	} {
		add([]byte(in), 80, 24)
	}
	add([]byte("wide 漢字漢字\x1b[2J\x1b[H\x1b[999B\n\n\n"), 65535, 4)
	add([]byte("\x1b[65535;1Hx\n\n\x1b[H\x1bM\x1b[5S\x1b[5T"), 4, 65535)
	add(bytes.Repeat([]byte("e\u0301\u0301"), 3000), 3, 2)
	add(append([]byte("a"), bytes.Repeat([]byte("\u0301"), 20000)...), 10, 3)
	add(append([]byte("\x1b]0;"), bytes.Repeat([]byte("t"), 200000)...), 10, 3)
	add(append([]byte("\x1b["), bytes.Repeat([]byte("1;"), 50000)...), 10, 3)
}

// check fails unless t is a terminal that holds together: bounds, cursor, and
// every row exactly as wide as the screen.
func check(tb testing.TB, t *replay.Terminal) {
	tb.Helper()
	b, c := t.Bounds(), t.Cursor()
	if b.Oldest > b.Active || b.End-b.Active != uint64(b.Rows) || b.Active-b.Oldest > fuzzScrollback {
		tb.Fatalf("bounds %+v", b)
	}
	if b.Screen == "alternate" && (b.Oldest != 0 || b.Active != 0) {
		tb.Fatalf("alternate screen with bounds %+v", b)
	}
	if c.Row < 0 || c.Row >= b.Rows || c.Col < 0 || c.Col > b.Cols {
		tb.Fatalf("cursor %+v on %dx%d", c, b.Cols, b.Rows)
	}
	next := b.Oldest
	for r := range t.Rows(b.Oldest, b.End) {
		if r.Number != next {
			tb.Fatalf("row %d where %d was due", r.Number, next)
		}
		next++
		if r.Written > t.Offset() {
			tb.Fatalf("row %d was written at %d, the stream ends at %d", r.Number, r.Written, t.Offset())
		}
		if w := rowWidth(r.Text); w != b.Cols {
			tb.Fatalf("row %d is %d columns wide, not %d: %q", r.Number, w, b.Cols, r.Text)
		}
	}
	if next != b.End {
		tb.Fatalf("rows end at %d, not %d", next, b.End)
	}
}

// rowWidth is the display width of a row by the one table of the product.
func rowWidth(text []byte) int { return displaywidth.Bytes(text) }

// FuzzFeed: no bytes, sizes or resizes make a terminal panic, hang, lose its
// own bounds or grow past its limits.
func FuzzFeed(f *testing.F) {
	seeds(f, func(in []byte, cols, rows uint16) { f.Add(in, cols, rows, uint16(rows), uint16(cols)) })
	seeds(f, func(in []byte, cols, rows uint16) { f.Add(in, cols, rows, uint16(1), uint16(1)) })
	f.Fuzz(func(t *testing.T, in []byte, cols, rows, cols2, rows2 uint16) {
		c1, r1 := fuzzSize(cols, rows)
		c2, r2 := fuzzSize(cols2, rows2)
		term := replay.New(c1, r1, fuzzScrollback)
		check(t, term)
		third := len(in) / 3
		term.Feed(in[:third])
		check(t, term)
		term.Resize(c2, r2)
		check(t, term)
		term.Feed(in[third : 2*third])
		term.Resize(c1, r1)
		term.Feed(in[2*third:])
		check(t, term)
		if term.Offset() != uint64(len(in)) {
			t.Fatalf("offset %d behind %d bytes", term.Offset(), len(in))
		}
		// Cells of the history and both screens, each with at most the marks
		// and style that a cell can have, and the stated limits of strings.
		cells := (fuzzScrollback+2*max(r1, r2))*max(c1, c2) + 1
		if n := len(encoded(term)); n > 4<<20+cells*512 {
			t.Fatalf("a checkpoint of %d bytes for %d cells", n, cells)
		}
		term.Gap(7)
		term.Restart(1)
		check(t, term)
		term.Respawn()
		check(t, term)
	})
}

// FuzzSplit: the same bytes in any pieces give the same state, replies and
// observations.
func FuzzSplit(f *testing.F) {
	seeds(f, func(in []byte, cols, rows uint16) { f.Add(in, cols, rows, uint64(len(in))) })
	f.Fuzz(func(t *testing.T, in []byte, cols, rows uint16, seed uint64) {
		c, r := fuzzSize(cols, rows)
		want := replay.New(c, r, fuzzScrollback)
		events := listen(want)
		want.Feed(in)
		replies := want.TakeReplies()
		ways := map[string]cutter{"random cuts": randomCuts(seed)}
		if len(in) < 4096 {
			ways["byte by byte"] = bytewise
		}
		for name, cut := range ways {
			got := replay.New(c, r, fuzzScrollback)
			heard := listen(got)
			feed(got, in, cut)
			same(t, fmt.Sprintf("%q at %dx%d, %s", in, c, r, name), got, want)
			if g := got.TakeReplies(); !bytes.Equal(g, replies) {
				t.Fatalf("%q, %s: replies %q, want %q", in, name, g, replies)
			}
			if !slices.Equal(*heard, *events) {
				t.Fatalf("%q, %s: events %v, want %v", in, name, *heard, *events)
			}
		}
	})
}

// listen collects the events of a terminal.
func listen(t *replay.Terminal) *[]replay.Event {
	events := new([]replay.Event)
	t.SetEventSink(func(e replay.Event) { *events = append(*events, e) })
	return events
}

// FuzzCheckpoint: a checkpoint taken anywhere, inside a sequence, a character
// or a cluster too, and the rest of the stream give the same terminal as the
// whole stream; so does a second checkpoint on the way, and a resize.
func FuzzCheckpoint(f *testing.F) {
	seeds(f, func(in []byte, cols, rows uint16) { f.Add(in, cols, rows, uint32(len(in)/2), uint32(len(in)*2/3)) })
	f.Fuzz(func(t *testing.T, in []byte, cols, rows uint16, cut, cut2 uint32) {
		c, r := fuzzSize(cols, rows)
		j, k := int(cut)%(len(in)+1), int(cut2)%(len(in)+1)
		j, k = min(j, k), max(j, k)
		want, got := replay.New(c, r, fuzzScrollback), replay.New(c, r, fuzzScrollback)
		want.Feed(in[:j])
		want.Resize(max(1, c/2), r)
		want.Feed(in[j:])
		got.Feed(in[:j])
		got = reopened(t, got)
		got.Resize(max(1, c/2), r)
		got = reopened(t, got)
		got.Feed(in[j:k])
		got = reopened(t, got)
		got.Feed(in[k:])
		same(t, fmt.Sprintf("%q at %dx%d, cut at %d and %d", in, c, r, j, k), got, want)
	})
}
