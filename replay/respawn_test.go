package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
)

// texts are the rows [start, end) of t, without the blanks at their ends.
func texts(t *replay.Terminal, start, end uint64) (rows []string) {
	for r := range t.Rows(start, end) {
		rows = append(rows, strings.TrimRight(string(r.Text), " "))
	}
	return rows
}

// TestRespawn: a new program finds a terminal as new, and what its predecessor
// left is history.
func TestRespawn(t *testing.T) {
	respawn(t, true)
	respawn(t, false) // then the Terminal itself reports what leaves the screen
}

func respawn(t *testing.T, flush bool) {
	term := replay.New(10, 4, 100)
	var lines []string
	term.SetLineSink(func(l replay.Line) { lines = append(lines, string(l.Text)) })
	term.Feed([]byte("one\r\n\x1b]2;old\a\x1b]7;file://h/old\a\x1b]4;1;rgb:10/20/30\ainwrapped line"))
	term.Feed([]byte("\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[2;3r\x1b[31mhidden\x1b]0;unfinished"))
	before := term.Bounds()
	if flush {
		term.FlushLines()
	}
	term.Respawn()

	b := term.Bounds()
	if b.Screen != replay.Primary || b.Epoch != before.Epoch+1 || term.Generation() != 1 || b.Cols != 10 || b.Rows != 4 {
		t.Errorf("afterwards: %+v, generation %d", b, term.Generation())
	}
	if got := texts(term, b.Oldest, b.Active); !slices.Equal(got, []string{"one", "inwrapped", "line"}) {
		t.Errorf("history %q", got)
	}
	if got := texts(term, b.Active, b.End); !slices.Equal(got, []string{"", "", "", ""}) {
		t.Errorf("screen %q", got)
	}
	if c := term.Cursor(); c.Col != 0 || c.Row != 0 || !c.Visible || c.Pending {
		t.Errorf("cursor %+v", c)
	}
	if term.Title() != "" || term.Cwd() != "" || term.Modes() != replay.New(10, 4, 0).Modes() {
		t.Errorf("title %q, cwd %q, modes %v", term.Title(), term.Cwd(), term.Modes())
	}
	// The new program's output is no part of the sequence or the line before.
	term.Feed([]byte("two\r\n\x1b]4;1;?\a"))
	if got := string(term.TakeReplies()); strings.Contains(got, "1010/2020/3030") {
		t.Errorf("a colour of the program before: %q", got)
	}
	term.FlushLines()
	slices.Sort(lines)
	if want := []string{"hidden", "inwrapped line", "one", "two"}; !slices.Equal(lines, want) {
		t.Errorf("transcript %q, not %q", lines, want)
	}

	restored, err := checkpoint.Decode(checkpoint.Encode(nil, term.State()))
	if err != nil {
		t.Fatal(err)
	}
	again, err := replay.Restore(restored)
	if err != nil || again.Generation() != 1 {
		t.Errorf("restored: generation %d, %v", again.Generation(), err)
	}
}

// TestRespawns: with each one the text on the screen goes into the history, none of
// it twice, and epochs and generations go on; a terminal of no history too.
func TestRespawns(t *testing.T) {
	for _, scrollback := range []int{0, 3, 100} {
		term := replay.New(8, 3, scrollback)
		var want []string
		for i := range 10 {
			for j := range i % 5 {
				text := fmt.Sprintf("%d.%d", i, j)
				term.Feed([]byte(text + "\r\n"))
				want = append(want, text)
			}
			term.Respawn()
			b := term.Bounds()
			kept := want[max(0, len(want)-scrollback):]
			if got := texts(term, b.Oldest, b.Active); !slices.Equal(got, kept) && len(got)+len(kept) > 0 {
				t.Fatalf("scrollback %d, respawn %d: history %q, not %q", scrollback, i, got, kept)
			}
			if b.Epoch != uint32(i+2) || term.Generation() != uint32(i+1) || b.Oldest != 0 {
				t.Fatalf("respawn %d: %+v, generation %d", i, b, term.Generation())
			}
			restored, err := replay.Restore(term.State())
			if err != nil || !bytes.Equal(checkpoint.Encode(nil, restored.State()), checkpoint.Encode(nil, term.State())) {
				t.Fatalf("respawn %d: restored differs: %v", i, err)
			}
		}
	}
}
