package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRecordOverDamage: a table that is damaged, which no compaction can read, stops
// nobody who writes: neither soon nor later.
func TestRecordOverDamage(t *testing.T) {
	mem, _ := seqStore(t)
	for name, size := range tables(t, mem) {
		for _, part := range []float64{0, 0.5, 0.99} {
			t.Run(fmt.Sprint(mem.PathBase(name), "/", part), func(t *testing.T) {
				logger, block := newStuckLog(t)
				s := mustOpen(t, "s", Options{
					FS: flipped(t, mem, name, int(part*float64(size))), MemTable: 256 << 10,
					Logger: logger, Pace: -1,
				})
				defer s.Close()
				block() // nor does it if nobody reads what it says of that
				rng := rand.New(rand.NewPCG(6, 6))
				var logs []*Log
				var want [][]byte
				for pane := uint64(10); pane < 13; pane++ {
					l, err := s.Create(pane)
					if err != nil {
						t.Fatal(err)
					}
					l.AppendCheckpoint([]byte("full"), true)
					logs, want = append(logs, l), append(want, nil)
				}
				for round := range 40 { // each pane a memtable's worth every few rounds
					for i, l := range logs {
						data := make([]byte, 100<<10)
						for k := range data {
							data[k] = byte(rng.Uint32())
						}
						l.Append(Output, Time{int64(round), int64(round)}, data)
						want[i] = append(want[i], data...)
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						err := l.Sync(ctx)
						cancel()
						if err != nil {
							t.Fatalf("round %d: %v\n%s", round, err, s.db.Metrics())
						}
					}
				}
				for i, l := range logs {
					if got, damage := readPast(t, l, want[i]); got != len(want[i]) || damage > 0 {
						t.Errorf("pane %d: %d of %d bytes, %d damaged", l.Pane(), got, len(want[i]), damage)
					}
				}
			})
		}
	}
}
