package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"looptape/replay"
	"looptape/store"
)

// AtRequest names a place in the stream of a pane: exactly one of Offset and Time.
type AtRequest struct {
	Pane   string  `json:"pane"`
	Offset *uint64 `json:"offset"`
	Time   *string `json:"time"` // see ParseTime

	Started time.Time `json:"-"` // when the pane was made
	Slots   Slots     `json:"-"`
}

// AtResult is the screen at a place (contract.md, section 5). Time is when the
// last frame in front of it was recorded, or when the pane was made.
type AtResult struct {
	ScreenResult
	Time time.Time `json:"time"`
}

// At returns the screen as it was at a place in the stream: the last that the
// program showed there, its alternate screen included. now is the clock that
// relative times count from.
//
// The errors, beside those of the log: invalid_params.at, invalid_params.time,
// not_found.offset for a place outside [oldest, end], not_found.time for one
// before the first frame that is kept, and not_found.gap for one inside a gap.
func At(ctx context.Context, p Pane, q AtRequest, now func() time.Time) (*AtResult, error) {
	if (q.Offset == nil) == (q.Time == nil) {
		return nil, &Error{"invalid_params.at", "exactly one of offset and time is needed", nil}
	}
	var t *replay.Terminal
	var last store.Frame
	err := q.Slots.hold(ctx, func(context.Context) (err error) {
		if q.Time != nil {
			t, last, err = q.atTime(p.Log(), now())
		} else {
			t, last, err = q.atOffset(p.Log(), *q.Offset)
		}
		return err
	})
	if q.Offset != nil {
		err = noScreen(ctx, p, *q.Offset, err)
	}
	if err != nil {
		return nil, err
	}
	return &AtResult{*Screen(t, q.Pane), wallTime(last)}, nil
}

func wallTime(f store.Frame) time.Time { return time.Unix(0, f.Time.Wall).UTC() }

// atOffset returns the Terminal at an offset, and the last frame in front of it.
func (q *AtRequest) atOffset(log *store.Log, offset uint64) (t *replay.Terminal, last store.Frame, err error) {
	t, err = replay.HydrateAt(log, offset)
	if err == nil {
		last, err = q.frameBefore(log, offset, func(f store.Frame) bool {
			return f.Offset >= offset && (f.End().Offset > offset || f.Kind == replay.MarkRestart || f.Kind == replay.MarkRespawn)
		})
	}
	return t, last, err
}

// noScreen is the error for an offset where there is no screen, by that of atOffset.
func noScreen(ctx context.Context, p Pane, offset uint64, err error) error {
	var gap *replay.GapError
	switch {
	case errors.As(err, &gap):
		return gapError(offset, gap.From, gap.To)
	case errors.Is(err, store.ErrEvicted):
		return outsideLog(p, offset, "evicted", "is no longer retained", p.Log().End().Offset)
	case errors.Is(err, replay.ErrBeyond):
		return beyond(ctx, p, offset)
	}
	return err
}

// atTime returns the Terminal at a moment, and the last frame that was recorded by
// then. What is no longer recorded is seen as its program left it: without the
// Restart mark, which puts its alternate screen away.
func (q *AtRequest) atTime(log *store.Log, now time.Time) (t *replay.Terminal, last store.Frame, err error) {
	when, err := ParseTime(*q.Time, now)
	if err != nil {
		return nil, last, err
	}
	at, err := log.PosAt(nanoseconds(when))
	if err == nil {
		last, err = q.frameBefore(log, at.Offset, func(f store.Frame) bool { return !f.Pos.Before(at) })
	}
	if err != nil {
		return nil, last, err
	}
	if first := wallTime(last); first.After(when) {
		return nil, last, &Error{"not_found.time", "nothing that was recorded by then is retained: the oldest is of " + first.Format(time.RFC3339Nano), struct {
			Oldest time.Time `json:"oldest"`
		}{first}}
	}
	if last.Kind == replay.MarkRestart {
		at = last.Pos
	}
	t, err = replay.Hydrate(log, at)
	return t, last, err
}

// beyond is the error for an offset behind the end of the log: inside a gap that
// is still open, if the pane has got that far.
func beyond(ctx context.Context, p Pane, offset uint64) error {
	from, end := p.Log().End().Offset, uint64(0)
	if err := p.View(ctx, func(t *replay.Terminal, _ bool) { end = t.Offset() }); err != nil {
		return err
	}
	if offset <= end {
		return gapError(offset, from, end)
	}
	return outsideLog(p, offset, "future", "does not exist yet", end)
}

func outsideLog(p Pane, offset uint64, reason, why string, end uint64) error {
	return &Error{"not_found.offset", fmt.Sprintf("offset %d %s", offset, why), struct {
		Reason string `json:"reason"`
		Oldest uint64 `json:"oldest"`
		End    uint64 `json:"end"`
	}{reason, p.Log().Oldest(), end}}
}

func gapError(offset, from, to uint64) error {
	return &Error{"not_found.gap", fmt.Sprintf("nobody knows the screen at offset %d: the bytes from %d to %d were not recorded", offset, from, to), struct {
		From uint64 `json:"from"`
		To   uint64 `json:"to"`
	}{from, to}}
}

// frameBefore returns the last frame that begins in front of a place near offset,
// without its data. In front of the first of the stream there is the making of the
// pane; where older ones were evicted, the first that is left stands for them.
func (q *AtRequest) frameBefore(log *store.Log, offset uint64, behind func(store.Frame) bool) (last store.Frame, err error) {
	oldest := log.Oldest()
	if oldest == 0 {
		last.Time.Wall = nanoseconds(q.Started)
	}
	r, err := log.ReadOffset(max(oldest, max(offset, 1)-1))
	if err != nil {
		return last, err
	}
	defer r.Close()
	for known := oldest == 0; ; known = true {
		f, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && known && behind(f) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last, last.Data = f, nil
	}
}

// nanoseconds is a moment in ns since the Unix epoch; one before 1677 or behind 2262
// is the first or the last that 64 bits hold.
func nanoseconds(t time.Time) int64 {
	const second = 1_000_000_000
	if s := t.Unix(); s < math.MinInt64/second {
		return math.MinInt64
	} else if s >= math.MaxInt64/second {
		return math.MaxInt64
	}
	return t.UnixNano()
}

// ParseTime reads a moment: RFC 3339, with a space for its T or not, or how long ago
// it was, as -30s, -1h30m or -1d12h, where a day has 24 hours. Its error is
// invalid_params.time.
func ParseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if d, ok := parseAgo(text); ok {
		return now.Add(d), nil
	}
	why := "is no time"
	for _, layout := range []string{"2006-01-02T15:04:05", time.DateTime} {
		if _, err := time.Parse(layout, text); err == nil {
			why = "lacks its zone, such as Z or +01:00"
		}
	}
	return time.Time{}, &Error{"invalid_params.time", fmt.Sprintf("%q %s: give a time such as 2026-11-30T12:00:00Z, or how long ago, such as -30s or -1d", text, why), struct {
		Param string `json:"param"`
	}{"time"}}
}

// parseAgo reads a duration of at most 0 that may begin with days.
func parseAgo(text string) (time.Duration, bool) {
	const most = 1 << 62 // of each part, so that their sum is in range
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		d, err := time.ParseDuration(text)
		return d, err == nil && d <= 0
	}
	number, behind := strings.CutPrefix(days, "-")
	ago, err := time.ParseDuration(days + "h")
	if err != nil || !behind || strings.Trim(number, "0123456789.") != "" || -ago > most/24 {
		return 0, false
	}
	if ago *= 24; rest == "" {
		return ago, true
	}
	d, err := time.ParseDuration("-" + rest)
	return ago + d, err == nil && d <= 0 && -d <= most
}
