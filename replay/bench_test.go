package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"looptape/replay"
)

// A workload is a kind of output to measure feeding with.
type workload struct {
	name string
	make func(r *rand.Rand, cols, rows int) []byte // a piece of the stream
}

var workloads = []workload{
	{"plain", plainLine},
	{"coloured", colouredLine},
	{"short", func(r *rand.Rand, _, _ int) []byte { return []byte(asciiWord(r, 1+r.IntN(8)) + "\r\n") }},
	{"cjk", cjkLine},
	{"tui", redraw},
}

func asciiWord(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// plainLine is a line of a log or a listing, 20 to 100 columns long.
func plainLine(r *rand.Rand, _, _ int) []byte {
	var b []byte
	for n := 20 + r.IntN(80); len(b) < n; {
		b = append(append(b, asciiWord(r, 1+r.IntN(10))...), ' ')
	}
	return append(b, "\r\n"...)
}

// colouredLine is a line such as ls --color, grep or a test runner writes.
func colouredLine(r *rand.Rand, _, _ int) []byte {
	var b []byte
	for range 3 + r.IntN(4) {
		b = fmt.Appendf(b, "\x1b[%d;3%dm%s\x1b[0m  %s ", r.IntN(2), r.IntN(8), asciiWord(r, 3+r.IntN(10)), asciiWord(r, r.IntN(8)))
	}
	return append(b, "\r\n"...)
}

// cjkLine is a line of 10 to 50 Han characters and kana.
func cjkLine(r *rand.Rand, _, _ int) []byte {
	var b strings.Builder
	for range 10 + r.IntN(40) {
		if r.IntN(3) == 0 {
			b.WriteRune('あ' + rune(r.IntN(80)))
		} else {
			b.WriteRune('一' + rune(r.IntN(20000)))
		}
	}
	return []byte(b.String() + "\r\n")
}

// redraw is one frame of a full-screen program: every row addressed, two or
// three styles a row, the rest erased.
func redraw(r *rand.Rand, cols, rows int) []byte {
	b := []byte("\x1b[?25l\x1b[H")
	for y := range rows {
		b = fmt.Appendf(b, "\x1b[%d;1H", y+1)
		for used := 0; used < cols*3/4; {
			w := asciiWord(r, 3+r.IntN(12))
			b = fmt.Appendf(b, "\x1b[3%dm%s\x1b[39m ", r.IntN(8), w)
			used += len(w) + 1
		}
		b = append(b, "\x1b[K"...)
	}
	return append(b, "\x1b[?25h"...)
}

// stream of a workload, about n bytes.
func (w *workload) stream(n, cols, rows int) []byte {
	r := rand.New(rand.NewPCG(1, seedOf(w.name)))
	var b []byte
	for len(b) < n {
		b = append(b, w.make(r, cols, rows)...)
	}
	return b
}

// BenchmarkFeed feeds the same bytes to the terminal, to x/ansi's bare Parser
// (the yardstick: what it costs to look at the bytes at all) and to x/vt's
// emulator, by turns within one run, so that a noisy machine slows all three.
// It prints medians: MB/s of each, and the terminal's and x/vt's speed as a
// multiple of the bare Parser's.
func BenchmarkFeed(b *testing.B) {
	for i := range workloads {
		w := &workloads[i]
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			in := w.stream(1<<20, size[0], size[1])
			for _, batch := range []int{256 << 10, 4 << 10} {
				b.Run(fmt.Sprintf("%s/%dx%d/%dKiB", w.name, size[0], size[1], batch>>10), func(b *testing.B) {
					benchFeed(b, in, size[0], size[1], batch)
				})
			}
		}
	}
}

func benchFeed(b *testing.B, in []byte, cols, rows, batch int) {
	term := replay.New(cols, rows, scrollback)
	term.SetLineSink(nil)
	parser := ansi.NewParser()
	emulator := vt.NewEmulator(cols, rows)
	go io.Copy(io.Discard, emulator) // ends with the emulator's pipe
	defer emulator.InputPipe().(io.Closer).Close()
	few := in[:16<<10] // x/vt takes a second for what the others do in 5 ms

	ours := func(p []byte) {
		for q := range slices.Chunk(p, batch) {
			term.Feed(q)
		}
		term.TakeReplies()
	}
	speed := func(p []byte, f func([]byte)) float64 {
		start := time.Now()
		f(p)
		return float64(len(p)) / 1e6 / time.Since(start).Seconds()
	}
	for range 4 {
		ours(in) // The history is full: the steady state is measured.
	}
	var term1, parser1, xvt1, ratio []float64
	for b.Loop() {
		p := speed(in, parser.Parse)
		o := speed(in, ours)
		p2 := speed(in, parser.Parse)
		if len(xvt1) < 3 {
			xvt1 = append(xvt1, speed(few, func(p []byte) { emulator.Write(p) }))
		}
		p = (p + p2) / 2
		term1, parser1, ratio = append(term1, o), append(parser1, p), append(ratio, o/p)
	}
	b.ReportMetric(median(term1), "MB/s")
	b.ReportMetric(median(parser1), "parser-MB/s")
	b.ReportMetric(median(xvt1), "xvt-MB/s")
	b.ReportMetric(median(ratio), "x-parser")
	b.ReportMetric(median(xvt1)/median(parser1), "xvt-x-parser")
	b.ReportMetric(0, "ns/op")
}

func median(s []float64) float64 {
	slices.Sort(s)
	return s[len(s)/2]
}

// BenchmarkRows reads the text of 10,000 rows of 250 columns into one buffer,
// as pane.capture_rows does.
func BenchmarkRows(b *testing.B) {
	for _, kind := range []string{"plain", "coloured", "cjk"} {
		b.Run(kind, func(b *testing.B) {
			i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == kind })
			term := replay.New(250, 50, scrollback)
			term.Feed(workloads[i].stream(4<<20, 250, 50))
			bounds := term.Bounds()
			buf := make([]byte, 0, 16<<20)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				buf, n = appendRows(buf[:0], term, bounds.End-10000, bounds.End)
			}
			b.ReportMetric(float64(n), "rows")
			b.SetBytes(int64(len(buf)))
		})
	}
}

func appendRows(buf []byte, t *replay.Terminal, start, end uint64) ([]byte, int) {
	n := 0
	for r := range t.Rows(start, end) {
		buf = append(append(buf, r.Text...), '\n')
		n++
	}
	return buf, n
}

// TestRowsAllocations: reading rows makes no garbage by row or cell.
func TestRowsAllocations(t *testing.T) {
	term := replay.New(250, 50, scrollback)
	term.Feed(bytes.Repeat([]byte("some text \x1b[31mwith colour\x1b[m and 漢字\r\n"), 10100))
	b := term.Bounds()
	buf := make([]byte, 0, 16<<20)
	rows := 0
	allocs := testing.AllocsPerRun(3, func() { buf, rows = appendRows(buf[:0], term, b.End-10000, b.End) })
	if rows != 10000 {
		t.Fatalf("%d rows", rows)
	}
	if allocs > 50 {
		t.Errorf("%v allocations for 10,000 rows of 250 columns", allocs)
	}
}
