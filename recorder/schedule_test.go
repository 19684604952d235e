package recorder

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"looptape/replay"
	"looptape/store"
)

// TestSchedule: where checkpoints come to stand, in testdata/schedule. Its commands are
//
//	pane    begins a pane of cols x rows, with scrollback rows of history and spans of
//	        at most span bytes
//	output  prints bytes of a kind (those of BenchmarkHydrate, by name)
//	print   prints what follows, a quoted string a line
//	idle    lets time pass, and the schedule look again
//	resize, respawn, gap
//
// and each answers with the checkpoints that came of it. A run of at least three by the
// same rule is one line. After a change that is meant, -rewrite writes the file anew.
func TestSchedule(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and all of it in one goroutine")
	}
	p := &scheduled{t: t}
	datadriven.RunTest(t, "testdata/schedule", func(t *testing.T, d *datadriven.TestData) string {
		p.made = nil
		p.run(t, d)
		return p.answer()
	})
}

// scheduled is a pane without a program and without a log.
type scheduled struct {
	t    *testing.T
	tape *tape
	r    *rand.Rand
	made []made
}

// made is a checkpoint: where, and what lies between it and the one before.
type made struct {
	kind        string // full or small
	why         reason
	offset      uint64
	work, bytes uint64
	size        int
}

func (p *scheduled) run(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "pane":
		cols, rows, scrollback, span := 80, 24, 10000, "0"
		d.MaybeScanArgs(t, "cols", &cols)
		d.MaybeScanArgs(t, "rows", &rows)
		d.MaybeScanArgs(t, "scrollback", &scrollback)
		d.MaybeScanArgs(t, "span", &span)
		p.r = rand.New(rand.NewPCG(1, 2))
		p.tape = &tape{term: replay.New(cols, rows, scrollback), schedule: schedule{distance: distances, spanBytes: size(t, span)}}
		p.note(func() { p.tape.checkpoint() })
	case "output":
		var kind, bytes string
		d.ScanArgs(t, "kind", &kind)
		d.ScanArgs(t, "bytes", &bytes)
		p.output(kind, int(size(t, bytes)))
	case "print":
		for line := range strings.SplitSeq(d.Input, "\n") {
			text, err := strconv.Unquote(line)
			if err != nil {
				d.Fatalf(t, "%s: %v", line, err)
			}
			p.add(store.Output, []byte(text))
		}
	case "idle": // no clock is known here
		p.note(func() {
			if blob, full, ok := p.tape.next(p.tape.term); ok {
				p.tape.put(blob, full)
			}
		})
	case "resize":
		var cols, rows int
		if _, err := fmt.Sscanf(d.CmdArgs[0].Key, "%dx%d", &cols, &rows); err != nil {
			d.Fatalf(t, "%v", err)
		}
		p.add(replay.MarkResize, replay.AppendResize(nil, cols, rows))
	case "respawn":
		p.add(replay.MarkRespawn, nil)
		p.note(func() { p.tape.checkpoint() })
	case "gap":
		p.tape.term.Gap(1000)
		p.note(func() { p.tape.checkpoint() })
	default:
		d.Fatalf(t, "no such command")
	}
}

// output prints n bytes, in batches as a loop reads them.
func (p *scheduled) output(kind string, n int) {
	for i := range prints {
		if prints[i].name != kind {
			continue
		}
		var b []byte
		for n > 0 {
			for len(b) < min(n, batchBytes/4) {
				b = prints[i].piece(p.r, b)
			}
			batch := b[:min(n, len(b), batchBytes/4)]
			p.add(store.Output, batch)
			n -= len(batch)
			b = append([]byte(nil), b[len(batch):]...)
		}
		return
	}
	p.t.Fatalf("there is no output %q", kind)
}

func (p *scheduled) add(kind store.Kind, data []byte) {
	p.note(func() { p.tape.add(p.t, kind, data) })
}

// note notes the checkpoint that do makes, if it does.
func (p *scheduled) note(do func()) {
	s := *p.tape
	do()
	now := p.tape
	m := made{
		why: now.why, offset: now.term.Offset(), work: now.term.Work() - s.schedule.work,
		bytes: now.term.Offset() - s.schedule.offset, size: now.fullBytes + now.deltaBytes - s.fullBytes - s.deltaBytes,
	}
	switch {
	case now.full > s.full:
		m.kind = "full"
	case now.delta > s.delta:
		m.kind = "small"
	default:
		return
	}
	p.made = append(p.made, m)
}

// answer lists the checkpoints.
func (p *scheduled) answer() string {
	if len(p.made) == 0 {
		return "none\n"
	}
	var b strings.Builder
	for i := 0; i < len(p.made); {
		n := i + 1
		for n < len(p.made) && p.made[n].kind == p.made[i].kind && p.made[n].why == p.made[i].why {
			n++
		}
		run := p.made[i:n]
		if len(run) < 3 {
			run = run[:1]
		}
		work, bytes, sizes := span{}, span{}, span{}
		for _, m := range run {
			work.add(float64(m.work) / (1 << 20))
			bytes.add(float64(m.bytes) / (1 << 20))
			sizes.add(float64(m.size) / 1e3)
		}
		at := fmt.Sprintf("%.2f", float64(run[0].offset)/(1<<20))
		if len(run) > 1 {
			at += fmt.Sprintf(" .. %.2f", float64(run[len(run)-1].offset)/(1<<20))
		}
		fmt.Fprintf(&b, "at %s MiB: %d %s (%s); behind %.1f MiB of work, %.1f MiB of output; %.0f kB\n", at, len(run), run[0].kind, run[0].why, work, bytes, sizes)
		i += len(run)
	}
	return b.String()
}

// span is from the least to the most of some numbers.
type span struct {
	least, most float64
	any         bool
}

func (s *span) add(n float64) {
	if !s.any {
		*s = span{n, n, true}
	}
	s.least, s.most = min(s.least, n), max(s.most, n)
}

// Format prints the numbers, or the one if they look the same.
func (s span) Format(f fmt.State, verb rune) {
	precision, _ := f.Precision()
	least, most := strconv.FormatFloat(s.least, 'f', precision, 64), strconv.FormatFloat(s.most, 'f', precision, 64)
	if least != most {
		least += " .. " + most
	}
	fmt.Fprint(f, least)
}

// size reads bytes, with K or M.
func size(t *testing.T, s string) uint64 {
	digits, unit := strings.TrimRight(s, "KM"), uint64(1)
	switch s[len(digits):] {
	case "K":
		unit = 1 << 10
	case "M":
		unit = 1 << 20
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * unit
}
