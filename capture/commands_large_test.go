package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// flood appends a text to the log until that has n bytes more.
func (p *tape) flood(text string, n int) {
	p.t.Helper()
	chunk := bytes.Repeat([]byte(text), 256<<10/len(text))
	for ; n > 0; n -= len(chunk) {
		p.log.Append(store.Output, store.Time{}, chunk)
		for p.log.Room() <= 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// TestLargeCommand: a command is found that wrote more than an answer looks through,
// whether its end or a prompt ended it, and lists and numbers come to an end.
func TestLargeCommand(t *testing.T) {
	for name, mark := range map[string]string{"end": "\x1b]133;D;3\a", "prompt": "\x1b]133;A\a", "none": ""} {
		p := newTape(t, newStore(t), 0, 20, 5)
		p.log.Append(store.Output, store.Time{}, []byte("\x1b]133;C;cmdline=first\a\x1b]133;D;1\a\x1b]133;C;cmdline=large\a"))
		start := p.log.End().Offset
		p.flood(" some text in a line\r\n", commandsScan+commandsWindow)
		end := p.log.End().Offset
		p.log.Append(store.Output, store.Time{}, []byte(mark))
		first, large := "22-22 first  exit 1 0s", fmt.Sprintf("%d-%d large  exit 3 0s", start, end)
		if name == "prompt" {
			large = fmt.Sprintf("%d-%d large  0s", start, end)
		}
		pages := []string{large, first}
		if name == "none" { // nobody looks so far back for what may still run
			pages = pages[1:]
		}
		for limit := range 2 {
			var got []string
			q := CommandsRequest{Limit: limit + 1}
			for n := 0; ; n++ {
				r, err := Commands(t.Context(), p, q)
				if err != nil || n > 4 || r.More && q.Before != nil && r.From >= *q.Before {
					t.Fatalf("%s: answer %d: %+v (%v)", name, n, r, err)
				}
				for i := len(r.Commands) - 1; i >= 0; i-- {
					got = append(got, r.Commands[i].describe())
				}
				if !r.More {
					break
				}
				q.Before = &r.From
			}
			if !reflect.DeepEqual(got, pages) {
				t.Errorf("%s, %d a page: %q, not %q", name, limit+1, got, pages)
			}
		}
		for n, want := range pages {
			if c, err := nthCommand(t.Context(), p, -1-n); err != nil || c.describe() != want {
				t.Errorf("%s: command %d is %s, not %s (%v)", name, -1-n, c.describe(), want, err)
			}
		}
		if _, err := nthCommand(&countdown{t.Context(), 3}, p, -3); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", name, err)
		}
	}
}

// TestFewMarks: of marks that come by the million only few are kept, and the newest
// commands are the same as those of all the marks.
func TestFewMarks(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	kinds := []markKind{promptStart, inputStart, outputStart, outputStart, commandEnd, commandEnd, directory, directory, programEnd, lost}
	for round := range 2000 {
		limit := 1 + r.IntN(4)
		kept, all := commandMarks{most: limit + 2}, []mark(nil)
		for i := range r.IntN(200) {
			m := mark{kind: kinds[r.IntN(len(kinds))], start: uint64(10 * i), end: uint64(10*i + 5), text: fmt.Sprint(i)}
			if m.kind == commandEnd {
				m.text = fmt.Sprint(i % 256)
			}
			kept.add(m)
			if m.kind != inputStart {
				all = append(all, m)
			}
		}
		for _, past := range []bool{true, false} {
			want, wantEnd := pair(all, past)
			got, end := pair(kept.marks, past)
			if len(want) <= limit && (len(got) != len(want) || !reflect.DeepEqual(end, wantEnd)) || len(want) > limit && len(got) <= limit {
				t.Fatalf("round %d: %d commands that end at %v, not %d that end at %v", round, len(got), end, len(want), wantEnd)
			}
			n := min(limit, len(want))
			if got, want = got[len(got)-n:], want[len(want)-n:]; !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d: %+v, not %+v", round, got, want)
			}
		}
	}
	for _, sequence := range []string{"\x1b]7;a\a", "\x1b]133;A\a", "\x1b]133;B\a", "\x1b]133;C\a", "\x1b]133;D\a", "\x1b]7;a\a\x1b]133;C\a\x1b]133;D\a", "\x1b]133;D\a\x1b]7;a\a"} {
		kept, found := commandMarks{most: 5}, 0
		scan := markScan{found: func(m mark) { kept.add(m); found++ }}
		scan.feed(0, bytes.Repeat([]byte(sequence), 100_000), store.Time{})
		scan.frame(store.Frame{Kind: replay.MarkExit}, 0)
		if found < 100_000 || len(kept.marks) > 4*10 {
			t.Errorf("%q: %d marks of %d are kept", sequence, len(kept.marks), found)
		}
	}
}
