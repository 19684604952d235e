package capture

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
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
