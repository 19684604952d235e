package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"looptape/checkpoint"
)

// A twin is the same terminal twice, once without the batch path, and what
// each told the outside.
type twin struct {
	t      [2]*Terminal
	lines  [2][]string
	events [2][]Event
}

func newTwin(cols, rows, scrollback int) *twin {
	var w twin
	for i := range w.t {
		w.t[i] = New(cols, rows, scrollback)
		w.listen(i)
	}
	w.t[1].batch.off = true
	return &w
}

func (w *twin) listen(i int) {
	w.t[i].SetLineSink(func(l Line) {
		w.lines[i] = append(w.lines[i], fmt.Sprintf("%d %q", l.Offset, l.Text))
	})
	w.t[i].SetEventSink(func(e Event) { w.events[i] = append(w.events[i], e) })
}

func (w *twin) feed(p []byte) {
	for _, t := range w.t {
		t.Feed(bytes.Clone(p))
	}
}

// check fails unless both are the same to the last byte.
func (w *twin) check(tb testing.TB, in []byte) {
	tb.Helper()
	fast, slow := w.t[0].State(), w.t[1].State()
	if b := checkpoint.Encode(nil, fast); !bytes.Equal(b, checkpoint.Encode(nil, slow)) {
		tb.Fatalf("states differ behind %.2000q:\nfast %+v\nslow %+v", in, fast, slow)
	}
	if !slices.Equal(w.lines[0], w.lines[1]) {
		i := 0
		for i < min(len(w.lines[0]), len(w.lines[1])) && w.lines[0][i] == w.lines[1][i] {
			i++
		}
		tb.Fatalf("lines differ behind %.2000q, from line %d on:\nfast %q\nslow %q", in, i, w.lines[0][i:], w.lines[1][i:])
	}
	if !slices.Equal(w.events[0], w.events[1]) {
		tb.Fatalf("events differ behind %.2000q:\nfast %v\nslow %v", in, w.events[0], w.events[1])
	}
	if f, s := w.t[0].TakeReplies(), w.t[1].TakeReplies(); !bytes.Equal(f, s) {
		tb.Fatalf("replies differ behind %.2000q:\nfast %q\nslow %q", in, f, s)
	}
}

// batchPieces are what lines are made of here: all that the batch path takes,
// and what makes it stop.
var batchPieces = [...]string{
	"a", "word ", "  ", "0123456789abcdef", "\t", "\t\t", "é", "漢", "字漢", "e\u0301", "\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "\u200d",
	"\x1b[m", "\x1b[1;31m", "\x1b[38;5;208m", "\x1b[48;2;1;2;3m", "\x1b[0;7m", "\x1b[38:2::9:8:7m", "\x1b[K", "\x1b[0K", "\x1b[2K", "\x1b[1K",
	"\r", "\r\x1b[K", "\b", "\x07", "\x1b[C", "\x1b[5D", "\x1b[A", "\x1b[H", "\x1b7", "\x1b8", "\x0e", "\x0f", "\x1b(0", "\x1b(B",
	"\x1b]0;t\x07", "\x1b]8;;http://x.example\x07", "\x1b]8;;http://x.example\x07", "\x1b]8;id=1;http://y.example\x07", "\x1b]8;;\x07", "\x1b]133;A\x07", "\x1b[c", "\x1b[6n", "\x1b[3b", "\x1b[?7l", "\x1b[?7h",
	"\x1b[4h", "\x1b[4l", "\x1b[2;4r", "\x1b[r", "\x1b[?1049h", "\x1b[?1049l", "\x1b[2J", "\x1b[3J", "\x1b[S", "\x1b[L", "\xff", "\xe6\xbc", "\x9b",
	"\x00", "\x7f", "\u0085", "\x1b", "\x1b[", "\x1b[3", "\x18", "\v", "\f", "\x1bM", "\x1bE", "\x1bH", "\x1b[3g", "\x1b[20h", "\x1b[20l", "\x1bc", "\x1b[!p",
	"\x1b[44m\x1b[K", "\x1b[49m", "\n", "\n\n", "\r\n\r\n",
}

// batchStream makes a stream of about n lines. plain is how many of the pieces
// in a hundred are such as the batch path takes.
func batchStream(r *rand.Rand, n, plain int) []byte {
	var b []byte
	for range n {
		for range r.IntN(1 + r.IntN(12)) {
			k := r.IntN(22)
			if r.IntN(100) >= plain {
				k = r.IntN(len(batchPieces))
			}
			b = append(b, batchPieces[k]...)
		}
		if r.IntN(100) < 97 {
			b = append(b, '\r')
		}
		b = append(b, '\n')
	}
	return b
}

// batch runs one seed: sizes, history limit, pieces and the share of what the
// batch path does not take all come from it.
func runBatch(tb testing.TB, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	cols, rows := 1+r.IntN(90), 1+r.IntN(8)
	w := newTwin(cols, rows, []int{0, 3, 50, 5000}[r.IntN(4)])
	budget := []int{w.t[0].hist.budget, w.t[0].hist.budget, 20000, 3000, 300}[r.IntN(5)]
	links := []int{MaxLinkBytes, 2000, 300}[r.IntN(3)]
	for i := range w.t {
		w.t[i].hist.budget, w.t[i].hist.linkBudget = budget, links
	}
	in := batchStream(r, 30+r.IntN(300), []int{100, 99, 95, 60}[r.IntN(4)])
	piece := []int{len(in), 4096, 700, 100}[r.IntN(4)]
	for p := range slices.Chunk(in, piece) {
		w.feed(p)
		switch n := r.IntN(14); n {
		case 0:
			cols, rows = 1+r.IntN(90), 1+r.IntN(8)
			w.t[0].Resize(cols, rows)
			w.t[1].Resize(cols, rows)
		case 1, 2, 3:
			w.check(tb, in)
			for i := range w.t {
				if n == i+1 {
					continue // the other one was never anything else
				}
				t, err := Restore(w.t[i].State())
				if err != nil {
					tb.Fatal(err)
				}
				w.t[i] = t
				w.t[i].hist.budget, w.t[i].hist.linkBudget = budget, links
				w.listen(i)
			}
			w.t[1].batch.off = true
		}
	}
	w.check(tb, in)
	for _, t := range w.t {
		t.FlushLines()
	}
	w.check(tb, in)
}

// TestBatchSeeds: the batch path gives what the cells give, on 2,000 streams.
func TestBatchSeeds(t *testing.T) {
	for seed := range uint64(2000) {
		runBatch(t, seed)
	}
}

// TestBatchTaken: the batch path is taken where it should be, on whole streams
// of plain, coloured and wide lines; else the tests above prove nothing.
func TestBatchTaken(t *testing.T) {
	for _, line := range []string{"some text\r\n", "a\tb\x1b[31mred\x1b[m\r\n", "漢字 é\x1b[K\r\n", strings.Repeat("long ", 40) + "\r\n"} {
		term := New(80, 24, 1000)
		term.Feed(bytes.Repeat([]byte("x\r\n"), 30))
		in := bytes.Repeat([]byte(line), 1000)
		if n := term.fastLines(in, 0); n < len(in)/2 {
			t.Errorf("%q: the batch path takes %d of %d bytes", line, n, len(in))
		}
	}
}

// FuzzBatchSeeds runs seeds of runBatch.
func FuzzBatchSeeds(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed + 100000)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { runBatch(t, seed) })
}

// FuzzBatchBytes repeats any bytes as lines, behind a screen full of others.
func FuzzBatchBytes(f *testing.F) {
	for _, p := range batchPieces {
		f.Add([]byte("ab"+p+"cd"), []byte("e\tf"+p), uint8(20), uint8(3), uint16(300))
	}
	f.Add([]byte("0123456789"), []byte("01234567890123456789"), uint8(10), uint8(2), uint16(77))
	f.Add([]byte("漢字漢字漢"), []byte("a漢字漢字漢"), uint8(10), uint8(2), uint16(0))
	f.Fuzz(func(t *testing.T, a, b []byte, cols, rows uint8, cut uint16) {
		w := newTwin(max(1, int(cols)), 1+int(rows)%10, 40)
		var in []byte
		for i := range 60 {
			in = append(in, a...)
			if i%7 == 0 {
				in = append(in, b...)
			}
			in = append(in, '\r', '\n')
		}
		w.feed(bytes.Repeat([]byte("start\r\n"), 12))
		n := int(cut) % (len(in) + 1)
		w.feed(in[:n])
		w.feed(in[n:])
		w.check(t, in)
	})
}
