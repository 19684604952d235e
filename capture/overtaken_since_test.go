package capture

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// hooked is a pane on which something happens right behind a look at it.
type hooked struct {
	*tape
	behind func()
}

func (p *hooked) View(ctx context.Context, read func(*replay.Terminal, bool)) error {
	err := p.tape.View(ctx, read)
	if hook := p.behind; hook != nil {
		p.behind = nil
		hook()
	}
	return err
}

// TestSinceOvertaken: what a reader has seen of a pane is evicted before it has read
// a byte: it goes on in what is left, of the pane as it is then.
func TestSinceOvertaken(t *testing.T) {
	st, err := store.Open("store", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler), Retain: 4 << 20, EvictPace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p := newTape(t, st, 1, 80, 24)
	p.write([]byte("begin\r\n"))
	seen := uint64(len(p.stream))
	flood := func() {
		for i := 0; p.log.Oldest() <= seen; i++ {
			for p.log.Room() <= 0 {
				<-p.log.RoomC()
			}
			p.write(bytes.Repeat(fmt.Appendf(nil, "line %d\r\n", i), 10000))
			p.checkpoint()
		}
	}
	for _, format := range []string{"text", "raw"} {
		zero := uint64(0)
		a, err := Since(t.Context(), &hooked{p, flood}, SinceRequest{Since: &zero, Format: format, Keep: "head", MaxBytes: 100, MaxLines: 100}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		end := uint64(len(p.stream))
		if !a.Missed || a.MissedBytes != a.From || a.From <= seen || a.Offset > a.End || a.End > end || !a.More {
			t.Errorf("%s: %+v", format, a)
		}
		if format == "raw" && !bytes.Equal(*a.Data, p.stream[a.From:a.Offset]) {
			t.Errorf("%q", *a.Data)
		}
		seen = end
	}
}

// TestSinceBehindLostSequence: what was lost on a full disk may end within a sequence
// or a character. The pane's terminal has seen it, and so the text goes on behind it.
func TestSinceBehindLostSequence(t *testing.T) {
	for i, c := range []struct{ lost, then, want string }{
		{"\x1b[38;2;1", "53;153;153mred", "red"},
		{"x\xe6\xbc", "\xa2y", "漢y"},
		{"\x1b]0;ti", "tle\ax", "x"},
		{"x\r", "\ny", "\ny"},
	} {
		p := newTape(t, newStore(t), i, 20, 5)
		p.write([]byte("before\r\n"))
		p.term.Feed([]byte(c.lost))
		p.stream = append(p.stream, c.lost...)
		zero := uint64(0)
		q := SinceRequest{Since: &zero, Format: "text", Keep: "head", MaxBytes: 1000, MaxLines: 100}
		up := p.since(q)
		q.Since, q.Cursor = nil, &up.Cursor
		open := p.since(q) // while the disk takes nothing
		p.log.AppendGap(store.Time{}, uint64(len(c.lost)), nil)
		p.log.AppendCheckpoint(checkpoint.Encode(nil, p.term.State()), true)
		p.write([]byte(c.then))
		for name, cursor := range map[string]string{"while it was open": open.Cursor, "before": up.Cursor} {
			q.Cursor = &cursor
			if a := p.since(q); *a.Text != c.want {
				t.Errorf("%q, then %q, from a cursor of %s: %q, not %q", c.lost, c.then, name, *a.Text, c.want)
			}
		}
		if !open.Missed || open.MissedBytes != uint64(len(c.lost)) || *up.Text != "before\n" {
			t.Errorf("%q: %+v", c.lost, open)
		}
	}
}

// TestTranscriptBehindGap: the lines behind a gap stand where the pane's terminal had
// them, not where they would without what is missing, in exports and in searches.
func TestTranscriptBehindGap(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 5)
	p.write([]byte("one\r\ntwo"))
	p.term.Feed([]byte(" and a half\r\nthree\r\n"))
	lost := len(" and a half\r\nthree\r\n")
	p.log.AppendGap(store.Time{}, uint64(lost), nil)
	p.checkpoint()
	p.write([]byte("four\r\nfive\r\n"))
	var b bytes.Buffer
	if _, err := Export(t.Context(), p, ExportRequest{Format: "text"}, &b); err != nil {
		t.Fatal(err)
	}
	// Of the line that goes on in the gap there is what was seen before, and the whole.
	want := "one\ntwo\n---- looptape: up to 20 bytes from offset 8 on are missing ----\ntwo and a half\nthree\nfour\nfive\n"
	if b.String() != want {
		t.Errorf("the transcript:\n%s\nnot\n%s", b.String(), want)
	}
	var found string
	a, err := Search(t.Context(), p, SearchRequest{Pattern: ".", Limit: 100}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range a.Matches {
		found += m.Line + "\n"
	}
	if found != "one\ntwo\ntwo and a half\nthree\nfour\nfive\n" {
		t.Errorf("search finds\n%s", found)
	}
	b.Reset()
	if _, err := Export(t.Context(), p, ExportRequest{Format: "asciicast"}, &b); err != nil {
		t.Fatal(err)
	}
	if got, want := shown(play(t, b.Bytes(), 0)), shown(p.term); got != want {
		t.Errorf("the recording shows\n%slive\n%s", got, want)
	}
}
