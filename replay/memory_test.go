package replay_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"looptape/replay"
)

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// bytesPerPane returns what one of several terminals made by make costs.
func bytesPerPane(make func() *replay.Terminal) float64 {
	const n = 5
	var panes [n]*replay.Terminal
	before := heap()
	for i := range panes {
		panes[i] = make()
	}
	after := heap()
	runtime.KeepAlive(&panes)
	return (float64(after) - float64(before)) / n
}

// filled returns a terminal with a full history of 10,000 rows of 80 columns,
// coloured of each 100 cells coloured.
func filled(coloured int) *replay.Terminal {
	t := replay.New(80, 24, 10000)
	for y := range 10024 {
		var line []byte
		for x := 0; x < 80; {
			// A word of eight columns in each colour, spread over the row.
			if (x/8+y)*coloured%100 < coloured && coloured > 0 {
				line = fmt.Appendf(line, "\x1b[3%dm%c%07d\x1b[m", 1+(x+y)%7, 'a'+byte(x/8), y)
			} else {
				line = fmt.Appendf(line, "%c%07d", 'a'+byte(x/8), y)
			}
			x += 8
		}
		t.Feed(append(line, "\r\n"...))
	}
	return t
}

// The memory budget: terminal.md, point 10, and issue 3.
var panes = []struct {
	name  string
	limit float64 // bytes
	make  func() *replay.Terminal
}{
	{"empty", 100e3, func() *replay.Terminal { return replay.New(80, 24, 10000) }},
	{"plain", 1.2e6, func() *replay.Terminal { return filled(0) }},
	{"coloured", 2e6, func() *replay.Terminal { return filled(20) }},
}

// TestMemory: a pane costs no more than its budget.
func TestMemory(t *testing.T) {
	for _, p := range panes {
		n := bytesPerPane(p.make)
		t.Logf("%-10s %9.0f bytes a pane", p.name, n)
		if n > p.limit {
			t.Errorf("%s: %.0f bytes a pane, the limit is %.0f", p.name, n, p.limit)
		}
	}
}

// BenchmarkMemory prints the bytes of a pane: empty, and with 10,000 full rows
// of 80 columns, plain and with every fifth cell coloured.
func BenchmarkMemory(b *testing.B) {
	for _, p := range panes {
		b.Run(p.name, func(b *testing.B) {
			n := 0.0
			for b.Loop() {
				n = bytesPerPane(p.make)
			}
			b.ReportMetric(n, "bytes/pane")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestMemoryFlat: redrawing for ever costs nothing, whatever changes on the
// way: what a screen no longer shows is forgotten.
func TestMemoryFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("feeds 500 MB")
	}
	frame := []byte("\x1b[H" + string(bytes.Repeat([]byte("0123456789abcdef"), 256)))
	wide := bytes.Repeat([]byte("漢e\u0301"), 40)
	for _, c := range []struct {
		name string
		n    int
		make func(b []byte, i int) []byte
	}{
		{"redraw", 100000, func(b []byte, _ int) []byte { return append(b, frame...) }},
		{"colours", 60000, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "\x1b[H\x1b[38;2;%d;%d;%dmx\x1b[48;2;%d;%d;7my\x1b[K", i>>16&255, i>>8&255, i&255, i&255, i>>8&255)
		}},
		{"links", 60000, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "\x1b[H\x1b]8;id=%d;http://x.example/%d\x1b\\x\x1b]8;;\x1b\\", i, i)
		}},
		{"titles", 60000, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "\x1b]0;title %d\x07\x1b]7;file://h/dir%d\x07\x1b[22t", i, i)
		}},
		{"marks", 20000, func(b []byte, i int) []byte {
			return append(fmt.Appendf(b, "\x1b[H%c\u0301\u0323\x1b[5d", 'a'+i%26), wide...)
		}},
		{"palette", 20000, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "\x1b]4;%d;#%06x\x07\x1b]10;#%06x\x07", i%256, i, i)
		}},
		{"scrolled colours", 60000, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "\x1b[38;2;%d;%d;%dmx\r\n", i>>16&255, i>>8&255, i&255)
		}},
		{"alternate", 20000, func(b []byte, i int) []byte {
			return fmt.Appendf(b, "\x1b[?1049h\x1b[38;5;%dmx%d\x1b[?1049l\x1b[?1049h\x1b[2J\x1b[?1049l", i%256, i)
		}},
		{"resets", 5000, func(b []byte, i int) []byte { return fmt.Appendf(b, "x%d\x1b7\x1b[s\x1bcy\x1b[!p\x1b#8", i) }},
		{"unfinished", 3000, func(b []byte, i int) []byte { return append(append(b, "\x1b]0;"...), frame...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			term := replay.New(80, 24, 1000)
			run := func(from, to int) {
				var b []byte
				for i := from; i < to; i++ {
					if b = c.make(b, i); len(b) > 32<<10 || i+1 == to {
						term.Feed(b)
						b = b[:0]
					}
					if i%1000 == 0 {
						term.TakeReplies()
					}
				}
				term.TakeReplies()
			}
			run(0, c.n/5)
			early := heap()
			run(c.n/5, c.n)
			late := heap()
			runtime.KeepAlive(term)
			if late > early+100e3 {
				t.Errorf("the heap grew from %d to %d bytes over %d redraws", early, late, c.n*4/5)
			}
		})
	}
}

// TestEventsBounded: observations and replies that nobody takes do not pile
// up without bound.
func TestEventsBounded(t *testing.T) {
	term := replay.New(80, 24, 100)
	in := bytes.Repeat([]byte("\x07\x1b[c\x1b]0;some title\x07\x1b]9;note\x07"), 2000)
	for range 50 {
		term.Feed(in)
	}
	early := heap()
	for range 100 {
		term.Feed(in)
	}
	late := heap()
	runtime.KeepAlive(term)
	if late > early+100e3 {
		t.Errorf("the heap grew from %d to %d bytes", early, late)
	}
}
