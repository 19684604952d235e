package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// logLines is what a build prints: about n bytes.
func logLines(n int) []byte {
	rng := rand.New(rand.NewPCG(7, 7))
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "2026-03-%02d 12:%02d:%02d.%03d INFO  [worker-%d] request id=%08x path=/api/v1/items/%d status=%d took %dms\r\n",
			i/86400%28+1, i/60%60, i%60, rng.IntN(1000), rng.IntN(8), rng.Uint32(), rng.IntN(5000), 200+rng.IntN(3)*100, rng.IntN(400))
	}
	return b.Bytes()
}

// tuiFrames is what a full-screen monitor paints: about n bytes.
func tuiFrames(n int) []byte {
	rng := rand.New(rand.NewPCG(8, 8))
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString("\x1b[H")
		for row := range 40 {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[38;5;%dm%6d user%-4d %5.1f%% %8dK \x1b[7m%-20s\x1b[0m\x1b[K", row+1, 16+rng.IntN(200), 1000+row*7, row%5, float64(rng.IntN(1000))/10, rng.IntN(900000), []string{"postgres", "node server.js", "go build ./...", "vim"}[row%4])
		}
	}
	return b.Bytes()
}

// BenchmarkAppend records 64 MiB in reads of 4095 bytes until it is durable,
// and writes the same to a bare file with an fsync at the end; ratio is the
// store's speed in that of the file, disk is bytes on disk per stream byte.
func BenchmarkAppend(b *testing.B) {
	for _, in := range []struct {
		name string
		data []byte
	}{{"log", logLines(64 << 20)}, {"tui", tuiFrames(64 << 20)}} {
		b.Run(in.name, func(b *testing.B) {
			b.SetBytes(int64(len(in.data)))
			var mine, bare time.Duration
			var disk float64
			for range b.N {
				dir := b.TempDir()
				start := time.Now()
				s := mustOpen(b, filepath.Join(dir, "s"), Options{})
				l, err := s.Create(1)
				if err != nil {
					b.Fatal(err)
				}
				l.AppendCheckpoint(nil, true)
				for d := in.data; len(d) > 0; {
					n := min(4095, len(d))
					for l.Room() <= 0 {
						<-l.RoomC()
					}
					l.Append(Output, Time{int64(len(d)), int64(len(d))}, d[:n])
					d = d[n:]
				}
				mustSync(b, l)
				mine += time.Since(start)
				if err := s.db.Flush(); err != nil {
					b.Fatal(err)
				}
				m := s.db.Metrics()
				disk = float64(m.Total().TablesSize) / float64(len(in.data))
				mustClose(b, s)

				start = time.Now()
				f, err := os.Create(filepath.Join(dir, "bare"))
				if err != nil {
					b.Fatal(err)
				}
				for d := in.data; len(d) > 0; {
					n := min(4095, len(d))
					if _, err := f.Write(d[:n]); err != nil {
						b.Fatal(err)
					}
					d = d[n:]
				}
				if err := errors.Join(f.Sync(), f.Close()); err != nil {
					b.Fatal(err)
				}
				bare += time.Since(start)
			}
			b.ReportMetric(bare.Seconds()/mine.Seconds(), "ratio")
			b.ReportMetric(disk, "disk/byte")
		})
	}
}

// BenchmarkSyncEvery appends lines one by one, each durable before the next, with
// a sync for each and with syncs put off; ratio is the time of the first in that of
// the second.
func BenchmarkSyncEvery(b *testing.B) {
	const lines = 2000
	appending := func(every time.Duration) time.Duration {
		s := mustOpen(b, filepath.Join(b.TempDir(), "s"), Options{SyncEvery: every, Pace: -1})
		defer mustClose(b, s)
		l, err := s.Create(1)
		if err != nil {
			b.Fatal(err)
		}
		l.AppendCheckpoint(nil, true)
		mustCommit(b, l)
		line := logLines(1)
		start := time.Now()
		for i := range int64(lines) {
			l.Append(Output, Time{i, i}, line)
			mustCommit(b, l)
		}
		return time.Since(start)
	}
	var always, interval time.Duration
	for range b.N {
		always += appending(0)
		interval += appending(time.Second)
	}
	b.ReportMetric(always.Seconds()/interval.Seconds(), "ratio")
	b.ReportMetric(float64(interval.Microseconds())/float64(b.N)/lines, "µs/line")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRead reads a long log through, in MB/s.
func BenchmarkRead(b *testing.B) {
	s, l := longLog(b, 64<<20)
	defer mustClose(b, s)
	b.SetBytes(64 << 20)
	for b.Loop() {
		r, err := l.Read(Pos{})
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := r.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func longLog(b *testing.B, size int) (*Store, *Log) {
	b.Helper()
	s := mustOpen(b, filepath.Join(b.TempDir(), "s"), Options{})
	l, err := s.Create(1)
	if err != nil {
		b.Fatal(err)
	}
	data := logLines(1 << 20)
	for i := 0; i < size; i += len(data) {
		if i%(16<<20) == 0 {
			l.AppendCheckpoint(data[:100<<10], true)
		}
		for d := data; len(d) > 0; d = d[min(4095, len(d)):] {
			for l.Room() <= 0 {
				<-l.RoomC()
			}
			l.Append(Output, Time{}, d[:min(4095, len(d))])
		}
	}
	mustSync(b, l)
	return s, l
}

// BenchmarkOpen opens a store and a log, of 4 MiB and of 256 MiB.
func BenchmarkOpen(b *testing.B) {
	for _, mib := range []int{4, 256} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			s, _ := longLog(b, mib<<20)
			mustClose(b, s)
			for b.Loop() {
				s = mustOpen(b, s.dir, Options{})
				l, err := s.Log(1)
				if err != nil || l.End().Offset < uint64(mib)<<20 {
					b.Fatal(err)
				}
				b.StopTimer()
				mustClose(b, s)
				b.StartTimer()
			}
		})
	}
}

// BenchmarkAppendOnly is the cost of Append itself for the PTY's loop.
func BenchmarkAppendOnly(b *testing.B) {
	s := mustOpen(b, "s", Options{FS: MemFS(), InFlight: 64 << 20})
	defer mustClose(b, s)
	l, err := s.Create(1)
	if err != nil {
		b.Fatal(err)
	}
	l.AppendCheckpoint(nil, true)
	data := logLines(4095)[:4095]
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if l.Room() <= 0 {
			b.StopTimer()
			mustSync(b, l)
			b.StartTimer()
		}
		l.Append(Output, Time{}, data)
	}
}
