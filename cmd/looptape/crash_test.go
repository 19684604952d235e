package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// numbered is what seq 1 infinity writes to a terminal, up to n bytes.
func numbered(n int) []byte {
	out := make([]byte, 0, n+16)
	for i := 1; len(out) < n; i++ {
		out = strconv.AppendInt(out, int64(i), 10)
		out = append(out, '\r', '\n')
	}
	return out[:n]
}

// crashes is how many times TestKill9 kills a daemon; make crash raises it.
func crashes(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("LOOPTAPE_CRASHES")); err == nil {
		return n
	}
	if testing.Short() {
		return 2
	}
	return 5
}

// TestKill9 kills the daemon at random moments while programs write numbered
// lines at full speed and in a trickle. What the next daemon has is an exact
// prefix, at least up to the durable offset that was seen; its rows follow from
// it; a cursor from before goes on.
func TestKill9(t *testing.T) {
	t.Parallel()
	testKill9(t, newServer(t), crashes(t))
}

// TestKill9Interval: the same holds while the disk is synced only now and then.
func TestKill9Interval(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.end(syscall.SIGTERM)
	s.args = []string{"--sync", "interval=10s"}
	s.start()
	testKill9(t, s, (crashes(t)+1)/2)
}

func testKill9(t *testing.T, s *server, rounds int) {
	t.Helper()
	for round := range rounds {
		c := s.client()
		pids := filepath.Join(t.TempDir(), "pids")
		flood := s.run(c, 80, 24, "sh", "-c", "echo $$ >>"+pids+"; exec seq 1 1000000000000")
		trickle := s.run(c, 80, 24, "sh", "-c", "echo $$ >>"+pids+"; i=1; while :; do echo $i; i=$((i+1)); sleep 0.01; done")
		// The offset that a cursor stands at, and what capture_since gave up to there.
		panes := []*crashed{{pane: flood}, {pane: trickle}}
		for _, p := range panes {
			s.until(c, p.pane, "writing", func(i paneInfo) bool { return i.Durable > 0 })
		}
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		for _, p := range panes {
			p.look(s, c)
		}
		s.end(syscall.SIGKILL)
		assertGone(t, pids)

		began := time.Now()
		s.start()
		t.Logf("round %d: %d and %d bytes seen durable; the next daemon listens after %v", round, panes[0].durable, panes[1].durable, time.Since(began))
		c = s.client()
		for _, p := range panes {
			p.check(s, c)
		}
	}
}

// crashed is a pane before and after a crash.
type crashed struct {
	pane    string
	durable uint64 // seen before
	epoch   uint32
	cursor  string // of an answer before, for the offset at
	at      uint64
}

func (p *crashed) look(s *server, c *wire.Client) {
	s.t.Helper()
	info := call[paneInfo](s, c, "pane.get", obj{"pane": p.pane})
	p.durable, p.epoch = info.Durable, info.Epoch
	a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": p.pane, "since": info.Durable / 2, "max_bytes": 1, "format": "raw"})
	p.cursor, p.at = a.Cursor, a.Offset
}

type sinceAnswer struct {
	From, Offset, End uint64
	MissedBytes       uint64 `json:"missed_bytes"`
	Cursor, Text      string
	Boundary          string
	Data              []byte
	Missed, More      bool
	Closed            bool
}

func (p *crashed) check(s *server, c *wire.Client) {
	t := s.t
	t.Helper()
	raw := s.raw(c, p.pane)
	if uint64(len(raw)) < p.durable {
		t.Fatalf("%s: %d bytes are there, %d had been durable", p.pane, len(raw), p.durable)
	}
	if want := numbered(len(raw)); !bytes.Equal(raw, want) {
		t.Fatalf("%s: the log is no prefix: byte %d of %d differs", p.pane, common(raw, want), len(raw))
	}
	info := call[paneInfo](s, c, "pane.get", obj{"pane": p.pane})
	if info.State != "archived" || info.Epoch <= p.epoch {
		t.Fatalf("%s: %+v after epoch %d", p.pane, info, p.epoch)
	}

	// The rows follow from the bytes.
	want, err := layOut(raw, 80)
	if err != nil {
		t.Fatal(err)
	}
	got, bounds := s.rows(c, p.pane)
	if n := len(want) - len(got); n > 0 {
		want = want[n:]
	}
	if int(bounds.End-bounds.Oldest) != len(got) || len(want) > 10024 || !slices.Equal(got[:len(want)], want) {
		t.Fatalf("%s: %d rows differ from those of %d bytes", p.pane, len(got), len(raw))
	}

	// The cursor goes on where it stood; then comes the gap, with its size.
	at, cursor := p.at, p.cursor
	for {
		a := call[sinceAnswer](s, c, "pane.capture_since", obj{"cursor": cursor, "format": "raw", "max_bytes": 16 << 20})
		if a.Missed {
			if at != uint64(len(raw)) || a.From != info.Offset || a.MissedBytes != a.From-at || !a.Closed {
				t.Fatalf("%s: the gap of %d bytes, %d log bytes: %+v at %d", p.pane, info.Offset, len(raw), a, at)
			}
			return
		}
		if !a.More || !bytes.Equal(a.Data, raw[at:at+uint64(len(a.Data))]) {
			t.Fatalf("%s: from the cursor at %d: %d bytes that differ, or no gap behind them", p.pane, at, len(a.Data))
		}
		at, cursor = a.Offset, a.Cursor
	}
}

// assertGone waits until none of the processes in the file lives: the terminal
// of a dead daemon hangs up.
func assertGone(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(raw)) {
		n, _ := strconv.Atoi(pid)
		for deadline := time.Now().Add(patience); syscall.Kill(n, 0) == nil; time.Sleep(5 * time.Millisecond) {
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n)); err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %d outlives its terminal", n)
			}
		}
	}
}
