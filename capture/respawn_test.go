package capture

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// TestSinceRespawn follows one pane by one reader: what it is told before a
// respawn, of it, and behind it.
func TestSinceRespawn(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 5)
	ask := func(q SinceRequest) *SinceResult {
		t.Helper()
		q.Format, q.Keep, q.MaxBytes, q.MaxLines = "text", "head", 1000, 100
		return p.since(q)
	}
	p.write([]byte("one\r\n\xc3"))
	first := ask(SinceRequest{})
	p.closed = true
	if a := ask(SinceRequest{Cursor: &first.Cursor}); *a.Text != "\uFFFD" || !a.Closed || a.More {
		t.Errorf("the end of the first: %+v %q", a, *a.Text)
	}
	p.closed = false
	p.respawn()
	_, err := Since(t.Context(), p, SinceRequest{Cursor: &first.Cursor}, time.Now)
	var conflict *Error
	if !errors.As(err, &conflict) || conflict.Code != "conflict.respawned" {
		t.Errorf("a cursor from before: %v", err)
	}

	// A range that reaches up to the respawn, though nothing stands behind it yet.
	zero, at := uint64(0), uint64(6)
	up := ask(SinceRequest{Since: &zero})
	if *up.Text != "one\n\uFFFD" || up.Boundary != "respawn" || !up.More || up.Closed || up.Offset != at {
		t.Errorf("up to the respawn: %+v %q", up, *up.Text)
	}
	fresh := ask(SinceRequest{})
	if *fresh.Text != "" || fresh.Offset != at {
		t.Errorf("the screen: %+v %q", fresh, *fresh.Text)
	}
	for name, q := range map[string]SinceRequest{"since": {Since: &at}, "its cursor": {Cursor: &up.Cursor}, "the screen's cursor": {Cursor: &fresh.Cursor}} {
		if a := ask(q); *a.Text != "" || a.More || a.Closed || a.Boundary != "" || a.From != at || a.Missed {
			t.Errorf("%s, before the new program writes: %+v %q", name, a, *a.Text)
		}
	}
	p.write([]byte("\xa9two"))
	for name, q := range map[string]SinceRequest{"since": {Since: &at}, "its cursor": {Cursor: &up.Cursor}, "the screen's cursor": {Cursor: &fresh.Cursor}} {
		if a := ask(q); *a.Text != "\uFFFDtwo" || a.More || a.Boundary != "" || a.From != at {
			t.Errorf("%s: %+v %q", name, a, *a.Text)
		}
	}
}

// TestSinceRespawnOwed: an unfinished character that a limit refuses in front of a
// respawn comes with the next call, and only then the boundary.
func TestSinceRespawnOwed(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 5)
	p.write([]byte("ab\xe6\xbc"))
	p.respawn()
	p.write([]byte("cd"))
	zero := uint64(0)
	q := SinceRequest{Since: &zero, Format: "text", Keep: "head", MaxBytes: 2, MaxLines: 10}
	var got []string
	for range 3 {
		a := p.since(q)
		got = append(got, *a.Text+" "+a.Boundary)
		q.Since, q.Cursor = nil, &a.Cursor
	}
	if want := []string{"ab ", "\uFFFD respawn", "cd "}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestSinceFarTail: the newest of a range that is longer than what one call scans
// is that in front of the first respawn, wherever it is.
func TestSinceFarTail(t *testing.T) {
	if testing.Short() {
		t.Skip("80 MiB")
	}
	st, err := store.Open("store", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p := newTape(t, st, 1, 80, 24)
	line := 0
	lines := func(n int) {
		for end := len(p.stream) + n; len(p.stream) < end; {
			var b []byte
			for range 1 << 14 {
				b = fmt.Appendf(b, "line %d\r\n", line)
				line++
			}
			for p.log.Room() <= 0 {
				<-p.log.RoomC()
			}
			p.write(b)
			if len(p.stream)%(1<<22) < len(b) {
				p.checkpoint()
			}
		}
	}
	var ends []uint64
	for _, n := range []int{36 << 20, 1 << 20, 0, 20 << 20} {
		lines(n)
		p.write([]byte("last of it\r\n"))
		ends = append(ends, uint64(len(p.stream)))
		p.respawn()
	}
	lines(17 << 20)
	end := uint64(len(p.stream))
	for i, from := range append([]uint64{0}, ends...) {
		until := end
		if i < len(ends) {
			until = ends[i]
		}
		for _, start := range []uint64{from, from + (until-from)/3} {
			a := p.since(SinceRequest{Since: &start, Format: "text", Keep: "tail", MaxBytes: 40, MaxLines: 2})
			raw := p.since(SinceRequest{Since: &start, Format: "raw", Keep: "tail", MaxBytes: 100})
			want := strings.ReplaceAll(string(p.stream[max(start, until-100):until]), "\r", "")
			want = want[tailStart([]byte(want), 40, 2):]
			if a.Offset != until || *a.Text != want || (a.Boundary == "respawn") != (i < len(ends)) || a.From+uint64(len(*a.Text)+strings.Count(*a.Text, "\n")) != until {
				t.Errorf("from %d, up to %d: %+v %q, not %q", start, until, a, *a.Text, want)
			}
			if raw.Offset != until || !bytes.Equal(*raw.Data, p.stream[max(start, until-100):until]) || raw.Boundary != a.Boundary {
				t.Errorf("raw from %d, up to %d: %+v", start, until, raw)
			}
		}
	}
}

// TestExportRespawn: a rule line in the transcript and a marker in the asciicast;
// what each of the programs wrote is there once.
func TestExportRespawn(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 4)
	p.write([]byte("\x1b]0;first\aone\r\ntwo\x1b[?1049h\x1b[H\x1b[31mfull screen\x1b]0;"))
	p.log.Append(replay.MarkExit, store.Time{Wall: 1e9}, replay.AppendExit(nil, replay.Exit{Number: 3}))
	p.log.Append(replay.MarkRestart, store.Time{Wall: 2e9}, replay.AppendRestart(nil, 0))
	p.term.Restart(0)
	p.respawn()
	p.write([]byte("three\r\n"))
	p.respawn()
	export := func(format string) string {
		t.Helper()
		var b bytes.Buffer
		if _, err := Export(t.Context(), p, ExportRequest{Pane: "p1", Format: format, Header: CastHeader{Command: ShellQuote([]string{"last"})}}, &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	times := regexp.MustCompile(`, \d{4}-[^ ]+ `)
	at := uint64(len(p.stream))
	want := fmt.Sprintf("one\ntwo\nfull screen\n---- looptape: the recording ended at offset %d, T ----\n---- looptape: respawned at offset %[1]d, T ----\nthree\n---- looptape: respawned at offset %d, T ----\n", at-7, at)
	if got := times.ReplaceAllString(export("text"), ", T "); got != want {
		t.Errorf("the transcript:\n%s\nnot\n%s", got, want)
	}

	cast := export("asciicast")
	header, _, _ := strings.Cut(cast, "\n")
	if strings.Contains(header, "last") {
		t.Errorf("the recording begins with another command than its header says: %s", header)
	}
	_, _, events := readCast(t, []byte(cast))
	var marks []string
	for _, e := range events {
		if e.code != "o" {
			marks = append(marks, e.code+" "+e.data)
		}
	}
	wantMarks := []string{"x 3", fmt.Sprintf("m looptape: the recording ended at offset %d", at-7),
		fmt.Sprintf("m looptape: respawned at offset %d", at-7), fmt.Sprintf("m looptape: respawned at offset %d", at)}
	if !slices.Equal(marks, wantMarks) {
		t.Errorf("marks %q, not %q", marks, wantMarks)
	}
	if got, want := shown(play(t, []byte(cast), 0)), shown(p.term); got != want {
		t.Errorf("the recording shows\n%slive\n%s", got, want)
	}
}
