package recorder

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// print is a kind of program: piece is some of its output, of any length.
type print struct {
	name       string
	cols, rows int
	size       int // bytes of output to record
	begin      string
	piece      func(r *rand.Rand, b []byte) []byte
}

// fullHistory fills a scrollback of 10,000 rows.
var fullHistory = func() string {
	r := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for range 10100 {
		b = logLine(r, b)
	}
	return string(b)
}()

// prints are what the limits are for, and then what is hostile.
var prints = []print{
	{"log", 80, 24, 24 << 20, "", logLine},
	{"coloured", 80, 24, 24 << 20, "", colouredLine},
	{"cjk", 80, 24, 24 << 20, "", cjkLine},
	{"tui", 80, 24, 24 << 20, fullHistory + "\x1b[?1049h", redraw},
	{"slow-growing", 80, 24, 24 << 20, fullHistory, progress},

	{"clear", 80, 24, 1 << 20, fullHistory, repeated("\x1b[2J")},
	{"clear-full-screens", 80, 24, 4 << 20, fullHistory, func(r *rand.Rand, b []byte) []byte {
		return append(redraw(r, b), "\x1b[2J"...)
	}},
	{"scroll-up", 80, 24, 4 << 20, fullHistory, repeated("\x1b[24S")},
	{"scroll-one", 80, 24, 16 << 20, fullHistory, repeated("\x1b[S")},
	{"scroll-down", 80, 24, 4 << 20, fullHistory, repeated("\x1b[24T")},
	{"index", 80, 24, 16 << 20, fullHistory, repeated("\x1bD")},
	{"lines", 80, 24, 16 << 20, fullHistory, repeated("\n")},
	{"erase-history", 80, 24, 4 << 20, fullHistory, func(r *rand.Rand, b []byte) []byte {
		return append(logLine(r, b), "\x1b[3J"...)
	}},
	{"reset", 80, 24, 4 << 20, fullHistory, repeated("\x1bc")},
	{"alternate", 80, 24, 4 << 20, fullHistory, repeated("x\x1b[?1049h\x1b[?1049l")},
	{"insert", 80, 24, 4 << 20, fullHistory, repeated("\x1b[4hx\x1b[H\x1b[L\x1b[99@\x1b[99P")},
	{"rep", 80, 24, 2 << 20, fullHistory, repeated("x\x1b[65535b")},
	{"align", 80, 24, 2 << 20, fullHistory, repeated("\x1b#8")},
	{"colour-a-cell", 80, 24, 17 << 20, "", func(r *rand.Rand, b []byte) []byte {
		for range 80 {
			b = colours(r, b)
		}
		return append(b, "\r\n"...)
	}},
	{"colour-a-cell-65535x4", 65535, 4, 17 << 20, "", colours},
	{"links", 80, 24, 8 << 20, "", func(r *rand.Rand, b []byte) []byte {
		return fmt.Appendf(b, "\x1b]8;;http://x.example/%d\a%s\x1b]8;;\a\r\n", r.IntN(1e9), word(r, 20))
	}},
	{"clusters", 80, 24, 24 << 20, "", func(r *rand.Rand, b []byte) []byte {
		for range 40 {
			b = fmt.Appendf(b, "%c\u0301\u0323", 'a'+rune(r.IntN(26)))
		}
		return append(b, "\r\n"...)
	}},
	{"short-lines-65535x4", 65535, 4, 24 << 20, "", logLine},
	{"clear-65535x4", 65535, 4, 64 << 10, "", repeated("x\x1b[2J")},
	{"coloured-clear-65535x4", 65535, 4, 16 << 10, "", repeated("\x1b[41m\x1b[2J")},
	{"scroll-65535x4", 65535, 4, 1 << 20, "", repeated("\x1b[4S")},
	{"full-lines-65535x4", 65535, 4, 90 << 20, "", func(r *rand.Rand, b []byte) []byte {
		return append(append(b, word(r, 65535)...), "\r\n"...)
	}},
}

// colours gives each cell a colour of its own.
func colours(r *rand.Rand, b []byte) []byte {
	return fmt.Appendf(b, "\x1b[38;2;%d;%d;%dmx", r.IntN(256), r.IntN(256), r.IntN(256))
}

// logLine is a line such as servers and compilers write.
func logLine(r *rand.Rand, b []byte) []byte {
	b = fmt.Appendf(b, "2026-11-30T%02d:%02d:%02d.%03dZ %s ", r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000), pick(r, "INFO ", "WARN ", "DEBUG", "ERROR"))
	for range 2 + r.IntN(8) {
		b = append(append(b, pick(r, logWords...)...), ' ')
	}
	return fmt.Appendf(b, "id=%x took=%dms\r\n", r.Uint32(), r.IntN(5000))
}

var logWords = strings.Fields(`request served connection from upstream closed reading response header
	while compiling package main test passed failed cache miss hit retry after timeout listening on
	port worker started stopped queue depth commit flushed segment table level compaction done`)

func colouredLine(r *rand.Rand, b []byte) []byte {
	for range 3 + r.IntN(4) {
		b = fmt.Appendf(b, "\x1b[%d;3%dm%s\x1b[0m  %s ", r.IntN(2), r.IntN(8), pick(r, logWords...), word(r, r.IntN(8)))
	}
	return append(b, "\r\n"...)
}

func cjkLine(r *rand.Rand, b []byte) []byte {
	for range 10 + r.IntN(40) {
		if r.IntN(3) == 0 {
			b = fmt.Appendf(b, "%c", 'あ'+rune(r.IntN(80)))
		} else {
			b = fmt.Appendf(b, "%c", '一'+rune(r.IntN(3000)))
		}
	}
	return append(b, "\r\n"...)
}

// redraw is one frame of a full-screen program of 80x24.
func redraw(r *rand.Rand, b []byte) []byte {
	b = append(b, "\x1b[?25l\x1b[H"...)
	for y := range 24 {
		b = fmt.Appendf(b, "\x1b[%d;1H", y+1)
		for range 6 + r.IntN(3) {
			b = fmt.Appendf(b, "\x1b[3%dm%s\x1b[39m ", r.IntN(8), pick(r, logWords...))
		}
		b = append(b, "\x1b[K"...)
	}
	return append(b, "\x1b[?25h"...)
}

// progress is a build that redraws its bars, and says a line now and then.
func progress(r *rand.Rand, b []byte) []byte {
	for i := range 50 {
		for job := range 4 {
			n := (i*7 + job*13) % 50
			b = fmt.Appendf(b, "\r\x1b[2K\x1b[32m job %d \x1b[m[%s%s] %d.%ds %s", job, strings.Repeat("#", n), strings.Repeat("-", 50-n), i, r.IntN(10), pick(r, logWords...))
			b = append(b, pick(r, "\x1b[1B", "\x1b[1A")...)
		}
	}
	return logLine(r, append(b, "\r\x1b[2K"...))
}

func repeated(s string) func(*rand.Rand, []byte) []byte {
	return func(_ *rand.Rand, b []byte) []byte { return append(b, s...) }
}

// stream is all that a print writes.
func (p *print) stream() []byte {
	r := rand.New(rand.NewPCG(7, 7))
	b := []byte(p.begin)
	for size := len(b) + p.size; len(b) < size; {
		b = p.piece(r, b)
	}
	return b
}

// play records a print as a loop does, in frames that shrink with their work.
// It returns the offsets at which a hydration has most to do: those in front of the
// checkpoints, inside the frame before, and the end.
func (p *print) play(tb testing.TB, t *tape, stream []byte) (far []uint64) {
	for batch := batchBytes / 4; len(stream) > 0; {
		n := frameBytes(stream[:min(batch, len(stream))], t.term)
		began, made := time.Now(), t.full+t.delta
		t.add(tb, store.Output, stream[:n])
		stream = stream[n:]
		batch = nextBatch(batch, n, time.Since(began))
		if t.log == nil {
			continue
		}
		if t.full+t.delta > made {
			far = append(far, t.log.End().Offset-1)
		}
		for t.log.Room() <= 0 {
			<-t.log.RoomC()
		}
	}
	if t.log != nil {
		far = append(far, t.log.End().Offset)
	}
	return far
}

// BenchmarkHydrate records what programs print and hydrates it where most is to
// be replayed. It prints the slowest place as a multiple of the time that feeding
// 16 MiB of log lines takes in the same run, and in milliseconds.
func BenchmarkHydrate(b *testing.B) {
	lines := prints[0].stream()
	for i := range prints {
		p := &prints[i]
		b.Run(p.name, func(b *testing.B) {
			st := openStore(b, b.TempDir())
			defer st.Close()
			log, err := st.Create(1)
			if err != nil {
				b.Fatal(err)
			}
			log.SetRetain(1 << 40)
			t := newTape(log, distances, p.cols, p.rows, 10000)
			t.spanBytes = 64 << 20
			far := p.play(b, t, p.stream())
			if err := log.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
			far = far[max(0, len(far)-4):]
			feed, slowest := time.Duration(1<<62), time.Duration(0)
			for b.Loop() {
				feed, slowest = min(feed, feeding(lines)), 0
				for _, at := range far {
					best := time.Duration(1 << 62)
					for range 2 {
						began := time.Now()
						if _, err := replay.HydrateAt(log, at); err != nil {
							b.Fatal(err)
						}
						best = min(best, time.Since(began))
					}
					slowest = max(slowest, best)
				}
				feed = min(feed, feeding(lines))
			}
			b.ReportMetric(slowest.Seconds()/feed.Seconds(), "x-16MiB-lines")
			b.ReportMetric(slowest.Seconds()*1e3, "ms")
			b.ReportMetric(feed.Seconds()*1e3, "ms-lines")
			b.ReportMetric(float64(t.term.Work())/(1<<20)/float64(t.full+t.delta), "MiB-apart")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// feeding is how long 16 MiB of lines take, into a full history.
func feeding(lines []byte) time.Duration {
	t := replay.New(80, 24, 10000)
	t.Feed(lines[:4<<20])
	began := time.Now()
	for at := 4 << 20; at < 20<<20; at += batchBytes {
		t.Feed(lines[at : at+batchBytes])
	}
	return time.Since(began)
}

// share records one span of a print, which begins with a full history, and returns
// what its checkpoints take on disk in proportion to its frames, both as the store
// compresses them.
func (p *print) share(tb testing.TB) float64 {
	st := openStore(tb, tb.TempDir())
	defer st.Close()
	var logs [2]*store.Log // of the frames, of the checkpoints
	for i := range logs {
		log, err := st.Create(uint64(i) + 1)
		if err != nil {
			tb.Fatal(err)
		}
		log.SetRetain(1 << 40)
		logs[i] = log
	}
	written := func(log *store.Log) uint64 {
		if err := log.Sync(context.Background()); err != nil {
			tb.Fatal(err)
		}
		return st.Stats().Written
	}
	r := rand.New(rand.NewPCG(7, 7))
	begin := []byte(p.begin)
	for p.begin == "" && bytes.Count(begin, []byte{'\n'}) < 10100 {
		begin = p.piece(r, begin)
	}
	s := schedule{distance: distances, spanBytes: 64 << 20}
	term := replay.New(p.cols, p.rows, 10000)
	term.Feed(begin)
	logs[0].AppendCheckpoint(nil, true)
	before := written(logs[0])
	blobs := [][]byte{slices.Clone(s.full(term))}
	var b []byte
	for over := false; !over; {
		for b = b[:0]; len(b) < 64<<10; {
			b = p.piece(r, b)
		}
		for logs[0].Room() <= 0 {
			<-logs[0].RoomC()
		}
		logs[0].Append(store.Output, store.Time{}, b)
		term.Feed(b)
		blob, full, ok := s.next(term)
		if over = full; ok && !full {
			blobs = append(blobs, slices.Clone(blob))
		}
	}
	frames := written(logs[0]) - before
	before += frames
	for _, blob := range blobs {
		logs[1].AppendCheckpoint(blob, true)
	}
	checkpoints := written(logs[1]) - before
	tb.Logf("%s: a span of %.1f MiB in %d bytes on disk, with %d checkpoints in %d bytes",
		p.name, float64(term.Offset()-uint64(len(begin)))/(1<<20), frames, len(blobs), checkpoints)
	return float64(checkpoints) / float64(frames)
}

// TestCheckpointShare: checkpoints take at most 15 % of what the log takes.
func TestCheckpointShare(t *testing.T) {
	if testing.Short() {
		t.Skip("records 200 MB")
	}
	for i := range prints {
		switch p := &prints[i]; p.name {
		case "log", "coloured", "cjk", "tui", "slow-growing":
			if share := p.share(t); share > 0.15 {
				t.Errorf("%s: checkpoints take %.1f %% of the log", p.name, share*100)
			}
		}
	}
}
