package recorder

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// TestFrames: what a program prints at one go, however dear, is recorded in frames of
// which each is replayed soon: none does much more work than frameWork, and together
// they are what was printed.
func TestFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and all of it in one goroutine")
	}
	st := openStore(t, t.TempDir())
	defer st.Close()
	for i, c := range []struct {
		name       string
		cols, rows int
		size       int
		begin      string
		piece      string
	}{
		{"lines", 80, 24, 256 << 10, "", "some text, then a line end\r\n"},
		{"repeat", 80, 24, 128 << 10, "", "x\x1b[65535b"},
		{"coloured clear", 300, 100, 32 << 10, "", "\x1b[41m\x1b[2J"},
		{"coloured clear, wide", 65535, 4, 4 << 10, "", "\x1b[41m\x1b[2J"},
		{"coloured clear, large", 2048, 2048, 400, "", "\x1b[41m\x1b[2J"},
		{"insert, wide", 65535, 4, 2 << 10, strings.Repeat("x", 3*65535) + "\x1b[4h\x1b[H", "x"},
		{"coloured lines, wide", 65535, 4, 2 << 10, "\x1b[41m", "\n"},
	} {
		log, err := st.Create(uint64(i) + 1)
		if err != nil {
			t.Fatal(err)
		}
		l := gapLoop(log, c.cols, c.rows)
		l.batch = batchBytes
		if c.begin != "" {
			l.append(store.Output, []byte(c.begin))
		}
		want := bytes.Repeat([]byte(c.piece), c.size/len(c.piece))
		l.record(want)
		if want = append([]byte(c.begin), want...); l.term.Offset() != uint64(len(want)) {
			t.Fatalf("%s: %d of %d bytes recorded", c.name, l.term.Offset(), len(want))
		}
		term := replay.New(c.cols, c.rows, 50)
		r, err := log.Read(store.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			before := term.Work()
			if err := replay.Apply(term, f); err != nil {
				t.Fatal(err)
			}
			term.TakeReplies()
			if work := term.Work() - before; len(got) >= len(c.begin) && work > 3*frameWork && len(f.Data) > frameLeast {
				t.Errorf("%s: a frame of %d bytes takes %d MiB of work", c.name, len(f.Data), work>>20)
			}
			got = append(got, f.Data...)
		}
		r.Close()
		if !bytes.Equal(got, want) {
			t.Errorf("%s: recorded %d bytes, not the %d that were printed", c.name, len(got), len(want))
		}
	}
}

// TestNextBatch: a slow frame makes the next one so small that it takes batchTime;
// quick ones grow.
func TestNextBatch(t *testing.T) {
	for _, c := range []struct {
		batch, n int
		took     time.Duration
		want     int
	}{
		{64 << 10, 64 << 10, time.Millisecond, 128 << 10},
		{256 << 10, 256 << 10, 10 * time.Millisecond, 256 << 10},
		{256 << 10, 256 << 10, 11 * time.Millisecond, 128 << 10},
		{256 << 10, 256 << 10, 160 * time.Millisecond, 16 << 10},
		{256 << 10, 16 << 10, 40 * time.Millisecond, 4 << 10},
		{64 << 10, 64 << 10, time.Hour, 1 << 10},
		{1 << 10, 1 << 10, time.Second, 1 << 10},
	} {
		if got := nextBatch(c.batch, c.n, c.took); got != c.want {
			t.Errorf("behind %d of %d bytes in %v: %d, want %d", c.n, c.batch, c.took, got, c.want)
		}
	}
}
