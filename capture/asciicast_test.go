package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// castEvent is an event line of an asciicast, with the time as v3 has it.
type castEvent struct {
	interval   float64
	code, data string
}

// readCast reads a recording as the formats' descriptions say.
func readCast(t *testing.T, b []byte) (cols, rows int, events []castEvent) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(b, []byte{'\n'}), []byte{'\n'})
	var header struct {
		Version, Width, Height int
		Term                   struct{ Cols, Rows int }
	}
	if err := json.Unmarshal(lines[0], &header); err != nil || header.Version != 2 && header.Version != 3 {
		t.Fatalf("header %s: %v", lines[0], err)
	}
	before := 0.0
	for _, l := range lines[1:] {
		if !utf8.Valid(l) {
			t.Fatalf("event %q", l)
		}
		var e castEvent
		if err := json.Unmarshal(l, &[]any{&e.interval, &e.code, &e.data}); err != nil {
			t.Fatalf("event %s: %v", l, err)
		}
		if header.Version == 2 {
			e.interval, before = e.interval-before, e.interval
		}
		events = append(events, e)
	}
	if header.Version == 2 {
		return header.Width, header.Height, events
	}
	return header.Term.Cols, header.Term.Rows, events
}

// play does what a player does with a recording.
func play(t *testing.T, b []byte, scrollback int) *replay.Terminal {
	t.Helper()
	cols, rows, events := readCast(t, b)
	term := replay.New(cols, rows, scrollback)
	for _, e := range events {
		switch e.code {
		case "o":
			term.Feed([]byte(e.data))
		case "r":
			if _, err := fmt.Sscanf(e.data, "%dx%d", &cols, &rows); err != nil {
				t.Fatalf("size %q", e.data)
			}
			term.Resize(cols, rows)
		}
	}
	return term
}

// shown is what a person sees of a terminal.
func shown(t *replay.Terminal) string {
	var b strings.Builder
	bounds := t.Bounds()
	fmt.Fprintf(&b, "%s %dx%d %+v\n", bounds.Screen, bounds.Cols, bounds.Rows, t.Cursor())
	for r := range t.Rows(bounds.Active, bounds.End) {
		fmt.Fprintf(&b, "%q %v\n", r.Text, r.Wrapped)
	}
	return b.String()
}

// castPieces are what a stream is made of besides the pieces of the filter's tests.
var castPieces = []string{
	"0123456789 and so on, longer than a row", "漢字漢字漢字", "\r\n", "\r\n", "\x1b[H", "\x1b[2;3r", "\x1b[r", "\x1b[5;5H", "\x1b[44m", "\x1b[m",
	"\x1b[K", "\x1b[M", "\x1b[L", "\x1b[4h", "\x1b[4l", "\x1b(0lqk\x1b(B", "\x1b[?1049l", "\x1b[?1049h", "\x1b8", "e\u0301", "\u0301", "\x1b[3b",
	"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf0\x9f\x98", "\xc3\xa9",
}

// castFrames are the frames of a stream, cut everywhere, with the marks of kinds.
func castFrames(r *rand.Rand, n int, kinds ...store.Kind) []store.Frame {
	var stream []byte
	for range n {
		if all := len(pieces) + len(castPieces); r.IntN(all) < len(pieces) {
			stream = append(stream, pieces[r.IntN(len(pieces))]...)
		} else {
			stream = append(stream, castPieces[r.IntN(len(castPieces))]...)
		}
	}
	var frames []store.Frame
	mono := int64(1e9)
	for len(stream) > 0 {
		mono += r.Int64N(2e9)
		f := store.Frame{Kind: store.Output, Time: store.Time{Mono: mono, Wall: mono}}
		if len(kinds) > 0 && r.IntN(12) == 0 {
			switch f.Kind = kinds[r.IntN(len(kinds))]; f.Kind {
			case store.Gap:
				f.Lost = 1 + r.Uint64N(100)
			case replay.MarkResize:
				f.Data = replay.AppendResize(nil, 2+r.IntN(40), 1+r.IntN(10))
			case replay.MarkRestart:
				f.Data = replay.AppendRestart(nil, 0)
			case replay.MarkExit:
				f.Data = replay.AppendExit(nil, replay.Exit{})
			}
		} else {
			k := min(1+r.IntN(12), len(stream))
			if r.IntN(2) == 0 {
				k = 1
			}
			f.Data = stream[:k]
			stream = stream[k:]
		}
		frames = append(frames, f)
	}
	return frames
}

func apply(t *testing.T, term *replay.Terminal, frames []store.Frame) {
	t.Helper()
	for _, f := range frames {
		if err := replay.Apply(term, f); err != nil {
			t.Fatal(err)
		}
	}
}

// cast shows frames to the terminal and hands them on.
func cast(t *testing.T, e *asciicast, term *replay.Terminal, frames []store.Frame) {
	t.Helper()
	for _, f := range frames {
		err := e.before(f)
		apply(t, term, []store.Frame{f})
		if err := errors.Join(err, e.frame(term, f)); err != nil {
			t.Fatal(err)
		}
	}
}

// castOf writes the frames behind the terminal, which is changed.
func castOf(t *testing.T, version int, term *replay.Terminal, frames []store.Frame) []byte {
	t.Helper()
	var b bytes.Buffer
	e := &asciicast{w: &b, version: version}
	err := e.begin(term, frames[0])
	cast(t, e, term, frames)
	if err := errors.Join(err, e.end()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCastPlays: the events of a recording, fed to a fresh terminal, show what the live
// one shows: for streams with invalid UTF-8, cut everywhere, from the beginning and
// from any later frame, with everything that a log has.
func TestCastPlays(t *testing.T) {
	for _, c := range []struct {
		name       string
		scrollback int // what was above the first screen is not in a recording
		late       bool
		kinds      []store.Kind
	}{
		{"from the beginning", 100, false, []store.Kind{replay.MarkResize, replay.MarkExit, store.Gap}},
		{"from later on", 100, true, []store.Kind{store.Gap}},
		{"from later on, all marks", 0, true, []store.Kind{replay.MarkResize, replay.MarkExit, replay.MarkRestart, replay.MarkRespawn, store.Gap}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(600) {
				r := rand.New(rand.NewPCG(seed, 9))
				cols, rows := 2+r.IntN(30), 1+r.IntN(8)
				frames := castFrames(r, 10+r.IntN(60), c.kinds...)
				for frames[len(frames)-1].Kind == replay.MarkRestart { // which is left out there
					frames = frames[:len(frames)-1]
				}
				term := replay.New(cols, rows, c.scrollback)
				if c.late {
					k := r.IntN(len(frames))
					apply(t, term, frames[:k])
					frames = frames[k:]
				}
				live := reopen(t, term)
				apply(t, live, frames)
				live.Feed([]byte("\x18")) // end writes an unfinished character
				cast := castOf(t, 2+int(seed%2), term, frames)
				got := play(t, cast, c.scrollback)
				got.Feed([]byte("\x18"))
				if got, want := shown(got), shown(live); got != want {
					t.Fatalf("seed %d: the recording shows\n%slive\n%s%s", seed, got, want, cast)
				}
			}
		})
	}
}

func reopen(t *testing.T, term *replay.Terminal) *replay.Terminal {
	t.Helper()
	again, err := replay.Restore(term.State())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestCastText: the rule for what is no UTF-8, on frames cut at every byte. The
// right-hand sides are Unicode's (tables 3-8 to 3-11 of version 16).
func TestCastText(t *testing.T) {
	for in, want := range map[string]string{
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41":  strings.Repeat("\ufffd", 8) + "A",
		"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41":  strings.Repeat("\ufffd", 8) + "A",
		"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42":  "\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffdB",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41":  "\ufffd\ufffd\ufffd\ufffdA",
		"caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98": "café 漢 \ufffd",
		"\xe2\x82":                              "\ufffd",
	} {
		for size := 1; size <= len(in); size++ {
			var frames []store.Frame
			for p := range slices.Chunk([]byte(in), size) {
				frames = append(frames, store.Frame{Kind: store.Output, Data: p})
			}
			_, _, events := readCast(t, castOf(t, 3, replay.New(80, 24, 0), frames))
			got := ""
			for _, e := range events {
				got += e.data
			}
			if got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", in, size, got, want)
			}
		}
	}
}

// TestCastTimes: intervals add up to the time of the frames, and a snapshot takes none.
func TestCastTimes(t *testing.T) {
	term := replay.New(20, 4, 0)
	term.Feed([]byte("before"))
	frames := []store.Frame{
		{Kind: store.Output, Time: store.Time{Mono: 5e9}, Data: []byte("a")},
		{Kind: replay.MarkResize, Time: store.Time{Mono: 5_500_000_400}, Data: replay.AppendResize(nil, 10, 3)},
		{Kind: store.Output, Time: store.Time{Mono: 7_000_000_999}, Data: []byte("b")},
		{Kind: replay.MarkExit, Time: store.Time{Mono: 8e9}, Data: replay.AppendExit(nil, replay.Exit{Signaled: true, Number: 9})},
	}
	cast := castOf(t, 3, term, frames)
	cols, rows, events := readCast(t, cast)
	if cols != 20 || rows != 4 {
		t.Errorf("size %dx%d", cols, rows)
	}
	if len(events) == 0 || events[0].interval != 0 || events[0].code != "o" || !strings.Contains(events[0].data, "before") {
		t.Fatalf("events %v", events)
	}
	if label := fmt.Sprintf("looptape: this begins at offset %d of the recording", len("before")); events[1] != (castEvent{0, "m", label}) {
		t.Errorf("behind the snapshot %v", events[1])
	}
	want := []castEvent{{0, "o", "a"}, {0.5, "r", "10x3"}, {1.5, "o", "b"}, {1, "x", "137"}}
	if !slices.Equal(events[2:], want) {
		t.Errorf("events %v, want %v", events[2:], want)
	}
}

// TestCastLines: the lines as the descriptions of both formats have them, with what
// JSON must escape and nothing else; and a restart only where something follows.
func TestCastLines(t *testing.T) {
	at := func(ms int64) store.Time {
		return store.Time{Wall: 1_700_000_000_900_000_000 + ms*1e6, Mono: 77e9 + ms*1e6}
	}
	restart := store.Frame{Kind: replay.MarkRestart, Time: at(3000), Data: replay.AppendRestart(nil, 0)}
	frames := []store.Frame{
		{Kind: store.Output, Time: at(0), Data: []byte("a\"\\<&>\r\n\t\x1b\x7f\u2028\xff")},
		{Kind: replay.MarkResize, Time: at(1000), Data: replay.AppendResize(nil, 10, 3)},
		{Kind: replay.MarkExit, Time: at(2500), Data: replay.AppendExit(nil, replay.Exit{Number: 3})},
		{Kind: replay.MarkClosed, Time: at(2600)},
		restart,
	}
	text := `"a\"\\<&>\r\n\t\u001b\u007f` + "\u2028\ufffd" + `"`
	for version, want := range map[int]string{
		2: `{"version":2,"width":20,"height":4,"timestamp":1700000000,"command":"make 'a b'","title":"A <b>","env":{"TERM":"xterm-256color"}}` + "\n" +
			`[0.000000, "o", ` + text + "]\n" + `[1.000000, "r", "10x3"]` + "\n" + `[2.500000, "m", "looptape: the program exited with status 3"]` + "\n",
		3: `{"version":3,"term":{"cols":20,"rows":4,"type":"xterm-256color"},"timestamp":1700000000,"command":"make 'a b'","title":"A <b>"}` + "\n" +
			`[0.000000, "o", ` + text + "]\n" + `[1.000000, "r", "10x3"]` + "\n" + `[1.500000, "x", "3"]` + "\n",
	} {
		var b bytes.Buffer
		e := &asciicast{w: &b, version: version, header: CastHeader{Command: ShellQuote([]string{"make", "a b"}), Title: "A <b>", Term: "xterm-256color"}}
		term := replay.New(20, 4, 0)
		err := e.begin(term, frames[0])
		cast(t, e, term, frames)
		if err := errors.Join(err, e.end()); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("v%d:\n%swant\n%s", version, b.String(), want)
		}
		b.Reset()
		cast(t, e, term, []store.Frame{{Kind: store.Output, Time: at(4000), Data: []byte("again")}})
		if _, _, events := readCast(t, append([]byte(`{"version":3,"term":{"cols":1,"rows":1}}`+"\n"), b.Bytes()...)); len(events) != 3 ||
			events[0].code != "m" || !strings.HasPrefix(events[0].data, "looptape: the recording ended at offset ") || events[1].code != "o" || events[2].data != "again" {
			t.Errorf("v%d: behind a restart %v", version, events)
		}
	}
}

// onlyLog is a Pane of which a log is all there is.
type onlyLog struct {
	Pane
	log *store.Log
}

func (p onlyLog) Log() *store.Log { return p.log }

func (p onlyLog) Reached(context.Context) uint64 { return p.log.End().Offset }

// TestCastEvicted: the log has lost its beginning; the recording of the rest shows
// what the pane showed.
func TestCastEvicted(t *testing.T) {
	st, err := store.Open(t.TempDir(), store.Options{Logger: slog.New(slog.DiscardHandler), Retain: 4 << 20, EvictPace: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log, err := st.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	live := replay.New(60, 12, 500)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	feed := func(b []byte, mono int64) {
		for log.Room() <= 0 {
			select {
			case <-log.RoomC():
			case <-ctx.Done():
				t.Fatal("the store takes nothing")
			}
		}
		log.Append(store.Output, store.Time{Wall: mono, Mono: mono}, b)
		live.Feed(b)
	}
	for i := 0; i < 300 && log.Oldest() == 0; i++ {
		log.AppendCheckpoint(checkpoint.Encode(nil, live.State()), true)
		feed(bytes.Repeat(fmt.Appendf(nil, "\x1b[3%dmpiece %d, 漢字\r\n", i%8, i), 5000), int64(i+1)*1e9)
		// The screen of later on needs what was written long before.
		feed(fmt.Appendf(nil, "\x1b[?1049h\x1b[2J\x1b[3;9HALTERNATE %d\x1b[2;11r\xe6", i), int64(i+1)*1e9)
		log.AppendCheckpoint(checkpoint.Encode(nil, live.State()), true)
		feed([]byte("\xbc\xa2 and \xff\x1b[5;1H"), int64(i+2)*1e9)
		feed([]byte("\x1b[?1049l\x1b[1mback"), int64(i+2)*1e9)
		if err := log.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if log.Oldest() == 0 {
		t.Fatal("nothing was evicted")
	}
	var b bytes.Buffer
	result, err := Export(ctx, onlyLog{log: log}, ExportRequest{Pane: "p0", Format: "asciicast"}, &b)
	if err != nil {
		t.Fatal(err)
	}
	if result.From == 0 {
		t.Fatalf("the export begins at %d", result.From)
	}
	if got, want := shown(play(t, b.Bytes(), 500)), shown(live); got != want {
		t.Errorf("the recording shows\n%slive\n%s", got, want)
	}
	_, _, events := readCast(t, b.Bytes())
	if events[0].interval != 0 || events[0].code != "o" || events[1].data != fmt.Sprintf("looptape: this begins at offset %d of the recording", result.From) {
		t.Errorf("the first events are %v", events[:2])
	}
}
