package capture

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"syscall"
	"testing"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// benchTape is a pane of n bytes of lines as a build prints them; styled says that a
// word in each is coloured.
func benchTape(b *testing.B, n int, styled bool) *tape {
	b.Helper()
	st, err := store.Open(b.TempDir(), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	log, err := st.Create(0)
	if err != nil {
		b.Fatal(err)
	}
	p := &tape{log: log, term: replay.New(120, 40, 10000)}
	lines := logLines(1 << 20)
	if styled {
		lines = bytes.ReplaceAll(lines, []byte("INFO"), []byte("\x1b[1;32mINFO\x1b[0m"))
	}
	log.AppendCheckpoint(checkpoint.Encode(nil, p.term.State()), true)
	for i := 0; i < n; i += len(lines) {
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
	return p
}

// BenchmarkExport prints the stream exported in MB/s, and of-read: the share of what
// reading the log alone makes of it, in the same run. cpu-MB/s are by the processor's
// time, which a busy machine does not change much; peak-MB is the most of the heap
// that was in use, above what was at the beginning.
func BenchmarkExport(b *testing.B) {
	const size = 64 << 20
	for _, styled := range []bool{false, true} {
		p := benchTape(b, size, styled)
		start := time.Now()
		r, err := p.log.ReadOffset(0)
		for err == nil {
			_, err = r.Next()
		}
		r.Close()
		read := time.Since(start)
		for _, format := range []string{"raw", "text", "ansi", "html", "asciicast"} {
			b.Run(fmt.Sprintf("styled=%v/%s", styled, format), func(b *testing.B) {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				spent := cpuTime()
				begin, peak, next := m.HeapInuse, m.HeapInuse, uint64(0)
				for range b.N {
					q := ExportRequest{Pane: "p0", Format: format, Progress: func(offset uint64) {
						if offset >= next {
							runtime.ReadMemStats(&m)
							peak, next = max(peak, m.HeapInuse), offset+8<<20
						}
					}}
					if _, err := Export(b.Context(), p, q, io.Discard); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(size)
				b.ReportMetric(read.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "of-read")
				b.ReportMetric(float64(size*b.N)/1e6/(cpuTime()-spent).Seconds(), "cpu-MB/s")
				b.ReportMetric(float64(peak-begin)/1e6, "peak-MB")
			})
		}
	}
}

// cpuTime is how long the process has had a processor.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
