package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// tape is a pane whose stream the test writes: a real log and a real Terminal,
// without a program.
type tape struct {
	t      *testing.T
	log    *store.Log
	term   *replay.Terminal
	closed bool
	stream []byte         // every byte, lost ones included
	lost   map[uint64]int // gaps by where they begin
	// respawns are where other programs begin; several may at one place.
	respawns map[uint64]bool
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open("store", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler), SegmentBytes: 512, Pace: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func newTape(t *testing.T, st *store.Store, pane, cols, rows int) *tape {
	t.Helper()
	log, err := st.Create(uint64(pane))
	if err != nil {
		t.Fatal(err)
	}
	p := &tape{t: t, log: log, term: replay.New(cols, rows, 100), lost: map[uint64]int{}, respawns: map[uint64]bool{}}
	p.checkpoint()
	return p
}

func (p *tape) View(_ context.Context, read func(*replay.Terminal, bool)) error {
	read(p.term, p.closed)
	return nil
}
func (p *tape) Await(context.Context, store.Pos) error { return nil }
func (p *tape) Log() *store.Log                        { return p.log }
func (p *tape) Reached(context.Context) uint64         { return p.term.Offset() }

func (p *tape) checkpoint() {
	p.log.AppendCheckpoint(checkpoint.Encode(nil, p.term.State()), true)
}

func (p *tape) write(b []byte) {
	p.log.Append(store.Output, store.Time{}, b)
	p.term.Feed(b)
	p.stream = append(p.stream, b...)
}

func (p *tape) gap(n int) {
	p.lost[uint64(len(p.stream))] = n
	p.log.AppendGap(store.Time{}, uint64(n), nil)
	p.term.Gap(uint64(n))
	p.stream = append(p.stream, make([]byte, n)...)
	p.checkpoint()
}

func (p *tape) respawn() {
	p.respawns[uint64(len(p.stream))] = true
	p.log.Append(replay.MarkRespawn, store.Time{}, nil)
	p.term.Respawn()
	p.checkpoint()
}

func (p *tape) since(q SinceRequest) *SinceResult {
	p.t.Helper()
	q.Pane = "p3"
	r, err := Since(p.t.Context(), p, q, time.Now)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// TestSinceInPieces reads random streams with gaps in random pieces: what is
// answered and what is stated as missed is the stream, in order, once.
func TestSinceInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	st := newStore(t)
	for round := range 300 {
		p := newTape(t, st, round, 20, 5)
		for range 1 + r.IntN(6) {
			p.write(randomStream(r, 1+r.IntN(6)))
			for r.IntN(3) == 0 {
				if r.IntN(2) == 0 {
					p.gap(1 + r.IntN(1000))
				} else {
					p.respawn()
				}
			}
		}
		p.closed = true
		for _, format := range []string{"raw", "text", "raw by offsets"} {
			p.readInPieces(r, format, fmt.Sprintf("round %d, %s", round, format))
		}
	}
}

func (p *tape) readInPieces(r *rand.Rand, format, name string) {
	t := p.t
	t.Helper()
	format, offsets := strings.CutSuffix(format, " by offsets")
	start := uint64(0)
	q := SinceRequest{Since: &start, Format: format, Keep: "head", MaxBytes: 1 + r.IntN(40), MaxLines: 1 + r.IntN(5)}
	at := uint64(0)
	var run []byte // the text or bytes since the last gap or respawn
	from := at
	check := func(to uint64, over bool) {
		want := p.stream[from:to]
		if format == "text" {
			f := filter{bytes: unlimited, lines: unlimited}
			text, _ := f.feed(nil, want)
			if over {
				text = f.finish(text)
			}
			want = text
		}
		if !bytes.Equal(run, want) {
			t.Fatalf("%s: [%d, %d) of %q reads %q, not %q", name, from, to, p.stream, run, want)
		}
		run, from = nil, to
	}
	told := map[uint64]bool{0: p.respawns[0]} // a reader that begins at one is behind it
	for calls := 0; ; calls++ {
		if calls > 10000 {
			t.Fatalf("%s: no end", name)
		}
		a := p.since(q)
		if a.Missed {
			n := p.lostFrom(at, a.From)
			if n == 0 || a.MissedBytes != n {
				t.Fatalf("%s: at %d missed %d bytes up to %d; gaps %v", name, at, a.MissedBytes, a.From, p.lost)
			}
			check(at, false)
			from, at = a.From, a.From
		}
		if a.From != at || a.Offset < a.From || a.End != uint64(len(p.stream)) || a.First || a.Truncated {
			t.Fatalf("%s: at %d: %+v", name, at, a)
		}
		if format == "raw" {
			run = append(run, *a.Data...)
		} else {
			run = append(run, *a.Text...)
			if !utf8.ValidString(*a.Text) {
				t.Fatalf("%s: %q", name, *a.Text)
			}
		}
		at = a.Offset
		if a.More == a.Closed {
			t.Fatalf("%s: more %v, closed %v", name, a.More, a.Closed)
		}
		if a.Boundary != "" {
			if a.Boundary != "respawn" || !p.respawns[at] || told[at] || !a.More {
				t.Fatalf("%s: a boundary at %d: %+v; respawns at %v", name, at, a, p.respawns)
			}
			told[at] = true
			check(at, true)
		}
		if a.Closed {
			break
		}
		if q.Since, q.Cursor = nil, &a.Cursor; offsets {
			q.Since, q.Cursor = &a.Offset, nil
		}
	}
	check(at, true)
	if at != uint64(len(p.stream)) {
		t.Fatalf("%s: ends at %d of %d", name, at, len(p.stream))
	}
	for place := range p.respawns {
		if !told[place] {
			t.Fatalf("%s: nobody was told of the respawn at %d", name, place)
		}
	}
}

// lostFrom is how much of the stream from at to end is gaps, or 0 if anything else
// is there.
func (p *tape) lostFrom(at, end uint64) uint64 {
	n := uint64(0)
	for p.lost[at+n] > 0 && at+n < end {
		n += uint64(p.lost[at+n])
	}
	if at+n != end {
		return 0
	}
	return n
}

// TestSinceTail: the newest that the limits admit is a suffix of all that the
// same place gives, and says how many bytes it left out.
func TestSinceTail(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	st := newStore(t)
	for round := range 300 {
		p := newTape(t, st, round, 20, 5)
		for range 1 + r.IntN(4) {
			p.write(randomStream(r, 1+r.IntN(8)))
		}
		start := uint64(r.IntN(len(p.stream) + 1))
		end := len(p.stream)
		respawned := start < uint64(end) && r.IntN(2) == 0
		if respawned { // the range ends here
			p.respawn()
			p.write(randomStream(r, 1+r.IntN(8)))
		}
		p.closed = r.IntN(2) == 0
		all := p.since(SinceRequest{Since: &start, Format: "text", Keep: "head", MaxBytes: unlimited, MaxLines: unlimited})
		maxBytes, maxLines := 1+r.IntN(30), 1+r.IntN(4)
		tail := p.since(SinceRequest{Since: &start, Format: "text", Keep: "tail", MaxBytes: maxBytes, MaxLines: maxLines})
		want := (*all.Text)[tailStart([]byte(*all.Text), maxBytes, maxLines):]
		if *tail.Text != want || tail.Closed != (p.closed && !respawned) || tail.More != respawned || (tail.Boundary == "respawn") != respawned || tail.Offset != uint64(end) || tail.From != start+tail.TruncatedBytes {
			t.Fatalf("the newest of %q by %d bytes, %d lines: %+v %q, not %q", *all.Text, maxBytes, maxLines, tail, *tail.Text, want)
		}
		raw := p.since(SinceRequest{Since: &start, Format: "raw", Keep: "tail", MaxBytes: maxBytes})
		if n := min(maxBytes, end-int(start)); !bytes.Equal(*raw.Data, p.stream[end-n:end]) || raw.From != uint64(end-n) || raw.Boundary != tail.Boundary {
			t.Fatalf("the newest %d bytes: %+v", maxBytes, raw)
		}
	}
}

// TestFirst: the first answer is the screen at an instant, and the cursor goes
// on at exactly that instant, also in the middle of a sequence or a character.
func TestFirst(t *testing.T) {
	st := newStore(t)
	for i, c := range []struct{ before, after, screen, text string }{
		{"one\r\ntwo\r\n$ ", "ls\r\n", "one\ntwo\n$", "ls\n"},
		{"x\x1b[3", "1mred\x1b[0m\r\n", "x", "red\n"},
		{"caf\xc3", "\xa9!", "caf", "é!"},
		{"\x1b]0;ti", "tle\adone", "", "done"},
		{"a\r\n\r\n\r\n", "b", "a", "b"},
	} {
		p := newTape(t, st, i, 20, 5)
		p.write([]byte(c.before))
		first := p.since(SinceRequest{Format: "text", Keep: "head", MaxBytes: 1000, MaxLines: 100})
		if !first.First || *first.Text != c.screen || first.From != first.Offset || first.Offset != uint64(len(c.before)) {
			t.Errorf("%q: %+v %q", c.before, first, *first.Text)
		}
		p.write([]byte(c.after))
		next := p.since(SinceRequest{Cursor: &first.Cursor, Format: "text", Keep: "head", MaxBytes: 1000, MaxLines: 100})
		if next.First || *next.Text != c.text {
			t.Errorf("%q then %q: %q, not %q", c.before, c.after, *next.Text, c.text)
		}
	}
}

// TestLargestPage: each page of rows is the largest that its four limits admit,
// and pages put together are the selection.
func TestLargestPage(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	jsonLen := func(b []byte) int {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		enc.Encode(string(b))
		return buf.Len() - 1
	}
	encoded := func(res *RowsResult) int {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		enc.Encode(res)
		return buf.Len() - 1
	}
	for range 400 {
		term := replay.New(1+r.IntN(30), 1+r.IntN(6), 100)
		for range r.IntN(30) {
			term.Feed([]byte(strings.Repeat(`"a\`, r.IntN(4)) + strings.Repeat("漢é", r.IntN(9)) + "\r\n"))
		}
		b := term.Bounds()
		var all []string
		for row := range term.Rows(b.Oldest, b.End) {
			all = append(all, string(row.Text))
		}
		q := RowsRequest{Pane: "p3", MaxRows: 1 + r.IntN(20), MaxBytes: 1 + r.IntN(600), Frame: 150 + r.IntN(900), StringLen: jsonLen}
		var got []string
		for start := b.Oldest; ; {
			q.Epoch, q.Start, q.End = &b.Epoch, &start, &b.End
			res, err := Rows(term, q)
			k := 0
			if err == nil {
				k = len(res.Lines)
				if encoded(res) > q.Frame {
					t.Fatalf("a page of %d bytes for a frame of %d", encoded(res), q.Frame)
				}
			}
			if k < int(b.End-start) { // one row more would have to break a limit
				lines := all[start-b.Oldest : start-b.Oldest+uint64(k)+1]
				more := RowsResult{Pane: "p3", Screen: string(b.Screen), Epoch: b.Epoch, Offset: term.Offset(), Cols: b.Cols, Rows: b.Rows,
					Bounds: RowBounds{b.Oldest, b.Active, b.End}, Start: start, End: b.End, Lines: lines}
				if next := start + uint64(k) + 1; next == b.End {
					more.Done = true
				} else {
					more.Next = &next
				}
				if k+1 <= q.MaxRows && len(strings.Join(lines, "")) <= q.MaxBytes && encoded(&more) <= q.Frame {
					t.Fatalf("a page of %d rows where one more fits: %v", k, err)
				}
			}
			var e *Error
			if errors.As(err, &e) {
				if e.Code != "unsupported.result_size" || k != 0 {
					t.Fatal(err)
				}
				break
			}
			got = append(got, res.Lines...)
			if res.Done {
				if strings.Join(got, "\n") != strings.Join(all, "\n") {
					t.Fatalf("pages give %q, not %q", got, all)
				}
				break
			}
			start = *res.Next
		}
	}
}

// TestSinceEmptyRange: a range that ends before it begins is empty, and its answer
// stays where it was, or where the log begins by now.
func TestSinceEmptyRange(t *testing.T) {
	p := newTape(t, newStore(t), 1, 80, 24)
	for range 30 {
		p.write(bytes.Repeat([]byte("hello there\r\n"), 100))
		p.checkpoint()
	}
	end := uint64(len(p.stream))
	for _, since := range []uint64{1, 20000, end - 1, end} {
		for _, to := range []uint64{0, since / 2, since - 1, since} {
			for _, keep := range []string{"head", "tail"} {
				for _, format := range []string{"text", "raw"} {
					r := p.since(SinceRequest{Since: &since, To: &to, Keep: keep, Format: format, MaxBytes: 100, MaxLines: 100})
					if r.From != since || r.Offset != since || r.More || r.Truncated || r.Missed || r.Text != nil && *r.Text != "" || r.Data != nil && len(*r.Data) > 0 {
						t.Errorf("%s, %s, from %d to %d: %+v", keep, format, since, to, r)
					}
				}
			}
		}
	}
}
