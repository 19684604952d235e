package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The same operations under other sizes, levels and paces read back equal to
// what was appended, before and after a restart.
func TestMetamorphic(t *testing.T) {
	options := []Options{
		{},
		{SegmentBytes: 64},
		{SegmentBytes: 1000, Level: 3, Pace: -1},
		{SegmentBytes: 4 << 10, Level: -1, Pace: time.Millisecond},
		{SegmentBytes: 64 << 10, Pace: -1, MemTable: 256 << 10, InFlight: 64 << 10},
		{SegmentBytes: 16 << 20, Level: 4},
	}
	seeds := uint64(3)
	if testing.Short() || raceEnabled {
		seeds = 1
	}
	for seed := range seeds {
		for i, o := range options {
			t.Run(fmt.Sprintf("%d/%d", seed, i), func(t *testing.T) {
				t.Parallel()
				o.FS = MemFS()
				testMetamorphic(t, seed, o)
			})
		}
	}
}

func testMetamorphic(t *testing.T, seed uint64, o Options) {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := mustOpen(t, "s", o)
	models := make([]*model, 3)
	for i := range models {
		models[i] = &model{pane: uint64(i)}
		if _, err := s.Create(uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		for range 250 {
			m := models[rng.IntN(len(models))]
			l, err := s.Log(m.pane)
			if err != nil {
				t.Fatal(err)
			}
			m.step(rng, l, 10000)
			if rng.IntN(50) == 0 {
				mustSync(t, l)
			}
		}
		for _, m := range models {
			l, err := s.Log(m.pane)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.verify(l, 0, true); err != nil {
				t.Fatal(err)
			}
			m.verifySeeks(t, rng, l)
		}
		mustClose(t, s)
		s = mustOpen(t, "s", o)
	}
	mustClose(t, s)
}

// verifySeeks compares seeks by position, offset and time with a search
// through the model.
func (m *model) verifySeeks(t *testing.T, rng *rand.Rand, l *Log) {
	t.Helper()
	if len(m.frames) == 0 {
		return
	}
	moved, err := l.Read(m.frames[0].Pos)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		i := rng.IntN(len(m.frames))
		r, err := l.Read(m.frames[i].Pos)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := r.Next(); err != nil || !sameFrame(f, m.frames[i]) {
			t.Fatalf("Read(%v): %v %v", m.frames[i].Pos, f.Pos, err)
		}
		off := rng.Uint64N(m.end.Offset + 1)
		first, want := len(m.frames), m.end
		for i := range m.frames {
			if f := &m.frames[i]; f.Offset >= off || f.End().Offset > off {
				first, want = i, f.Pos
				break
			}
		}
		if r, err = l.ReadOffset(off); err != nil {
			t.Fatal(err)
		}
		f, err := r.Next()
		if err == nil && f.Pos != want || err != nil && want != m.end {
			t.Fatalf("ReadOffset(%d) = %v %v, want %v", off, f.Pos, err, want)
		}
		// The same from a reader that stands anywhere, and may have the place at hand.
		for range rng.IntN(3) {
			moved.Next()
		}
		if err = moved.SeekOffset(off); err != nil {
			t.Fatal(err)
		}
		for _, want := range m.frames[first:min(first+3, len(m.frames))] {
			if f, err := moved.Next(); err != nil || !sameFrame(f, want) {
				t.Fatalf("SeekOffset(%d): %v %v, want %v", off, f.Pos, err, want.Pos)
			}
		}
		wall := m.frames[i].Time.Wall + rng.Int64N(3) - 1
		wantAt := m.end
		for i := range m.frames {
			if m.frames[i].Time.Wall > wall {
				wantAt = m.frames[i].Pos
				break
			}
		}
		if at, err := l.PosAt(wall); err != nil || at != wantAt {
			t.Fatalf("PosAt(%d) = %v %v, want %v", wall, at, err, wantAt)
		}
	}
}
