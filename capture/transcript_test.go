package capture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"looptape/replay"
	"looptape/store"
)

// lose is what the program wrote while nothing could be recorded: the live terminal
// had it, and the checkpoint behind the gap is of that.
func (p *tape) lose(b []byte) {
	p.lost[uint64(len(p.stream))] = len(b)
	p.log.AppendGap(store.Time{}, uint64(len(b)), nil)
	p.term.FlushLines()
	p.term.Feed(b)
	p.stream = append(p.stream, make([]byte, len(b))...)
	p.checkpoint()
}

// TestTranscriptGap: the transcript goes on behind a gap with what was scrolled and
// redrawn in it, and with the screen as it was left.
func TestTranscriptGap(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 4)
	p.write([]byte("one\r\ntwo\r\nthree\r\n"))
	lost := "four\r\nfive\r\nsix\r\nseven\r\n\x1b[2J\x1b[Hredrawn\r\n\x1b[1m"
	p.lose([]byte(lost))
	p.write([]byte("eight\x1b[1;3HDRAWN\r\n\n\n\n\nnine"))
	want := fmt.Sprintf("one\ntwo\nthree\n---- looptape: up to %d bytes from offset 17 on are missing ----\nfour\nreDRAWN\neight\n\n\n\nnine\n", len(lost))
	got, result := exported(t, p, ExportRequest{Format: "text"})
	if got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if result.MissedBytes != uint64(len(lost)) {
		t.Errorf("%+v", result)
	}
}

// TestTranscriptIsSearch: the transcript has the lines that a search for everything
// finds, of the whole recording and of any part, whatever the stream does. The blank
// lines below a line come with it, which a search does not know.
func TestTranscriptIsSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	st := newStore(t)
	for round := range 150 {
		p := newTape(t, st, round, 2+r.IntN(20), 1+r.IntN(6))
		for range 1 + r.IntN(8) {
			p.write(randomStream(r, 1+r.IntN(8)))
			switch r.IntN(8) {
			case 0:
				p.lose(randomStream(r, 1+r.IntN(20)))
			case 1:
				p.apply(replay.MarkResize, replay.AppendResize(nil, 2+r.IntN(20), 1+r.IntN(6)))
			case 2:
				p.apply(replay.MarkRestart, replay.AppendRestart(nil, 0))
				p.checkpoint()
			case 3:
				p.respawn()
			case 4:
				p.checkpoint()
			}
		}
		for range 20 {
			var from, to *uint64
			if r.IntN(4) > 0 {
				n := r.Uint64N(uint64(len(p.stream) + 1))
				from = &n
			}
			if r.IntN(4) > 0 {
				n := r.Uint64N(uint64(len(p.stream) + 1))
				if from != nil {
					n = max(n, *from)
				}
				to = &n
			}
			text, _ := exported(t, p, ExportRequest{Format: "text", From: from, To: to})
			var got, want []string
			for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
				if text != "" && !strings.HasPrefix(line, "---- looptape: ") && (line != "" || from == nil) {
					got = append(got, line)
				}
			}
			for _, m := range p.searchAll(SearchRequest{From: from, To: to, Limit: 10000}) {
				if m.Line != "" || from == nil {
					want = append(want, m.Line)
				}
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Fatalf("round %d of %q, %s:\n%q, and searched\n%q", round, p.stream, rangeName(from, to), got, want)
			}
		}
	}
}

func rangeName(from, to *uint64) string {
	name := "["
	if from != nil {
		name += fmt.Sprint(*from)
	}
	if name += ", "; to != nil {
		name += fmt.Sprint(*to)
	}
	return name + "]"
}
