package mirror

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"looptape/replay"
)

// person is a person's terminal.
type person struct {
	*replay.Terminal
	m          Mirror
	cols, rows int
}

func enter(cols, rows int) *person {
	p := shell(cols, rows)
	p.Feed([]byte(Enter))
	return p
}

// shell is a person's terminal as it is before.
func shell(cols, rows int) *person {
	p := &person{Terminal: replay.New(cols, rows, 100), cols: cols, rows: rows}
	p.Feed([]byte("before\r\n\x1b]2;shell\x07\x1b[?1007h\x1b[1mbold\x1b[m $ "))
	return p
}

func (p *person) show(t *replay.Terminal, note string) (bytes int) {
	out := p.m.Append(nil, t, p.cols, p.rows, note)
	p.Feed(out)
	return len(out)
}

func lines(t *replay.Terminal) (lines []string) {
	b := t.Bounds()
	for r := range t.Rows(b.Active, b.End) {
		lines = append(lines, string(r.Text))
	}
	return lines
}

// pieces are what the panes of these tests write.
func pieces(r *rand.Rand) string {
	all := []string{
		"plain text ", "\r\n", "\x1b[H", "\x1b[5;3H", "\x1b[2J", "\x1b[K", "\x1b[31m", "\x1b[44m", "\x1b[0m", "\x1b[7m",
		"\u6f22\u5b57", "e\u0301", "\x1b[?1049h", "\x1b[?1049l", "\x1b[2;4r\x1b[4H\n\n", "\x1b[r", "\x1b[3L", "\x1b[2M",
		"\x1b]2;title\x07", "\x1b]2;other\x07", "\x1b[?25l", "\x1b[?25h", "\x1b[?1h", "\x1b[?1l", "\x1b=", "\x1b>",
		"\x1b[?1000h", "\x1b[?1003h", "\x1b[?1000l", "\x1b[?1003l", "\x1b[?1006h", "\x1b[?1015h", "\x1b[?1006l",
		"\x1b[?2004h", "\x1b[?2004l", "\x1b[?5h", "\x1b[?5l", "\x1b[3 q", "\x1b[0 q", "\x1b[>4;2m", "\x1b[>4m", "\x1b[>5u", "\x1b[<u",
		"\x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\", "\x1b[10C", "\x1bM", "\t", "\b", "\x07", "\x1b[6n", "\x1b[c",
	}
	return all[r.IntN(len(all))]
}

// TestMirror: whatever a program does, the person's terminal shows its screen, cursor
// and title, and sends what the program asked for; a second look sends nothing; in
// the end all is as before.
func TestMirror(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		cols, rows := 8+r.IntN(60), 3+r.IntN(20)
		pane, p := replay.New(cols, rows, 0), enter(cols, rows)
		before := shell(cols, rows)
		for step := range 200 {
			pane.Feed([]byte(pieces(r)))
			if r.IntN(3) > 0 {
				continue
			}
			p.show(pane, "")
			at := fmt.Sprintf("seed %d, step %d", seed, step)
			if got, want := lines(p.Terminal), lines(pane); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: it shows\n%s\ninstead of\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			got, want := p.Cursor(), pane.Cursor()
			want.Pending = false
			if got != want {
				t.Fatalf("%s: the cursor is %+v instead of %+v", at, got, want)
			}
			if p.m.title != "" && p.Title() != pane.Title() {
				t.Fatalf("%s: the title is %q instead of %q", at, p.Title(), pane.Title())
			}
			gotModes, wantModes := p.Modes(), pane.Modes()
			for _, n := range []int{1, 5, 9, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1034, 1039, 2004} {
				if gotModes.Has(n, true) != wantModes.Has(n, true) {
					t.Fatalf("%s: mode %d is not passed on", at, n)
				}
			}
			if gotModes.Kitty != wantModes.Kitty || gotModes.ModifyOtherKeys != wantModes.ModifyOtherKeys {
				t.Fatalf("%s: keyboard %+v, %+v", at, gotModes, wantModes)
			}
			if n := p.show(pane, ""); n != 0 {
				t.Fatalf("%s: a second look sends %d bytes", at, n)
			}
			if reply := p.TakeReplies(); len(reply) > 0 {
				t.Fatalf("%s: the person's terminal was asked for something: %q", at, reply)
			}
		}
		p.Feed(p.m.Leave(nil))
		got, want := p.State(), before.State()
		got.Main.Saved, got.Modes.SavedBits = nil, 0 // what Enter saved
		if !reflect.DeepEqual(got.Main, want.Main) || got.OnAlt || got.Modes != want.Modes ||
			got.Cursor != want.Cursor && !reflect.DeepEqual(got.Cursor, want.Cursor) || p.Title() != "shell" {
			t.Fatalf("seed %d: behind it the terminal is\n%+v\ninstead of\n%+v", seed, got, want)
		}
	}
}

// TestSizes: a Terminal that is larger than the person's is shown around its cursor, a
// smaller one in the corner; a change of either size is followed.
func TestSizes(t *testing.T) {
	pane, p := replay.New(20, 10, 0), enter(8, 4)
	for i := range 10 {
		pane.Feed(fmt.Appendf(nil, "\x1b[%dHrow %d is this long", i+1, i))
	}
	p.show(pane, "")
	if got := strings.Join(lines(p.Terminal), "|"); got != "row 6 is|row 7 is|row 8 is|row 9 is" {
		t.Error(got)
	}
	pane.Feed([]byte("\x1b[3;2H"))
	p.show(pane, "")
	if got, c := strings.Join(lines(p.Terminal), "|"), p.Cursor(); got != "row 2 is|row 3 is|row 4 is|row 5 is" || c.Row != 0 || c.Col != 1 {
		t.Error(got, c)
	}
	pane.Feed([]byte("\x1b[5;15H"))
	p.show(pane, "a note")
	if got, c := strings.Join(lines(p.Terminal), "|"), p.Cursor(); got != "row 2 is|row 3 is|row 4 is| a note " || c.Visible {
		t.Error(got, c)
	}
	p.show(pane, "")
	if got := strings.Join(lines(p.Terminal), "|"); got != "row 2 is|row 3 is|row 4 is|row 5 is" {
		t.Error(got)
	}
	p.Resize(24, 12)
	p.cols, p.rows = 24, 12
	p.show(pane, "")
	got := lines(p.Terminal)
	for i, row := range got {
		want := fmt.Sprintf("row %d is this long", i)
		if i >= 10 {
			want = ""
		}
		if strings.TrimRight(row, " ") != want {
			t.Errorf("row %d is %q", i, row)
		}
	}
	small := replay.New(5, 2, 0)
	small.Feed([]byte("ab\r\ncd"))
	p.show(small, "")
	if got := strings.Fields(strings.Join(lines(p.Terminal), "\n")); !reflect.DeepEqual(got, []string{"ab", "cd"}) {
		t.Errorf("%q", got)
	}
}

// TestReadOnly: of the modes, what is shown is passed on, and nothing that would have
// the terminal send something.
func TestReadOnly(t *testing.T) {
	pane := replay.New(20, 4, 0)
	pane.Feed([]byte("\x1b[?5h\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b=\x1b[>4;2m\x1b[>5u\x1b[?1049h\x1b[?1004h"))
	p := enter(20, 4)
	p.m.ReadOnly = true
	before := p.Modes()
	p.show(pane, "")
	got, want := p.Modes(), before
	if !got.Has(5, true) || got.Kitty != want.Kitty || got.ModifyOtherKeys != want.ModifyOtherKeys {
		t.Errorf("%+v", got)
	}
	for _, n := range []int{1, 66, 1003, 1004, 1006, 1007, 2004} {
		if got.Has(n, true) != want.Has(n, true) {
			t.Errorf("mode %d", n)
		}
	}
}

// TestHarmless: a title or a note sends no control.
func TestHarmless(t *testing.T) {
	pane := replay.New(20, 4, 0)
	pane.Feed([]byte("\x1b]2;a\u009b31mb\u0085c\x07"))
	var m Mirror
	out := m.Append(nil, pane, 20, 4, "bad \x1b[31m\u009b")
	for _, r := range strings.NewReplacer("\x1b[", "", "\x1b]2;", "", "\x1b\\", "").Replace(string(out)) {
		if r < ' ' || r >= 0x7F && r < 0xA0 {
			t.Errorf("%q in %q", r, out)
		}
	}
}
