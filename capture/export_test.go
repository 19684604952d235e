package capture

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"looptape/replay"
)

// TestExportTo: an export up to an offset is the export of a pane that has come
// no further.
func TestExportTo(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	st := newStore(t)
	for round := range 20 {
		whole := newTape(t, st, 1000*round, 12, 4)
		var gaps []int // ends of the stream before each gap
		for range 3 {
			whole.write(randomStream(r, 1+r.IntN(8)))
			if r.IntN(2) == 0 {
				gaps = append(gaps, len(whole.stream))
				whole.gap(1 + r.IntN(30))
			}
		}
		for to := range len(whole.stream) + 2 {
			end := min(to, len(whole.stream))
			short := newTape(t, st, 1000*round+1+to, 12, 4)
			at := 0
			for _, gap := range append(gaps, len(whole.stream)) {
				if gap = min(gap, end); gap > at {
					short.write(whole.stream[at:gap])
				}
				if at = max(at, gap); at < end {
					lost := min(whole.lost[uint64(at)], end-at)
					short.gap(lost)
					at += lost
				}
			}
			for _, format := range []string{"raw", "text"} {
				offset := uint64(to)
				got, result := exported(t, whole, ExportRequest{Format: format, To: &offset})
				want, wanted := exported(t, short, ExportRequest{Format: format})
				if got != want || *result != *wanted || result.Offset != uint64(end) {
					t.Fatalf("round %d, %s to %d:\n%q %+v, not\n%q %+v", round, format, to, got, result, want, wanted)
				}
			}
		}
	}
}

// exported is an export, and what it said of itself before it began.
func exported(t *testing.T, p *tape, q ExportRequest) (string, *ExportResult) {
	t.Helper()
	var b bytes.Buffer
	var from, to uint64
	q.Begin = func(f, e uint64) error {
		if from, to = f, e; b.Len() > 0 {
			t.Error("Begin comes late")
		}
		return nil
	}
	result, err := Export(t.Context(), p, q, &b)
	if err != nil {
		t.Fatal(err)
	}
	if from != result.From || to != result.Offset {
		t.Errorf("it begins with [%d, %d), and ends with %+v", from, to, result)
	}
	return b.String(), result
}

// TestExportBegin: an error of Begin ends the export before it began.
func TestExportBegin(t *testing.T) {
	p := newTape(t, newStore(t), 1, 12, 4)
	p.write([]byte("hello"))
	enough := errors.New("enough")
	var b bytes.Buffer
	if _, err := Export(t.Context(), p, ExportRequest{Begin: func(_, _ uint64) error { return enough }}, &b); !errors.Is(err, enough) || b.Len() > 0 {
		t.Errorf("%v, %q", err, b.String())
	}
}

// TestExportRange: raw has exactly the bytes of the range that were recorded, and a
// recording of it ends with the screen that the pane showed there.
func TestExportRange(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 2))
	st := newStore(t)
	for round := range 40 {
		p := newTape(t, st, round, 12, 4)
		p.term = replay.New(12, 4, 0) // a resize of the player brings back no history
		p.checkpoint()
		recorded := []bool{}
		for range 1 + r.IntN(6) {
			p.write(randomStream(r, 1+r.IntN(8)))
			if recorded = append(recorded, trues(len(p.stream)-len(recorded))...); r.IntN(3) == 0 {
				p.lose(randomStream(r, 1+r.IntN(8)))
				recorded = append(recorded, make([]bool, len(p.stream)-len(recorded))...)
			}
		}
		for range 30 {
			from := r.Uint64N(uint64(len(p.stream)) + 1)
			to := from + r.Uint64N(uint64(len(p.stream))-from+1)
			var want []byte
			for i := from; i < to; i++ {
				if recorded[i] {
					want = append(want, p.stream[i])
				}
			}
			got, result := exported(t, p, ExportRequest{Format: "raw", From: &from, To: &to})
			if got != string(want) || result.From != from || result.Offset != to || result.MissedBytes != to-from-uint64(len(want)) {
				t.Fatalf("round %d, [%d, %d): %q %+v, not %q", round, from, to, got, result, want)
			}
			if p.gapAt(from) || p.gapAt(to) {
				continue
			}
			live, err := replay.HydrateAt(p.log, to)
			if err != nil {
				t.Fatal(err)
			}
			cast, _ := exported(t, p, ExportRequest{Format: "asciicast", From: &from, To: &to})
			played := play(t, []byte(cast), 0)
			played.Feed([]byte("\x18"))
			if live.Feed([]byte("\x18")); shown(played) != shown(live) {
				t.Fatalf("round %d, [%d, %d) shows\n%slive\n%s", round, from, to, shown(played), shown(live))
			}
		}
	}
}

func trues(n int) []bool {
	all := make([]bool, n)
	for i := range all {
		all[i] = true
	}
	return all
}

// TestExportRangeErrors: what cannot be a range is refused.
func TestExportRangeErrors(t *testing.T) {
	p := newTape(t, newStore(t), 1, 12, 4)
	p.write([]byte("hello"))
	offset := func(n uint64) *uint64 { return &n }
	text := func(s string) *string { return &s }
	last := -1
	for _, c := range []struct {
		q    ExportRequest
		code string
	}{
		{ExportRequest{From: offset(6)}, "not_found.offset"},
		{ExportRequest{From: offset(3), To: offset(2)}, "invalid_params.export"},
		{ExportRequest{From: offset(3), FromTime: text("-5m")}, "invalid_params.export"},
		{ExportRequest{To: offset(3), ToTime: text("-5m")}, "invalid_params.export"},
		{ExportRequest{ToTime: text("5m")}, "invalid_params.time"},
		{ExportRequest{Nth: &last}, "not_found.command"},
		{ExportRequest{Nth: &last, To: offset(3)}, "invalid_params.export"},
		{ExportRequest{From: offset(5), To: offset(9)}, ""},
	} {
		var b bytes.Buffer
		_, err := Export(t.Context(), p, c.q, &b)
		var e *Error
		if errors.As(err, &e); c.code == "" && (err != nil || b.Len() > 0) || c.code != "" && (e == nil || e.Code != c.code) {
			t.Errorf("%+v: %v, %q", c.q, err, b.String())
		}
	}
}
