package capture

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// logLines is n bytes of lines as a build prints them.
func logLines(n int) []byte {
	var b []byte
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "2026-11-30T12:%02d:%02d.%03d INFO  server[%d]: request %d took %d us, status 200\r\n", i/60%60, i%60, i%1000, i%7, i, i*7919%10000)
	}
	return b
}

// BenchmarkSearch prints the stream scanned in MB/s, for a pattern with a required
// text and for one without, and beside them what reading the log alone takes.
func BenchmarkSearch(b *testing.B) {
	st, err := store.Open(b.TempDir(), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	log, err := st.Create(0)
	if err != nil {
		b.Fatal(err)
	}
	p := &tape{log: log, term: replay.New(120, 40, 10000)}
	const size = 64 << 20
	lines := logLines(1 << 20)
	log.AppendCheckpoint(checkpoint.Encode(nil, p.term.State()), true)
	for i := 0; i < size; i += len(lines) {
		for k := 0; k < len(lines); k += 64 << 10 {
			piece := lines[k:min(len(lines), k+64<<10)]
			log.Append(store.Output, store.Time{}, piece)
			p.term.Feed(piece)
		}
		if i>>20%12 == 11 {
			log.AppendCheckpoint(checkpoint.Encode(nil, p.term.State()), true)
		}
		if err := log.Sync(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("read", func(b *testing.B) {
		for range b.N {
			r, err := log.ReadOffset(0)
			for err == nil {
				_, err = r.Next()
			}
			r.Close()
		}
		b.SetBytes(size)
	})
	for name, pattern := range map[string]string{"literal": "status 500", "required": `status 5\d\d`, "free": `[4-5]\d\d$`} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				q := SearchRequest{Pane: "p0", Pattern: pattern, Limit: 1000}
				for more := true; more; {
					r, err := Search(b.Context(), p, q, time.Now)
					if err != nil {
						b.Fatal(err)
					}
					q.Cursor, more = &r.Cursor, r.More
				}
			}
			b.SetBytes(size)
		})
	}
}
