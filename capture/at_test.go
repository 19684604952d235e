package capture

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// event is a frame that a test recorded: bytes, or a mark, at a second of its own.
type event struct {
	f      store.Frame
	second int64
}

// seconds is that time.
func seconds(n int64) time.Time { return time.Unix(1_700_000_000+n, 0).UTC() }

// record appends a frame to the log and to the Terminal, with the time of a clock
// that is a second later each time.
func (p *tape) record(events []event, kind store.Kind, data []byte) []event {
	e := event{store.Frame{Kind: kind, Data: data}, int64(len(events)) + 1}
	e.f.Time = store.Time{Wall: seconds(e.second).UnixNano()}
	p.log.Append(kind, e.f.Time, data)
	if err := replay.Apply(p.term, e.f); err != nil {
		p.t.Fatal(err)
	}
	if kind == store.Output {
		p.stream = append(p.stream, data...)
	}
	return append(events, e)
}

// randomTape records output, resizes and a checkpoint now and then, and at last the
// end of the recording, as a stop of the daemon leaves it.
func randomTape(t *testing.T, st *store.Store, r *rand.Rand, pane int) (*tape, []event) {
	p := newTape(t, st, pane, 20, 5)
	var events []event
	for range 5 + r.IntN(20) {
		switch r.IntN(6) {
		case 0:
			events = p.record(events, replay.MarkResize, replay.AppendResize(nil, 1+r.IntN(40), 1+r.IntN(10)))
		case 1:
			p.checkpoint()
		case 2:
			events = p.record(events, store.Output, []byte("\x1b[?1049h\x1b[2Jalt"))
		default:
			events = p.record(events, store.Output, randomStream(r, 1+r.IntN(6)))
		}
	}
	if r.IntN(2) == 0 {
		p.checkpoint()
		events = p.record(events, replay.MarkRestart, replay.AppendRestart(nil, 0))
		p.closed = true
	}
	return p, events
}

// from is a Terminal that was fed from the start: the first offset bytes, and the
// marks up to there for which include is true.
func from(events []event, offset uint64, include func(event) bool) *replay.Terminal {
	term := replay.New(20, 5, 100)
	at := uint64(0)
	for _, e := range events {
		f := e.f
		if at > offset || !include(e) || f.Kind == replay.MarkRestart {
			break
		}
		if f.Kind == store.Output {
			at += uint64(len(f.Data))
			f.Data = f.Data[:uint64(len(f.Data))-(at-min(at, offset))]
		}
		if err := replay.Apply(term, f); err != nil {
			panic(err)
		}
	}
	return term
}

// TestAtEveryFrame: the screen at each offset of a recording, frame borders and
// places inside frames, is that of a Terminal fed from the start; and so is the
// screen at each moment, just before and just behind each frame.
func TestAtEveryFrame(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	st := newStore(t)
	now := func() time.Time { return seconds(1000) }
	all := func(event) bool { return true }
	for round := range 60 {
		p, events := randomTape(t, st, r, round)
		check := func(q AtRequest, want *replay.Terminal, when time.Time) {
			t.Helper()
			q.Pane, q.Started = "p3", seconds(0)
			got, err := At(t.Context(), p, q, now)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if s := Screen(want, "p3"); !reflect.DeepEqual(&got.ScreenResult, s) || !got.Time.Equal(when) {
				t.Fatalf("round %d: at %v:\n%+v of %v, not\n%+v of %v", round, q.Offset, got.ScreenResult, got.Time, s, when)
			}
		}
		at := uint64(0)
		for i := 0; i <= len(events); i++ {
			// By time: a moment behind frame i, in RFC 3339 and as how long ago.
			moment := seconds(int64(i)).Add(time.Millisecond)
			kept := from(events, uint64(len(p.stream)), func(e event) bool { return e.second <= int64(i) })
			for _, text := range []string{moment.Format(time.RFC3339Nano), moment.Sub(now()).String()} {
				check(AtRequest{Time: &text}, kept, seconds(int64(i)))
			}
			if i == len(events) {
				break
			}
			if n := len(events[i].f.Data); events[i].f.Kind == store.Output && n > 0 {
				for _, inside := range []uint64{at, at + uint64(r.IntN(n)), at + uint64(n)} {
					check(AtRequest{Offset: &inside}, from(events, inside, all), lastBefore(events, inside))
				}
				at += uint64(n)
			}
		}
	}
}

// lastBefore is when the last frame was recorded that begins in front of an offset,
// or stands at it as a mark.
func lastBefore(events []event, offset uint64) time.Time {
	last, at := seconds(0), uint64(0)
	for _, e := range events {
		if at > offset || at == offset && e.f.Kind != replay.MarkResize {
			break
		}
		last = seconds(e.second)
		if e.f.Kind == store.Output {
			at += uint64(len(e.f.Data))
		}
	}
	return last
}

// TestAtNowhere: a place that there is no screen for is an error that says why.
func TestAtNowhere(t *testing.T) {
	st := newStore(t)
	p := newTape(t, st, 0, 20, 5)
	p.write([]byte("one"))
	p.gap(10)
	p.write([]byte("two"))
	number := func(n uint64) *uint64 { return &n }
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		q    AtRequest
		code string
	}{
		{AtRequest{}, "invalid_params.at"},
		{AtRequest{Offset: number(1), Time: text("-1s")}, "invalid_params.at"},
		{AtRequest{Time: text("yesterday")}, "invalid_params.time"},
		{AtRequest{Time: text("30s")}, "invalid_params.time"},
		{AtRequest{Offset: number(3)}, ""}, // where a gap begins there is a screen
		{AtRequest{Offset: number(4)}, "not_found.gap"},
		{AtRequest{Offset: number(12)}, "not_found.gap"},
		{AtRequest{Offset: number(13)}, ""}, // and where it ends
		{AtRequest{Offset: number(16)}, ""},
		{AtRequest{Offset: number(17)}, "not_found.offset"},
		{AtRequest{Time: text("1969-12-31T23:59:59Z")}, "not_found.time"},
	} {
		c.q.Started = time.Unix(0, 0)
		_, err := At(t.Context(), p, c.q, time.Now)
		var e *Error
		if errors.As(err, &e); err == nil && c.code != "" || e == nil && err != nil || e != nil && e.Code != c.code {
			t.Errorf("%+v: %v, not %s", c.q, err, c.code)
		}
	}
	p.term.Feed(make([]byte, 5)) // the pane goes on, the log does not
	var e *Error
	if _, err := At(t.Context(), p, AtRequest{Offset: number(18)}, time.Now); !errors.As(err, &e) || e.Code != "not_found.gap" {
		t.Errorf("inside a gap that is open: %v", err)
	}
}

// TestParseTime: moments as people write them, and none that leave the zone or the
// direction open.
func TestParseTime(t *testing.T) {
	now := time.Date(2026, 12, 1, 2, 40, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-11-30T12:00:00Z":             "2026-11-30T12:00:00Z",
		"2026-11-30 12:00:00Z":             "2026-11-30T12:00:00Z",
		"2026-11-30T12:00:00.25+05:45":     "2026-11-30T06:15:00.25Z",
		"2026-11-30 12:00:00.25+05:45":     "2026-11-30T06:15:00.25Z",
		"-0s":                              "2026-12-01T02:40:00Z",
		"-1h30m":                           "2026-12-01T01:10:00Z",
		"-1d":                              "2026-11-30T02:40:00Z",
		"-0d":                              "2026-12-01T02:40:00Z",
		"-1.5d":                            "2026-11-29T14:40:00Z",
		"-2d12h30m":                        "2026-11-28T14:10:00Z",
		"2026-11-30 12:00:00":              "",
		"2026-11-30T12:00:00":              "",
		"1d":                               "",
		"d":                                "",
		"-d":                               "",
		"--1d":                             "",
		"-1d-1h":                           "",
		"-1d1d":                            "",
		"-1h1d":                            "",
		"-99999999999d":                    "",
		"-20000d2000000h":                  "",
		"-9999999999999999999999999999999": "",
		"30s":                              "",
		"yesterday":                        "",
	} {
		got, err := ParseTime(text, now)
		shown := ""
		if err == nil {
			shown = got.UTC().Format(time.RFC3339Nano)
		}
		if shown != want {
			t.Errorf("%s is %q, not %q (%v)", text, shown, want, err)
		}
	}
}

// TestFarTimes: a moment that 64 bits of ns do not hold is before or behind all that
// was recorded, for every reader.
func TestFarTimes(t *testing.T) {
	p := newTape(t, newStore(t), 0, 20, 5)
	p.log.Append(store.Output, store.Time{Wall: seconds(0).UnixNano()}, []byte("some text"))
	now := func() time.Time { return seconds(10) }
	for text, behind := range map[string]bool{
		"0000-01-01T00:00:00Z": false, "1600-01-01T00:00:00Z": false, "1677-09-21T00:12:43Z": false, "1677-09-22T00:00:00Z": false,
		"2262-04-11T00:00:00Z": true, "2262-04-11T23:47:17Z": true, "2300-01-01T00:00:00Z": true, "9999-12-31T23:59:59Z": true,
	} {
		found, want := 0, 0
		r, err := Search(t.Context(), p, SearchRequest{Pattern: "text", Limit: 1, ToTime: &text}, now)
		if behind {
			want = 1
		}
		if err == nil {
			found = len(r.Matches)
		}
		if err != nil || found != want {
			t.Errorf("a search up to %s finds %d lines, not %d (%v)", text, found, want, err)
		}
		if _, err := At(t.Context(), p, AtRequest{Time: &text, Started: seconds(0)}, now); (err == nil) != behind {
			t.Errorf("the screen at %s: %v", text, err)
		}
		want *= len("some text")
		got, _ := exported(t, p, ExportRequest{Format: "raw", ToTime: &text, Now: now()})
		if len(got) != want {
			t.Errorf("an export up to %s is %q", text, got)
		}
	}
}
