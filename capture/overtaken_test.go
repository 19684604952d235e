package capture

import (
	"bytes"
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
	got, result := exported(t, p, ExportRequest{Format: "raw", From: &from})
	if got != string(p.stream[result.From:]) || result.From != p.log.Oldest() || result.MissedBytes != result.From-from {
		t.Errorf("%d bytes, %+v", len(got), result)
	}
	text, _ := exported(t, p, ExportRequest{Format: "text", From: &from})
	if want := strings.ReplaceAll(string(p.stream), "\r", ""); !strings.HasSuffix(want, text) || uint64(len(text)) < uint64(len(p.stream))*13/14-result.From {
		t.Errorf("%d bytes of text", len(text))
	}
}
