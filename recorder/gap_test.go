package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// gapLoop is a loop without a program.
func gapLoop(log *store.Log, cols, rows int) *loop {
	p := &Pane{log: log, child: &child{exit: replay.Exit{Number: 3}}, logger: slog.New(slog.DiscardHandler)}
	l := &loop{pane: p, term: replay.New(cols, rows, 50), schedule: schedule{distance: distance{600, 4, 4000, 1, 12000, 20000}}}
	l.checkpoint()
	return l
}

// encoded is the state of a Terminal.
func encoded(t *replay.Terminal) []byte { return checkpoint.Encode(nil, t.State()) }

// TestGapMarks: what happens while the log takes nothing is in the log afterwards, in
// frames if no byte is missing, else in the checkpoint behind the gap. At whatever
// offset somebody looks, and from whatever checkpoint, there is the live Terminal.
func TestGapMarks(t *testing.T) {
	st := openStore(t, t.TempDir())
	defer st.Close()
	seeds := uint64(200)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		log, err := st.Create(seed)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 3))
		l := gapLoop(log, 5+r.IntN(60), 1+r.IntN(12))
		live := map[uint64][]byte{} // the Terminal at an offset, as it was last
		var marks []store.Kind
		resized := 0 // in the gap, in front of its bytes
		mark := func(kind store.Kind, data []byte) {
			switch {
			case kind == replay.MarkResize && l.gap.open && (l.term.Offset() > l.gap.from || resized == maxOwed):
				// The checkpoint has it.
			case kind == replay.MarkResize:
				resized++
				fallthrough
			default:
				marks = append(marks, kind)
			}
			l.append(kind, data)
		}
		for range 30 {
			switch n := r.IntN(12); {
			case n < 3 && !l.gap.open:
				l.gap = gap{open: true, from: l.term.Offset(), ahead: 1 << 60} // reserved
				resized = 0
			case n < 3:
				from := l.gap.from + 1
				if l.gap.resizes > maxOwed {
					from-- // the last of them are missing too
				}
				for at := from; at < l.term.Offset(); at++ {
					delete(live, at) // nobody knows
				}
				l.closeGap()
			case n < 7 || n == 7 && l.gap.open:
				times := 1
				if seed%8 == 7 && r.IntN(4) == 0 {
					times = maxOwed
				}
				for range times {
					mark(replay.MarkResize, replay.AppendResize(nil, 5+r.IntN(60), 1+r.IntN(12)))
				}
			case n == 8:
				mark(replay.MarkExit, replay.AppendExit(nil, replay.Exit{Number: 3}))
			default:
				l.append(store.Output, babble(r, l.term.Bounds().Rows))
				l.term.TakeReplies()
				if !l.gap.open {
					l.maybeCheckpoint()
				}
			}
			live[l.term.Offset()] = encoded(l.term)
		}
		if l.gap.open {
			continue // what it lacks is known when it closes
		}
		for at, want := range live {
			got, err := replay.HydrateAt(log, at)
			if err != nil {
				t.Fatalf("seed %d, offset %d of %d: %v", seed, at, l.term.Offset(), err)
			}
			if !bytes.Equal(encoded(got), want) {
				t.Fatalf("seed %d, offset %d of %d: another state\n%s", seed, at, l.term.Offset(), differences(t, got, want))
			}
		}
		if got := replayed(t, log, seed); fmt.Sprint(got) != fmt.Sprint(marks) {
			t.Fatalf("seed %d: marks %v, want %v", seed, got, marks)
		}
	}
}

// replayed replays a log as verify does: a checkpoint that stands not behind a gap is
// what comes of the frames before it. It returns the marks.
func replayed(t *testing.T, log *store.Log, seed uint64) (marks []store.Kind) {
	t.Helper()
	r, err := log.Read(store.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var term *replay.Terminal
	gap := false
	for cp, err := range log.Checkpoints(store.Pos{}) {
		if err != nil {
			t.Fatal(err)
		}
		for r.At().Seq < cp.Seq {
			f, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if gap = f.Kind == store.Gap; f.Kind != store.Output && !gap {
				marks = append(marks, f.Kind)
			}
			if err := replay.Apply(term, f); err != nil {
				t.Fatal(err)
			}
			term.TakeReplies()
		}
		here, err := replay.Hydrate(log, cp.Pos)
		if err != nil {
			t.Fatal(err)
		}
		if term != nil && !gap && !bytes.Equal(encoded(term), encoded(here)) {
			t.Fatalf("seed %d: drift at %v\n%s", seed, cp.Pos, differences(t, here, encoded(term)))
		}
		term = here
	}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return marks
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != store.Output && f.Kind != store.Gap {
			marks = append(marks, f.Kind)
		}
	}
}
