package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"looptape/cmd/internal/wire"
)

// TestRealBuild records a real build twice: by looptape, and by script(1)
// inside the pane. Stream and rows must be what the independent recording says.
func TestRealBuild(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatalf("the test needs script(1), from util-linux: %v", err)
	}
	s := newServer(t)
	c := s.client()
	file := filepath.Join(t.TempDir(), "typescript")
	build := "cd ../.. && go vet -x ./cmd/internal/manifest ./cmd/internal/wire && go list -deps ./..."
	wd, _ := os.Getwd()
	type ids struct{ Session, Pane string }
	session := call[ids](s, c, "session.create", obj{}).Session
	pane := call[ids](s, c, "window.create", obj{
		"session": session, "cwd": wd, "cols": 72, "rows": 20,
		"argv": []string{script, "-q", "-e", "-c", build, file},
	}).Pane
	s.until(c, pane, "exited", exited)

	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// script(1) frames what it records by a line of its own on either side.
	_, recorded, _ = bytes.Cut(recorded, []byte("\n"))
	if i := bytes.LastIndex(recorded, []byte("\nScript done on ")); i >= 0 {
		recorded = recorded[:i]
	}
	if len(recorded) < 5000 {
		t.Fatalf("the build wrote %d bytes only:\n%s", len(recorded), recorded)
	}
	if got := s.raw(c, pane); !bytes.Equal(got, recorded) {
		t.Fatalf("the recording differs from script's at byte %d: %d bytes and %d", common(got, recorded), len(got), len(recorded))
	}

	want, err := layOut(recorded, 72)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := s.rows(c, pane)
	if len(got) > len(want) { // a screen that is not full
		want = append(want, slices.Repeat([]string{strings.Repeat(" ", 72)}, len(got)-len(want))...)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("rows differ: %d and %d", len(got), len(want))
	}

	// The stream in pieces by cursors, as raw bytes and as text.
	text, data := s.poll(c, pane, "text"), s.poll(c, pane, "raw")
	if plain := strings.ReplaceAll(string(recorded), "\r\n", "\n"); text != plain {
		t.Fatalf("text by cursors differs at byte %d: %d bytes and %d", common([]byte(text), []byte(plain)), len(text), len(plain))
	}
	if data != string(recorded) {
		t.Fatalf("data by cursors differs at byte %d", common([]byte(data), recorded))
	}
}

// poll reads the whole stream of a pane by small steps of capture_since.
func (s *server) poll(c *wire.Client, pane, format string) string {
	s.t.Helper()
	type answer struct {
		Cursor       string
		Text         string
		Data         []byte
		Missed, More bool
	}
	var all strings.Builder
	params := obj{"pane": pane, "since": 0, "format": format, "max_bytes": 997, "max_lines": 50}
	for {
		a := call[answer](s, c, "pane.capture_since", params)
		all.WriteString(a.Text)
		all.Write(a.Data)
		if a.Missed {
			s.t.Fatal("missed")
		}
		if !a.More {
			return all.String()
		}
		delete(params, "since")
		params["cursor"] = a.Cursor
	}
}

// common is the length of the common prefix of a and b.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// TestPrintAndExit is the classic loss: a program that prints and exits at once.
func TestPrintAndExit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const runs = 200
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range runs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c, err := dial(s.dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			n := 1 + i*37%5000
			pane := s.run(c, 80, 24, "seq", "1", fmt.Sprint(n))
			s.until(c, pane, "exited", exited)
			var want bytes.Buffer
			for j := 1; j <= n; j++ {
				fmt.Fprintf(&want, "%d\r\n", j)
			}
			if got := s.raw(c, pane); !bytes.Equal(got, want.Bytes()) {
				t.Errorf("seq 1 %d: %d bytes recorded of %d", n, len(got), want.Len())
			}
		})
	}
	all.Wait()
}
