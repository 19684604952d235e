package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"looptape/checkpoint"
)

// lineParts are what lines for the batch path are made of: first what it takes, then
// what it must leave to the cells.
var lineParts = []string{
	"text", "a longer piece of text with words in it ", "x", "  ", "\t", "\t\t",
	"\x1b[31m", "\x1b[1;38;5;120m", "\x1b[m", "\x1b[0m", "\x1b[38:2::1:2:3m", "\x1b[K", "\x1b[0K",
	"日本語", "漢", "é", "ü", "→", "😀", "한국", "\u2500\u2500\u2500",
	"\r\n", "\r\n", "\r\n", "\r\r\n", "\n",
	"e\u0301", "\u0301", "👩\u200d👩\u200d👧", "☺\ufe0f", "\xff", "\xe6\xbc", "\u0600", "\u0085",
	"\r", "\b", "\a", "\x1b[44m", "\x1b[A", "\x1b[5G", "\x1b[2K", "\x1b[1K", "\x1b[3b",
	"\x1b]0;t\a", "\x1b]8;;http://x/\a", "\x1b]8;;\a", "\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l",
	"\x1b(0", "\x1b(B", "\x1b7", "\x1b8", "\x1b[2;4r", "\x1b[r", "\x1b[99H", "\x1b[3J", "\x1b[?1049h", "\x1b[?1049l",
}

// lineStream makes n parts; rare is how often one of the later parts is taken, in a
// thousand.
func lineStream(r *rand.Rand, n, rare int) []byte {
	const usual = 26
	var b []byte
	for range n {
		k := r.IntN(usual)
		if r.IntN(1000) < rare {
			k = r.IntN(len(lineParts))
		}
		b = append(b, lineParts[k]...)
	}
	return b
}

// outcome is all that can be observed of a stream.
func outcome(cols, rows, scrollback int, off bool, pieces ...[]byte) (state []byte, lines string) {
	var out bytes.Buffer
	t := New(cols, rows, scrollback)
	t.batch.off = off
	t.SetLineSink(func(l Line) { fmt.Fprintf(&out, "%d %s\n", l.Offset, l.Text) })
	for _, p := range pieces {
		t.Feed(p)
	}
	state = checkpoint.Encode(nil, t.State())
	t.FlushLines()
	return state, out.String()
}

func checkBatch(tb testing.TB, cols, rows, scrollback int, pieces ...[]byte) {
	tb.Helper()
	slow, slowLines := outcome(cols, rows, scrollback, true, pieces...)
	quick, quickLines := outcome(cols, rows, scrollback, false, pieces...)
	if !bytes.Equal(slow, quick) {
		a, _ := checkpoint.Decode(slow)
		b, _ := checkpoint.Decode(quick)
		tb.Fatalf("%dx%d, %d rows of history: the batch path gives another state\n%q\ncells: %+v\nbatch: %+v", cols, rows, scrollback, pieces, a, b)
	}
	if slowLines != quickLines {
		tb.Fatalf("%dx%d: the batch path reports other lines\n%q\ncells: %s\nbatch: %s", cols, rows, pieces, slowLines, quickLines)
	}
}

// TestBatch: the batch path and the cells come to the same state, lines and offsets.
func TestBatch(t *testing.T) {
	taken := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 9))
		cols, rows := 2+r.IntN(90), 1+r.IntN(12)
		in := lineStream(r, 300+r.IntN(900), []int{0, 2, 20, 200}[r.IntN(4)])
		cut := r.IntN(len(in))
		checkBatch(t, cols, rows, []int{0, 1, 30, 10000}[r.IntN(4)], in[:cut], in[cut:])
		term := New(cols, rows, 10)
		term.Feed(bytes.Repeat([]byte("\r\n"), rows))
		term.batch.begin(in, rows)
		if term.fastLines(in, 0) > 0 {
			taken++
		}
	}
	if taken < 500 {
		t.Errorf("the batch path was taken in %d of 3000 streams only", taken)
	}
}

// FuzzBatch is TestBatch for arbitrary bytes.
func FuzzBatch(f *testing.F) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 10))
		f.Add(lineStream(r, 200, int(seed)*5), uint8(r.IntN(100)), uint8(r.IntN(8)), uint16(r.IntN(60)))
	}
	f.Fuzz(func(t *testing.T, in []byte, cols, rows uint8, scrollback uint16) {
		lead := bytes.Repeat([]byte("\r\n"), int(rows%16)+1)
		checkBatch(t, int(cols)+1, int(rows%16)+1, int(scrollback), append(lead, in...))
		checkBatch(t, int(cols)+1, int(rows%16)+1, int(scrollback), lead, in, bytes.Repeat(in, 3))
	})
}
