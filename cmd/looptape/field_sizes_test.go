package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestFieldSizes is F9: text at 80x24, at 40x10, and at 80x24 again: the past has the
// sizes of then, and an asciicast has its resizes between the right texts.
func TestFieldSizes(t *testing.T) {
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "sh", "-c", "stty -echo; echo one; read x; echo two; read x; echo three")
	var ends [3]uint64 // of what was written in each size
	for i, text := range []string{"one\r\n", "two\r\n", "three\r\n"} {
		if i > 0 {
			size := [][2]int{{40, 10}, {80, 24}}[i-1]
			call[obj](s, c, "pane.resize", obj{"pane": pane, "cols": size[0], "rows": size[1]})
			call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
			ends[i] = ends[i-1]
		}
		ends[i] += uint64(len(text))
		s.until(c, pane, "at "+text, func(p paneInfo) bool { return p.Offset == ends[i] })
	}
	s.until(c, pane, "exited", exited)
	for i, want := range []struct {
		offset     uint64
		cols, rows int
		text       string
	}{
		{ends[0] - 2, 80, 24, "one"},
		{ends[1] - 2, 40, 10, "one\ntwo"},
		{ends[2], 80, 24, "one\ntwo\nthree"},
	} {
		got := call[struct {
			Cols, Rows int
			Text       string
		}](s, c, "pane.capture_at", obj{"pane": pane, "offset": want.offset})
		lines := strings.Split(got.Text, "\n")
		if got.Cols != want.cols || got.Rows != want.rows || len(lines) != want.rows || len(lines[0]) != want.cols {
			t.Errorf("%d: at offset %d the size is %dx%d, %d lines of %d", i, want.offset, got.Cols, got.Rows, len(lines), len(lines[0]))
		}
		if text := strings.Join(strings.Fields(got.Text), "\n"); text != want.text {
			t.Errorf("%d: at offset %d the screen has %q, want %q", i, want.offset, text, want.text)
		}
	}
	var story string
	for _, line := range strings.Split(strings.TrimSpace(s.export(c, pane, "asciicast")), "\n")[1:] {
		var event [3]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if event[1] == "o" {
			story += event[2].(string)
		} else {
			story += fmt.Sprintf("<%s %s>", event[1], event[2])
		}
	}
	if want := "one\r\n<r 40x10>two\r\n<r 80x24>three\r\n<x 0>"; story != want {
		t.Errorf("the asciicast is %q, want %q", story, want)
	}
}
