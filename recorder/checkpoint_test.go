package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// tape is a log with its Terminal and its checkpoints, as a loop keeps them, but
// without a program.
type tape struct {
	log  *store.Log
	term *replay.Terminal
	schedule
	full, delta           int // checkpoints
	fullBytes, deltaBytes int // their size before compression
}

func openStore(tb testing.TB, dir string) *store.Store {
	tb.Helper()
	st, err := store.Open(dir, store.Options{Logger: slog.New(slog.DiscardHandler), Ballast: -1})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

// newTape begins a tape; a nil log keeps no frames.
func newTape(log *store.Log, d distance, cols, rows, scrollback int) *tape {
	p := &tape{log: log, term: replay.New(cols, rows, scrollback), schedule: schedule{distance: d}}
	p.checkpoint()
	return p
}

func (p *tape) checkpoint() { p.put(p.schedule.full(p.term), true) }

func (p *tape) put(blob []byte, full bool) {
	if full {
		p.full++
		p.fullBytes += len(blob)
	} else {
		p.delta++
		p.deltaBytes += len(blob)
	}
	if p.log != nil {
		p.log.AppendCheckpoint(blob, full)
	}
}

// add appends a frame and what checkpoint comes of it.
func (p *tape) add(tb testing.TB, kind store.Kind, data []byte) {
	tb.Helper()
	if p.log != nil {
		p.log.Append(kind, store.Time{}, data)
	}
	if err := replay.Apply(p.term, store.Frame{Kind: kind, Data: data}); err != nil {
		tb.Fatal(err)
	}
	p.term.TakeReplies()
	if blob, full, ok := p.next(p.term); ok {
		p.put(blob, full)
	}
}

// babble is a piece of random output: text that scrolls in mostly, and now and
// then what changes rows, screens and epochs.
func babble(r *rand.Rand, rows int) []byte {
	var b []byte
	for range 1 + r.IntN(6) {
		switch r.IntN(24) {
		case 0:
			b = append(b, "\x1b[?1049h"...)
		case 1:
			b = append(b, "\x1b[?1049l"...)
		case 2:
			b = append(b, pick(r, "\x1b[2J", "\x1b[J", "\x1b[1J", "\x1b[K", "\x1b[H\x1b[2K")...)
		case 3:
			b = append(b, pick(r, "\x1b[3J", "\x1bc", "\x1b[!p", "\x1b[H\x1b[2J\x1b[3J")...)
		case 4:
			b = fmt.Appendf(b, "\x1b[%dS", 1+r.IntN(rows))
		case 5:
			b = fmt.Appendf(b, "\x1b[%d;%dr", 1+r.IntN(rows), 1+r.IntN(rows))
		case 6:
			b = append(b, pick(r, "\x1b[r", "\x1b7", "\x1b8", "\x1b[H", "\x1bM", "\x1b[5;1H")...)
		case 7:
			b = fmt.Appendf(b, "\x1b]8;;http://x.example/%d\a%s\x1b]8;;\a", r.IntN(5), word(r, 9))
		case 8:
			b = fmt.Appendf(b, "\x1b[3%dm\x1b[48;5;%dm", r.IntN(8), r.IntN(256))
		case 9:
			b = append(b, pick(r, "\x1b[m", "\x1b[", "\x1b]0;half", "\xe6\xbc", "e\u0301")...)
		case 10: // one long line, open at the end
			b = append(b, word(r, 1+r.IntN(400))...)
		default:
			for range r.IntN(8) {
				b = append(b, word(r, r.IntN(60))...)
				b = append(b, pick(r, "\r\n", "\r\n", "\r\n", "漢字\r\n", "\n")...)
			}
		}
	}
	return b
}

func pick(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

func word(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "etaoin shrdlu 0123456789"[r.IntN(24)]
	}
	return string(b)
}

// differences shows where a Terminal is not in the encoded state want.
func differences(tb testing.TB, got *replay.Terminal, want []byte) string {
	state, err := checkpoint.Decode(want)
	if err != nil {
		tb.Fatal(err)
	}
	a, _ := json.Marshal(got.State())
	b, _ := json.Marshal(state)
	g, w := string(a), string(b)
	n := 0
	for n < min(len(g), len(w)) && g[n] == w[n] {
		n++
	}
	from := max(0, n-200)
	return fmt.Sprintf("got  ...%.400s\nwant ...%.400s", g[from:], w[from:])
}

// TestHydrateAnywhere: the Terminal at every position of a log, hydrated through
// the checkpoints that the schedule put there, is the Terminal that was fed from
// the start, to the bit, for several distances.
func TestHydrateAnywhere(t *testing.T) {
	st := openStore(t, t.TempDir())
	defer st.Close()
	streams := uint64(60)
	if testing.Short() {
		streams = 15
	}
	var full, delta int
	for seed := range streams {
		for i, d := range []distance{
			{400, 1, 3000, 1, 9000, 12000},
			{2000, 1, 8000, 2, 24000, 64000},
			{1000, 4, 1 << 40, 1, 1 << 40, 1 << 40}, // one span
			{1, 1, 2, 1, 6, 1 << 40},                // a checkpoint behind each frame
			{2000, 16, 3000, 1000, 100, 64000},      // large states
		} {
			log, err := st.Create(seed*5 + uint64(i) + 1)
			if err != nil {
				t.Fatal(err)
			}
			f, n := hydrateAnywhere(t, log, d, seed)
			full, delta = full+f, delta+n
			if err := st.Remove(log.Pane()); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d full checkpoints, %d others", full, delta)
	if full < int(streams) || delta < 10*int(streams) {
		t.Errorf("%d full checkpoints and %d others of %d streams: the test tests nothing", full, delta, streams)
	}
}

// hydrateAnywhere records a random stream, hydrates it at every position, and
// returns how many checkpoints there were.
func hydrateAnywhere(t *testing.T, log *store.Log, d distance, seed uint64) (full, delta int) {
	r := rand.New(rand.NewPCG(seed, 11))
	p := newTape(log, d, 5+r.IntN(60), 1+r.IntN(12), r.IntN(120))
	calm := r.IntN(2) == 0 // long without a new epoch
	at := []store.Pos{log.End()}
	want := [][]byte{checkpoint.Encode(nil, p.term.State())}
	for range 120 {
		switch n := r.IntN(60); {
		case n == 0 && !calm:
			p.add(t, replay.MarkResize, replay.AppendResize(nil, 5+r.IntN(60), 1+r.IntN(12)))
		case n == 1:
			p.add(t, replay.MarkRestart, replay.AppendRestart(nil, uint32(r.IntN(3))))
		case n == 2:
			p.add(t, replay.MarkRespawn, nil)
		case n == 3:
			p.add(t, replay.MarkExit, replay.AppendExit(nil, replay.Exit{}))
		case n == 4 && log.End().Seq > 0: // of a disk: the Terminal goes on meanwhile
			lost := babble(r, p.term.Bounds().Rows)
			p.term.Feed(lost)
			log.AppendGap(store.Time{}, uint64(len(lost)), nil)
			p.checkpoint()
		default:
			text := babble(r, p.term.Bounds().Rows)
			for calm && (bytes.Contains(text, []byte("\x1b[3J")) || bytes.Contains(text, []byte("\x1bc")) || bytes.Contains(text, []byte("049"))) {
				text = babble(r, p.term.Bounds().Rows)
			}
			p.add(t, store.Output, text)
		}
		at, want = append(at, log.End()), append(want, checkpoint.Encode(nil, p.term.State()))
	}
	for i := range at {
		got, err := replay.Hydrate(log, at[i])
		if err != nil {
			t.Fatalf("seed %d, distances %v, at %v: %v", seed, d, at[i], err)
		}
		if !bytes.Equal(checkpoint.Encode(nil, got.State()), want[i]) {
			t.Fatalf("seed %d, distances %v, at %v: another state\n%s", seed, d, at[i], differences(t, got, want[i]))
		}
	}
	return p.full, p.delta
}

// TestHydrateAt: the state at an offset is that behind the bytes before it and the
// marks at it, up to a Restart or a Respawn; inside a gap there is none.
func TestHydrateAt(t *testing.T) {
	st := openStore(t, t.TempDir())
	defer st.Close()
	log, err := st.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	p := newTape(log, distance{1, 1, 2, 1, 6, 1 << 40}, 20, 3, 10)
	want := map[uint64]string{}
	note := func() { want[p.term.Offset()] = string(checkpoint.Encode(nil, p.term.State())) }
	note()
	whole := func(text string) { // its last bytes one at a time into the Terminal
		ref, _ := checkpoint.Decode(checkpoint.Encode(nil, p.term.State()))
		step, err := replay.Restore(ref)
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(text) {
			step.Feed([]byte(text[i : i+1]))
			want[step.Offset()] = string(checkpoint.Encode(nil, step.State()))
		}
		p.add(t, store.Output, []byte(text))
	}
	whole("one\r\ntwo\r\n漢\x1b[?1049h")
	p.add(t, replay.MarkResize, replay.AppendResize(nil, 30, 4))
	note()
	whole("full screen")
	p.add(t, replay.MarkExit, replay.AppendExit(nil, replay.Exit{}))
	p.add(t, replay.MarkClosed, nil)
	p.checkpoint()
	p.add(t, replay.MarkRestart, replay.AppendRestart(nil, 0))
	p.add(t, replay.MarkRespawn, nil)
	p.add(t, replay.MarkResize, replay.AppendResize(nil, 10, 4)) // not there any more
	whole("again\r\n")
	gap := p.term.Offset()
	p.term.Feed([]byte("lost"))
	log.AppendGap(store.Time{}, 4, nil)
	p.checkpoint()
	note()
	whole("end")

	for offset := range log.End().Offset + 1 {
		got, err := replay.HydrateAt(log, offset)
		if offset > gap && offset < gap+4 {
			var in *replay.GapError
			if !errors.As(err, &in) || in.From != gap || in.To != gap+4 {
				t.Errorf("offset %d in the gap: %v", offset, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("offset %d: %v", offset, err)
		}
		if state := string(checkpoint.Encode(nil, got.State())); state != want[offset] {
			t.Errorf("offset %d: another state\n%s", offset, differences(t, got, []byte(want[offset])))
		}
	}
	if _, err := replay.HydrateAt(log, log.End().Offset+1); !errors.Is(err, replay.ErrBeyond) {
		t.Errorf("beyond the end: %v", err)
	}
}

// TestLargestCheckpoint: no checkpoint is larger than a log takes. One of a part is left
// out then; a whole state has as many of the newest rows as fit.
func TestLargestCheckpoint(t *testing.T) {
	const largest = 64 << 10
	st := openStore(t, t.TempDir())
	defer st.Close()
	log, err := st.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	p := newTape(log, distances, 80, 24, 10000)
	p.largest = largest
	cut := 0
	check := func() {
		t.Helper()
		if len(p.blob) > largest {
			t.Fatalf("a checkpoint of %d bytes", len(p.blob))
		}
	}
	for n := 0; n < 40000; {
		var b []byte
		for range 100 {
			b = fmt.Appendf(b, "line %050d\r\n", n)
			n++
		}
		p.add(t, store.Output, b)
		if n%5000 != 0 {
			continue
		}
		p.checkpoint()
		check()
		got, err := replay.Hydrate(log, log.End())
		if err != nil {
			t.Fatal(err)
		}
		bounds := got.Bounds()
		if live := p.term.Bounds(); bounds.End != live.End || bounds.Active != live.Active {
			t.Fatalf("rows up to %d, want %d", bounds.End, live.End)
		}
		if bounds.Oldest > bounds.Active-100 {
			t.Fatalf("%d rows of history", bounds.Active-bounds.Oldest)
		}
		for r := range got.Rows(bounds.Oldest, bounds.End-1) {
			if want := fmt.Sprintf("line %050d", r.Number); string(bytes.TrimRight(r.Text, " ")) != want {
				t.Fatalf("row %d is %q, want %q", r.Number, r.Text, want)
			}
		}
		if p.leftOut {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no whole state was too large")
	}

	// A screen that changes all over takes more than a part may.
	p = newTape(nil, distances, 400, 100, 100)
	p.largest = 20 << 10
	before := p.delta
	for i := range 300 {
		p.add(t, store.Output, bytes.Repeat([]byte{byte('a' + i%26)}, 400*100))
	}
	if p.delta != before {
		t.Errorf("%d checkpoints of a part, want none", p.delta-before)
	}
}
