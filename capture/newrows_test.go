package capture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"looptape/replay"
)

// shownRows are the rows of a terminal by their number, in its epoch.
func shownRows(t *replay.Terminal) (epoch uint32, active uint64, rows map[uint64]string) {
	b := t.Bounds()
	rows = map[uint64]string{}
	for row := range t.Rows(b.Oldest, b.End) {
		rows[row.Number] = strings.TrimRight(string(row.Text), " ")
	}
	return b.Epoch, b.Active, rows
}

// TestNewRows: what a follower by rows has been given is at last what there is: each
// row that changed, none that was history, in pages of any size, while the stream
// goes on between them. Where rows get other numbers it gets the screen.
func TestNewRows(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	st := newStore(t)
	for round := range 200 {
		p := newTape(t, st, round, 12, 4)
		p.write(randomStream(r, r.IntN(20)))
		first := p.since(SinceRequest{Format: "rows", Keep: "head", MaxBytes: 10000, MaxLines: 100})
		if !first.First || first.Text == nil || first.Rows != nil {
			t.Fatalf("the first answer is %+v", first)
		}
		epoch, active, have := shownRows(p.term)
		cursor := first.Cursor
		for range 1 + r.IntN(12) {
			if r.IntN(3) > 0 {
				p.write(randomStream(r, 1+r.IntN(8)))
			}
			q := SinceRequest{Format: "rows", Keep: "head", Cursor: &cursor, MaxBytes: 1 + r.IntN(60), MaxLines: 1 + r.IntN(4)}
			a := p.since(q)
			cursor = a.Cursor
			if now, _, rows := shownRows(p.term); now != epoch {
				if a.Rows != nil || a.Text == nil || !a.Missed {
					t.Fatalf("round %d: rows of another epoch: %+v", round, a)
				}
				epoch, have = now, rows
				_, active, _ = shownRows(p.term)
				continue
			}
			if a.Rows == nil || a.First || a.Missed || len(*a.Rows) > q.MaxLines {
				t.Fatalf("round %d: %+v", round, a)
			}
			size := 0
			_, _, rows := shownRows(p.term)
			for i, row := range *a.Rows {
				if size += len(row.Text); size > q.MaxBytes && i > 0 || row.Row < active || i > 0 && row.Row <= (*a.Rows)[i-1].Row || row.Text != rows[row.Row] {
					t.Fatalf("round %d: row %d of %v, active %d, %v", round, i, *a.Rows, active, rows)
				}
				have[row.Row] = row.Text
			}
			if !a.More {
				if fmt.Sprint(have) != fmt.Sprint(rows) {
					t.Fatalf("round %d: has %v, not %v", round, have, rows)
				}
				_, active, _ = shownRows(p.term)
				again := p.since(SinceRequest{Format: "rows", Keep: "head", Cursor: &cursor, MaxBytes: 10000, MaxLines: 100})
				if again.Rows == nil || len(*again.Rows) != 0 || again.More {
					t.Fatalf("round %d: nothing has changed: %+v", round, again)
				}
			}
		}
	}
}

// TestNewRowsTail keeps the newest, and counts what it left out.
func TestNewRowsTail(t *testing.T) {
	p := newTape(t, newStore(t), 0, 12, 4)
	first := p.since(SinceRequest{Format: "rows", Keep: "tail", MaxBytes: 10000, MaxLines: 100})
	p.write([]byte("one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix"))
	a := p.since(SinceRequest{Format: "rows", Keep: "tail", Cursor: &first.Cursor, MaxBytes: 10000, MaxLines: 2})
	if fmt.Sprint(*a.Rows) != "[{4 five} {5 six}]" || !a.Truncated || a.TruncatedLines != 4 || a.More {
		t.Fatalf("%+v %v", a, *a.Rows)
	}
	if a := p.since(SinceRequest{Format: "rows", Keep: "tail", Cursor: &a.Cursor, MaxBytes: 10000, MaxLines: 2}); len(*a.Rows) != 0 {
		t.Fatalf("%v", *a.Rows)
	}
	for i := range 200 { // more than the scrollback
		p.write(fmt.Appendf(nil, "\r\n%d", i))
	}
	a = p.since(SinceRequest{Format: "rows", Keep: "head", Cursor: &a.Cursor, MaxBytes: 10000, MaxLines: 1000})
	if !a.Missed || (*a.Rows)[0].Row != p.term.Bounds().Oldest || len(*a.Rows) != 104 {
		t.Fatalf("behind the scrollback: %+v", a)
	}
}

// TestNewRowsWithoutRows: an offset, and a cursor of another format, say nothing about
// rows: the screen.
func TestNewRowsWithoutRows(t *testing.T) {
	p := newTape(t, newStore(t), 0, 12, 4)
	p.write([]byte("one"))
	zero := uint64(0)
	text := p.since(SinceRequest{Since: &zero, Format: "text", Keep: "head", MaxBytes: 1000, MaxLines: 100})
	for _, q := range []SinceRequest{{Since: &zero}, {Cursor: &text.Cursor}} {
		q.Format, q.Keep, q.MaxBytes, q.MaxLines = "rows", "head", 1000, 100
		if a := p.since(q); a.Text == nil || *a.Text != "one" || a.First {
			t.Errorf("%+v: %+v", q, a)
		}
	}
	// And a cursor of rows is one of the stream.
	first := p.since(SinceRequest{Format: "rows", Keep: "head", MaxBytes: 1000, MaxLines: 100})
	p.write([]byte("two"))
	if a := p.since(SinceRequest{Cursor: &first.Cursor, Format: "text", Keep: "head", MaxBytes: 1000, MaxLines: 100}); *a.Text != "two" {
		t.Errorf("%+v", a)
	}
}
