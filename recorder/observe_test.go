package recorder

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// witness collects observations.
type witness struct {
	mu   sync.Mutex
	seen []Observation
}

func (w *witness) see(o Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, o)
}

// all returns what was seen of some kinds, in order; of all without any.
func (w *witness) all(kinds ...ObservationKind) (list []Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.seen {
		if len(kinds) == 0 || slices.Contains(kinds, o.Kind) {
			list = append(list, o)
		}
	}
	return list
}

// recordWith is record with a witness.
func recordWith(t *testing.T, argv ...string) (*Pane, *witness) {
	t.Helper()
	st, err := store.Open(t.TempDir(), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	log, err := st.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	p, err := Start(t.Context(), log, Config{Argv: argv, Env: os.Environ(), Cols: 80, Rows: 24, Scrollback: 1000, Logger: slog.New(slog.DiscardHandler), Observe: w.see})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		st.Close()
		p.child.hangUp(0)
	})
	return p, w
}

// TestObserve: what a program says and does, in its order, each at the offset
// behind it.
func TestObserve(t *testing.T) {
	pieces := []struct {
		text string
		want Observation // Kind 0: nothing is observed
	}{
		{"hello", Observation{}},
		{"\a", Observation{Kind: Bell}},
		{"\033]2;a title\a", Observation{Kind: TitleChanged, Text: "a title"}},
		{"\033[1m", Observation{}},
		{"\033]7;file://host/tmp\033\\", Observation{Kind: CwdChanged, Text: "file://host/tmp"}},
		{"\033]133;A\a", Observation{Kind: PromptStart}},
		{"$ ", Observation{}},
		{"\033]133;B\a", Observation{Kind: CommandStart}},
		{"false", Observation{}},
		{"\033]133;C\a", Observation{Kind: OutputStart}},
		{"\033]133;D;1\a", Observation{Kind: CommandEnd, Text: "1"}},
		{"\033]9;a notice\a", Observation{}},
		{"\a", Observation{Kind: Bell}},
	}
	program, offset := "", uint64(0)
	var want []Observation
	for _, p := range pieces {
		program += p.text
		offset += uint64(len(p.text))
		if p.want.Kind != 0 {
			p.want.Offset, p.want.Count = offset, 1
			want = append(want, p.want)
		}
	}
	began := time.Now()
	p, w := recordWith(t, "sh", "-c", `printf %s "$1"; read x; exit 3`, "sh", program)
	if err := p.Await(t.Context(), offset-1); err != nil {
		t.Fatal(err)
	}
	size, err := p.Resize(t.Context(), 100, 30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(t.Context(), []byte("\n")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end", p.Stopped())
	want = append(want,
		Observation{Kind: Resized, Offset: offset, Count: 1, Cols: 100, Rows: 30, Epoch: size.Epoch},
		Observation{Kind: Exited, Offset: offset + 2, Count: 1, Exit: replay.Exit{Number: 3}}, // CR LF is echoed
		Observation{Kind: Closed, Offset: offset + 2, Count: 1})
	got := w.all()
	for i := range got {
		if at := got[i].Time; at.Before(began.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("observed at %v", at)
		}
		got[i].Time = time.Time{}
	}
	if !slices.Equal(got, want) {
		t.Errorf("observed\n%+v, want\n%+v", got, want)
	}
}

// TestObserveFlood: of a million bells and of 100,000 titles few observations are
// made; their counts add up to what was written, and the last is the last.
func TestObserveFlood(t *testing.T) {
	for _, c := range []struct {
		kind  ObservationKind
		n     int
		size  uint64 // of the stream
		last  string
		shell string
	}{
		{Bell, 1000000, 1000000, "", `head -c 1000000 /dev/zero | tr '\0' '\a'`},
		{TitleChanged, 100000, 100000 * 11, "099999", `awk 'BEGIN { for (i = 0; i < 100000; i++) printf "\033]2;%06d\a", i }'`},
		{CommandEnd, 100000, 100000 * 11, "99", `awk 'BEGIN { for (i = 0; i < 100000; i++) printf "\033]133;D;%02d\a", i % 100 }'`},
	} {
		p, w := recordWith(t, "sh", "-c", c.shell)
		waitFor(t, "the end", p.Stopped())
		got := w.all(c.kind)
		total := 0
		for _, o := range got {
			total += o.Count
		}
		last := got[len(got)-1]
		if total != c.n || last.Offset != c.size || last.Text != c.last {
			t.Errorf("kind %d: %d of %d are counted, the last %+v", c.kind, total, c.n, last)
		}
		took := last.Time.Sub(got[0].Time)
		if most := watchBurst + 2 + int(took/watchPause); len(got) > most {
			t.Errorf("kind %d: %d observations in %v, more than %d", c.kind, len(got), took, most)
		}
	}
}

// TestWatch: what is told of a flood at given times, and that the order is that of
// the stream.
func TestWatch(t *testing.T) {
	var got []string
	w := watch{tell: func(o Observation) { got = append(got, fmt.Sprint(o.Kind, " ", o.Offset, " ", o.Count, " ", o.Text)) }}
	offset := uint64(0)
	say := func(kind replay.EventKind, text string) {
		offset++
		w.event(replay.Event{Kind: kind, Offset: offset, Text: text})
	}
	told := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: told %q, want %q", what, got, want)
		}
		got = nil
	}
	w.at.Mono = int64(time.Hour)
	for range watchBurst {
		say(replay.Bell, "")
	}
	if len(got) != watchBurst || w.due != nil {
		t.Errorf("a burst: %q", got)
	}
	got = nil
	say(replay.Bell, "")
	say(replay.Bell, "")
	told("behind the burst")
	if w.due == nil {
		t.Error("what is held is not due")
	}
	say(replay.TitleChanged, "x")
	told("another kind", "1 66 2 ", "2 67 1 x")
	say(replay.Bell, "")
	w.observe(Observation{Kind: Exited, Offset: offset}, w.at)
	told("the end of a program", "1 68 1 ", "9 68 1 ")

	// Twelve seconds later a whole burst is allowed again, and no more than that.
	w.at.Mono += int64(12 * time.Second)
	for range watchBurst + 10 {
		say(replay.Bell, "")
	}
	if len(got) != watchBurst {
		t.Errorf("the next burst: %d", len(got))
	}
	got = nil
	w.release(w.at.Mono)
	told("what was held", "1 142 10 ")
}

// BenchmarkObserve compares feeding a flood with and without a listener, by the
// fastest of many short pieces each.
func BenchmarkObserve(b *testing.B) {
	for name, piece := range map[string]string{"bells": "\a", "titles": "\033]2;t\a", "marks": "\033]133;D;0\a"} {
		b.Run(name, func(b *testing.B) {
			flood := []byte(strings.Repeat(piece, leastBatch/len(piece)))
			deaf, hearing := replay.New(80, 24, 1000), replay.New(80, 24, 1000)
			w := watch{tell: func(Observation) {}}
			hearing.SetEventSink(w.event)
			without, with := time.Hour, time.Hour
			for b.Loop() {
				began := time.Now()
				deaf.Feed(flood)
				between := time.Now()
				w.at = store.Time{Mono: between.UnixNano()}
				hearing.Feed(flood)
				without, with = min(without, between.Sub(began)), min(with, time.Since(between))
			}
			b.ReportMetric(float64(with-without)/float64(len(flood)/len(piece)), "ns/event")
			b.ReportMetric(float64(with)/float64(without), "times")
		})
	}
}
