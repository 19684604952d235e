package capture

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"looptape/checkpoint"
	"looptape/store"
)

// TestExportOvertaken: retention takes what an export has yet to read. It goes on at
// the new beginning of the log, and says exactly how much of the stream it misses.
func TestExportOvertaken(t *testing.T) {
	for _, format := range []string{"raw", "text", "asciicast"} {
		t.Run(format, func(t *testing.T) {
			st, err := store.Open("store", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler), EvictPace: time.Millisecond, Pace: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			p := newTape(t, st, 1, 80, 10)
			p.numbers(12 << 20)

			stopped := uint64(0) // where the export was when the log lost its beginning
			q := ExportRequest{Pane: "p1", Format: format, Progress: func(offset uint64) {
				if stopped > 0 || offset < 1<<20 {
					return
				}
				stopped = offset
				p.log.SetRetain(4 << 20)
				p.until(func() bool { return p.log.Oldest() > 5<<20 })
			}}
			var b bytes.Buffer
			result, err := Export(t.Context(), p, q, &b)
			if err != nil {
				t.Fatal(err)
			}
			// What the reader had in hand when it was overtaken it could still give.
			begin := uint64(len(p.stream)) - result.MissedBytes - (p.log.End().Offset - p.log.Oldest())
			if result.From != 0 || result.Offset != uint64(len(p.stream)) || begin < stopped || begin > stopped+1<<20 {
				t.Fatalf("stopped at %d, oldest %d: %+v", stopped, p.log.Oldest(), result)
			}
			behind := begin + result.MissedBytes
			switch format {
			case "raw":
				if want := append(bytes.Clone(p.stream[:begin]), p.stream[behind:]...); !bytes.Equal(b.Bytes(), want) {
					t.Errorf("%d bytes, not %d", b.Len(), len(want))
				}
			case "text":
				rule := fmt.Sprintf("---- looptape: up to %d bytes from offset %d on are missing ----\n", result.MissedBytes, begin)
				before, after, found := strings.Cut(b.String(), rule)
				all := strings.ReplaceAll(string(p.stream), "\r", "")
				tail := strings.ReplaceAll(string(p.stream[behind:]), "\r", "")
				// Behind it come the lines that the terminal still had there.
				if !found || !strings.HasPrefix(all, before) || !strings.HasSuffix(all, after) || !strings.HasSuffix(after, tail) || len(after) > len(tail)+200*20 {
					t.Errorf("%d bytes, the rule line, %d bytes", len(before), len(after))
				}
			case "asciicast":
				if got, want := shown(play(t, b.Bytes(), 0)), shown(p.term); got != want {
					t.Errorf("it shows\n%slive\n%s", got, want)
				}
			}
		})
	}
}

// numbers records n bytes of numbered lines, no frame of which cuts a line, with many
// checkpoints, and waits until they are durable.
func (p *tape) numbers(n int) {
	p.t.Helper()
	for i := 0; len(p.stream) < n; {
		var piece []byte
		for len(piece) < 64<<10 {
			piece = fmt.Appendf(piece, "line %08d\r\n", i)
			i++
		}
		p.write(piece)
		if i/4000%4 == 0 {
			p.log.AppendCheckpoint(checkpoint.Encode(nil, p.term.State()), true)
		}
		if len(p.stream)>>20 != (len(p.stream)-len(piece))>>20 {
			if err := p.log.Sync(p.t.Context()); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	if err := p.log.Sync(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// until waits for a state that comes by itself.
func (p *tape) until(reached func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatal("it does not come")
		}
	}
}

// steadily reads until the log has lost nothing meanwhile.
func (p *tape) steadily(read func()) {
	for oldest := p.log.Oldest(); ; oldest = p.log.Oldest() {
		if read(); p.log.Oldest() == oldest {
			return
		}
	}
}

// TestExportEvicted: a range that retention has taken all of is refused, and one that
// begins in front of the log says what it misses.
func TestExportEvicted(t *testing.T) {
	st, err := store.Open("store", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler), EvictPace: time.Millisecond, Pace: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p := newTape(t, st, 1, 80, 10)
	p.log.SetRetain(4 << 20)
	p.numbers(12 << 20)
	p.until(func() bool { return p.log.Oldest() > 5<<20 })
	from, to := uint64(1000), uint64(3000)
	if _, err := Export(t.Context(), p, ExportRequest{To: &to}, &bytes.Buffer{}); err != store.ErrEvicted {
		t.Errorf("%v", err)
	}
	for _, from := range []*uint64{&from, nil} {
		asked := uint64(0)
		if from != nil {
			asked = *from
		}
		var got string
		var result *ExportResult
		p.steadily(func() { got, result = exported(t, p, ExportRequest{Format: "raw", From: from}) })
		if got != string(p.stream[result.From:]) || result.From == 0 || result.From > p.log.Oldest() || result.MissedBytes != result.From-asked {
			t.Errorf("%d bytes, %+v", len(got), result)
		}
		var text string
		p.steadily(func() { text, result = exported(t, p, ExportRequest{Format: "text", From: from}) })
		rule := fmt.Sprintf("---- looptape: %d bytes in front of offset %d are no longer retained ----\n", result.From-asked, result.From)
		rest, found := strings.CutPrefix(text, rule)
		want := strings.ReplaceAll(string(p.stream), "\r", "")
		if !found || !strings.HasSuffix(want, rest) || uint64(len(rest)) < uint64(len(p.stream))*13/14-result.From {
			t.Errorf("%.80q, %d bytes of text", text, len(text))
		}
	}
	var r *SearchResult
	p.steadily(func() {
		r, err = Search(t.Context(), p, SearchRequest{Pattern: "none of this", Limit: 1, Scan: 1 << 30}, time.Now)
	})
	if err != nil || r.More || r.MissedBytes != r.From || r.From == 0 {
		t.Errorf("a search misses: %+v %v", r, err)
	}
}

// TestOpenGap: a pane goes on while its log does not. What that lacks is counted, in
// every format and by a search, for every range that reaches into it.
func TestOpenGap(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 4)
	p.write([]byte("one\r\ntwo\r\n"))
	p.term.Feed([]byte("three\r\n")) // on a full disk
	at := func(n uint64) *uint64 { return &n }
	for _, c := range []struct {
		from, to *uint64
		raw      string
		lost     uint64
	}{
		{nil, nil, "one\r\ntwo\r\n", 7},
		{at(5), nil, "two\r\n", 7},
		{at(5), at(12), "two\r\n", 2},
		{at(5), at(10), "two\r\n", 0},
		{at(10), nil, "", 7},
		{at(12), nil, "", 5},
		{at(12), at(14), "", 2},
		{at(17), nil, "", 0},
	} {
		begin, end := uint64(0), uint64(17)
		if c.from != nil {
			begin = *c.from
		}
		if c.to != nil {
			end = *c.to
		}
		name := fmt.Sprintf("%d to %d", begin, end)
		raw, result := exported(t, p, ExportRequest{Format: "raw", From: c.from, To: c.to})
		if raw != c.raw || *result != (ExportResult{Pane: result.Pane, From: begin, Offset: end, MissedBytes: c.lost}) {
			t.Errorf("%s: %q, %+v", name, raw, result)
		}
		want := strings.ReplaceAll(c.raw, "\r", "")
		if c.lost > 0 {
			want += fmt.Sprintf("---- looptape: up to %d bytes from offset %d on are missing ----\n", c.lost, end-c.lost)
		}
		if text, _ := exported(t, p, ExportRequest{Format: "text", From: c.from, To: c.to}); text != want {
			t.Errorf("%s: %q, not %q", name, text, want)
		}
		cast, _ := exported(t, p, ExportRequest{Format: "asciicast", From: c.from, To: c.to})
		if marked := strings.Contains(cast, fmt.Sprintf("up to %d bytes from offset %d on are missing", c.lost, end-c.lost)); marked != (c.lost > 0) {
			t.Errorf("%s: %s", name, cast)
		}
		q, missed, lines := SearchRequest{Pattern: ".", Limit: 1, From: c.from, To: c.to}, uint64(0), ""
		for more := true; more; {
			r, err := Search(t.Context(), p, q, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range r.Matches {
				lines += m.Line + "\n"
			}
			missed += r.MissedBytes
			if more = r.More; !more && r.Offset != end {
				t.Errorf("%s: a search ends at %d", name, r.Offset)
			}
			q = SearchRequest{Pattern: ".", Limit: 1, Cursor: &r.Cursor}
		}
		if missed != c.lost || lines != strings.ReplaceAll(c.raw, "\r", "") {
			t.Errorf("%s: a search finds %q, and misses %d bytes", name, lines, missed)
		}
	}
	for _, from := range []uint64{18, 1 << 40} {
		var e *Error
		if _, err := Export(t.Context(), p, ExportRequest{Format: "raw", From: &from}, &bytes.Buffer{}); !errors.As(err, &e) || e.Code != "not_found.offset" {
			t.Errorf("an export from %d: %v", from, err)
		}
		if _, err := Search(t.Context(), p, SearchRequest{Pattern: ".", Limit: 1, From: &from}, time.Now); !errors.As(err, &e) || e.Code != "not_found.offset" {
			t.Errorf("a search from %d: %v", from, err)
		}
	}
}
