package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"looptape/cmd/internal/attach"
)

// TestAttachSize: the size of a pane is that of whoever was active last.
func TestAttachSize(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "/bin/sh", "-c", "stty -echo; while read x; do stty size; done")
	asked := 0
	// size is what the program itself has, once the clients are to have it.
	size := func(what string, cols, rows int, clients ...*attached) {
		t.Helper()
		s.until(c, pane, fmt.Sprintf("%dx%d %s", cols, rows, what), func(p paneInfo) bool { return p.Cols == cols && p.Rows == rows })
		asked++
		call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
		want := fmt.Sprintf("%d %d", rows, cols)
		for _, a := range clients {
			a.until(want+" "+what, func() bool {
				b := a.screen.Term.Bounds()
				return b.Cols == cols && b.Rows == rows && strings.Contains(screenText(a.screen.Term), want)
			})
		}
	}
	reader := s.attach(attach.Params{Pane: pane, Cols: 33, Rows: 7})
	reader.Viewport(33, 7)
	size("with a reader", 80, 24, reader)

	one := s.attach(attach.Params{Pane: pane, Mode: "write", Cols: 100, Rows: 30})
	if f := one.frames[0]; f.Cols != 100 || f.Rows != 30 {
		t.Errorf("the first snapshot of a writer is %dx%d", f.Cols, f.Rows)
	}
	size("a writer came", 100, 30, reader, one)
	two := s.attach(attach.Params{Pane: pane, Mode: "write", Cols: 60, Rows: 20})
	size("another writer came", 60, 20, reader, one)
	if err := one.Input([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	size("the first one typed", 100, 30, reader, one, two)
	two.Viewport(61, 21)
	size("the other one's viewport changed", 61, 21, reader, one, two)
	call[obj](s, c, "pane.resize", obj{"pane": pane, "cols": 50, "rows": 10})
	size("pane.resize", 50, 10, reader, one, two)
	two.Input([]byte("\n"))
	size("the other one typed again", 61, 21, reader, one, two)
	// One without a viewport types without a say in the size.
	bare := s.attach(attach.Params{Pane: pane, Mode: "write"})
	bare.Input([]byte("\n"))
	size("one without a viewport typed", 61, 21, reader, one, two, bare)
	two.Detach()
	size("the other one left", 100, 30, reader, one, bare)
	bare.Detach()
	<-bare.ended
	one.Detach()
	<-one.ended
	size("all writers left", 100, 30, reader)
	// Nobody was resynchronised, each resize comes with a snapshot at its offset, and
	// epochs count the resizes.
	reader.mu.Lock()
	defer reader.mu.Unlock()
	var sizes []string
	for i, f := range reader.frames {
		if f.Type == attach.Resync {
			t.Error("a resync")
		}
		if f.Type != attach.Resize {
			continue
		}
		if next := reader.frames[i+1]; next.Type != attach.Snapshot || next.Offset != f.Offset || next.Cols != f.Cols || next.Rows != f.Rows || next.Epoch != f.Epoch {
			t.Errorf("behind a resize: %v", next.Type)
		}
		sizes = append(sizes, fmt.Sprintf("%dx%d/%d", f.Cols, f.Rows, f.Epoch))
	}
	if got := strings.Join(sizes, " "); got != "100x30/2 60x20/3 100x30/4 61x21/5 50x10/6 61x21/7 100x30/8" {
		t.Error(got)
	}
	reader.checkStream(s.raw(c, pane))
}

// TestAttachUnmoved: reading, in every form, sends nothing to those who are attached
// (seed 000, case 20).
func TestAttachUnmoved(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "/bin/sh", "-c", "seq 1 500; exec sleep 600")
	clients := []*attached{
		s.attach(attach.Params{Pane: pane, Mode: "write", Cols: 80, Rows: 24, History: 100}),
		s.attach(attach.Params{Pane: pane, History: 1000}),
	}
	for _, a := range clients {
		a.until("everything", func() bool {
			end := false
			for _, f := range a.frames {
				end = end || f.Type == attach.Scrollback && len(f.Data) == 0
			}
			return end && strings.Contains(screenText(a.screen.Term), "500")
		})
	}
	frames := []int{len(clients[0].frames), len(clients[1].frames)}
	for i := range 50 {
		for _, params := range []obj{{}, {"tail": 3}, {"epoch": 1, "start": i, "end": i + 5}, {"epoch": 9, "start": 0}, {"tail": 1, "epoch": 1}} {
			params["pane"] = pane
			try[json.RawMessage](s, c, "pane.capture_rows", params)
		}
		for _, verb := range []string{"pane.capture", "pane.capture_since", "pane.get", "pane.export", "doctor"} {
			params := obj{"pane": pane}
			if verb == "doctor" {
				params = obj{}
			}
			call[json.RawMessage](s, c, verb, params)
		}
	}
	// What a complaint proves: nothing else was under way.
	for i, a := range clients {
		if err := a.Viewport(65535, 65535); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // a reader is not answered
			a.Input([]byte("x"))
		}
		a.until("the complaint", func() bool { return a.count(attach.Error) > 0 })
		if n := len(a.frames) - 1; n != frames[i] {
			t.Errorf("client %d: %d more frames: %s", i, n-frames[i], a.told())
		}
	}
}

// TestAttachScrollback: the history that was asked for, newest rows first, without a
// gap, as capture_rows has it.
func TestAttachScrollback(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 30, 5, "/bin/sh", "-c", "seq 1 9000; printf 'w\u00ee\u6f22d'; exec sleep 600")
	s.until(c, pane, "through with it", func(p paneInfo) bool { return p.Offset == 9*3+90*4+900*5+8001*6+7 })
	rows, bounds := s.rows(c, pane)
	for _, asked := range []int{0, 1, 7, 3000, 100000} {
		a := s.attach(attach.Params{Pane: pane, History: asked})
		got := map[uint64]string{}
		next, ends := bounds.Active, 0
		a.until("the history", func() bool { return asked == 0 || a.scrolled() })
		a.mu.Lock()
		for _, f := range a.frames {
			if f.Type != attach.Scrollback {
				continue
			}
			lines := strings.Split(string(f.Data), "\n")
			lines = lines[:len(lines)-1]
			if len(lines) == 0 {
				ends++
			}
			if f.Epoch != 1 || f.Start+uint64(len(lines)) != next || len(f.Data) > 64<<10 {
				t.Errorf("%d rows from %d on, where those before %d are next", len(lines), f.Start, next)
			}
			for i, line := range lines {
				got[f.Start+uint64(i)] = line
			}
			next = f.Start
		}
		a.mu.Unlock()
		want := min(uint64(asked), bounds.Active-bounds.Oldest)
		if uint64(len(got)) != want || next != bounds.Active-want || ends != min(asked, 1) {
			t.Errorf("of %d rows %d came, down to %d, with %d ends", asked, len(got), next, ends)
		}
		for n, line := range got {
			if line != rows[n-bounds.Oldest] {
				t.Fatalf("row %d is %q, and %q for capture_rows", n, line, rows[n-bounds.Oldest])
			}
		}
		a.Close()
	}
}

// scrolled says whether all of the history has come; the lock is held.
func (a *attached) scrolled() bool {
	for _, f := range a.frames {
		if f.Type == attach.Scrollback && len(f.Data) == 0 {
			return true
		}
	}
	return false
}
