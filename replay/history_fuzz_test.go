package replay_test

import (
	"math/rand/v2"
	"testing"

	"looptape/replay"
)

// FuzzHistory: within one epoch, as seed 000, section 3 has it, the bounds never
// decrease, and a row that has left the screen does not change; screen and size
// are the epoch's. Resizes and what else rewrites rows come in between.
func FuzzHistory(f *testing.F) {
	seeds(f, func(in []byte, cols, rows uint16) { f.Add(in, cols, rows, uint64(len(in))) })
	f.Add([]byte("1\r\n2\r\n3\r\ne\r\n\u0301x\x1b[3b\x1bM\x1bM\u0301\x1b[2J"), uint16(4), uint16(2), uint64(1))
	f.Fuzz(func(t *testing.T, in []byte, cols, rows uint16, seed uint64) {
		c, r := fuzzSize(cols, rows)
		if c*r > 4000 { // every row is read at every cut
			c, r = min(c, 200), min(r, 20)
		}
		term := replay.New(c, r, fuzzScrollback)
		random := rand.New(rand.NewPCG(seed, 2))
		var before replay.Bounds
		history := map[uint64]string{}
		for len(in) > 0 {
			n := 1 + random.IntN(min(len(in), 64))
			switch random.IntN(40) {
			case 0:
				term.Resize(1+random.IntN(2*c), 1+random.IntN(2*r))
			case 1:
				term.Resize(c, r)
			case 2:
				term.Gap(1)
			case 3:
				term.Respawn()
			default:
				term.Feed(in[:n])
				in = in[n:]
			}
			now := term.Bounds()
			if now.Epoch != before.Epoch {
				if now.Epoch < before.Epoch {
					t.Fatalf("epoch %d behind %d", now.Epoch, before.Epoch)
				}
				clear(history)
			} else if now.Oldest < before.Oldest || now.End < before.End || now.Screen != before.Screen || now.Cols != before.Cols || now.Rows != before.Rows {
				t.Fatalf("in one epoch %+v, then %+v", before, now)
			}
			for row := range term.Rows(now.Oldest, now.Active) {
				if was, seen := history[row.Number]; seen && was != string(row.Text) {
					t.Fatalf("row %d of the history was %q and is %q (%+v)", row.Number, was, row.Text, now)
				}
				history[row.Number] = string(row.Text)
			}
			before = now
		}
	})
}
