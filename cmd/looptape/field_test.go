package main_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"looptape/replay"
	"looptape/store"
)

// The cases of the field, by their numbers in shared/cases/field.md.

// TestFieldSpinner is F1: a line that is redrawn for ever, without one LF, and
// evicted: reading starts at a checkpoint, never inside a sequence.
func TestFieldSpinner(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	const spin = `\r\033[38;2;153;153;153m⠋ x\033[0m`
	pane := call[struct{ Pane string }](s, c, "window.create", obj{
		"session": session, "retain": 4 << 20,
		"argv": []string{"sh", "-c", `printf '` + spin + `%.0s' $(seq 1000) >one; i=0; while [ $i -lt 700 ]; do cat one; i=$((i+1)); done`},
		"cwd":  t.TempDir(),
	}).Pane
	s.until(c, pane, "exited", exited)
	s.until(c, pane, "evicted", func(p paneInfo) bool { return p.Oldest > 0 })
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatalf("stop: %v\n%s", err, s.log)
	}
	s.start()
	c = s.client()
	leftover := regexp.MustCompile(`\d;\d+m|153`)
	rows, _ := s.rows(c, pane)
	info := call[paneInfo](s, c, "pane.get", obj{"pane": pane})
	a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane, "since": 0, "max_bytes": 1 << 20, "max_lines": 1 << 20})
	if !a.Missed || a.MissedBytes != info.Oldest || a.From != info.Oldest {
		t.Errorf("from the start: missed %d up to %d, oldest is %d", a.MissedBytes, a.From, info.Oldest)
	}
	transcript := s.export(c, pane, "text")
	for what, text := range map[string]string{"rows": strings.Join(rows, "\n"), "stream": a.Text, "transcript": transcript} {
		if found := leftover.FindString(text); found != "" {
			t.Errorf("%s hold the rest of a sequence: %q", what, found)
		}
	}
	if strings.TrimRight(rows[0], " ") != "⠋ x" || !strings.Contains(a.Text, "⠋ x\n⠋ x") || transcript != fmt.Sprintf("---- looptape: %d bytes in front of offset %d are no longer retained ----\n⠋ x\n", info.Oldest, info.Oldest) {
		t.Errorf("rows %q, transcript %q", rows[0], transcript)
	}
}

// TestFieldModes is F2: modes that were set once, then twice the retained size
// of repainting, eviction, restart: at the last offset they are all there.
func TestFieldModes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	pane := call[struct{ Pane string }](s, c, "window.create", obj{
		"session": session, "retain": 4 << 20, "cwd": t.TempDir(),
		"argv": []string{"sh", "-c", `stty raw -echo; printf 'behind\r\n\033[?1049h\033[?1000h\033[?1002h\033[?1006h\033[?2004h\033[2 q\033]0;T\007\033[?25l'
			i=0; while [ $i -lt 4000 ]; do printf '\033[H\033[3%dm%2500d' $((i%8)) $i; i=$((i+1)); done >page; cat page page; sleep 1000`},
	}).Pane
	s.until(c, pane, "evicted", func(p paneInfo) bool { return p.Oldest > 0 && p.Offset > 19<<20 })
	before := call[obj](s, c, "pane.capture", obj{"pane": pane})
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatalf("stop: %v\n%s", err, s.log)
	}
	// The archive shows the main screen, as it was behind.
	s.start()
	c = s.client()
	after := call[struct{ Screen, Text string }](s, c, "pane.capture", obj{"pane": pane})
	if after.Screen != "primary" || !strings.HasPrefix(after.Text, "behind ") || strings.TrimSpace(after.Text) != "behind" {
		t.Errorf("afterwards: %q %q", after.Screen, after.Text)
	}
	s.end(syscall.SIGTERM)

	// The exact last state is what the log says at its last offset.
	st, err := store.Open(filepath.Join(s.dir, "store"), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log, err := st.Log(0)
	if err != nil {
		t.Fatal(err)
	}
	term, err := replay.HydrateAt(log, log.End().Offset)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	b := term.Bounds()
	for row := range term.Rows(b.Active, b.End) {
		text.Write(row.Text)
		text.WriteByte('\n')
	}
	if got := strings.TrimSuffix(text.String(), "\n"); b.Screen != "alternate" || got != before["text"] || term.Title() != "T" || term.Cursor().Visible {
		t.Errorf("at the last offset: %s screen, title %q, cursor %+v, text equal %v", b.Screen, term.Title(), term.Cursor(), got == before["text"])
	}
	// The modes show in what is typed: mouse events in SGR form, pastes in brackets.
	if got := replay.EncodeMouse(replay.Mouse{Action: replay.MouseMotion, Button: 1, Col: 1, Row: 2}, term.Modes()); string(got) != "\x1b[<32;2;3M" {
		t.Errorf("a mouse event: %q", got)
	}
	if got := replay.EncodePaste("x", term.Modes()); string(got) != "\x1b[200~x\x1b[201~" {
		t.Errorf("a paste: %q", got)
	}
}

// TestFieldQueries is F3: a program that asks the terminal gets each answer
// once, when it asks; nothing that was recorded is answered again.
func TestFieldQueries(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	// The program shows every byte of the answers that reach it.
	pane := s.run(c, 80, 24, "sh", "-c", `stty raw -echo; printf 'ab\033[6n\033[c\033]11;?\007'; exec od -An -v -tx1 -w1`)
	shown := func() string {
		return strings.Join(strings.Fields(strings.TrimPrefix(s.export(c, pane, "text"), "ab")), " ")
	}
	s.until(c, pane, "answering", func(paneInfo) bool {
		return strings.Contains(shown(), "52") && strings.Count(shown(), "1b 5b") == 2 && strings.Contains(shown(), "1b 5d")
	})
	answers := shown()
	if !strings.HasPrefix(answers, "1b 5b 31 3b 33 52 1b 5b 3f ") { // CSI 1;3 R, CSI ? ...
		t.Errorf("the answers: %s", answers)
	}
	for range 3 {
		s.rows(c, pane)
		s.export(c, pane, "raw")
		s.export(c, pane, "asciicast")
		call[obj](s, c, "pane.capture", obj{"pane": pane})
		call[obj](s, c, "pane.capture_since", obj{"pane": pane, "since": 0})
	}
	other := s.run(c, 80, 24, "sh", "-c", `stty raw -echo; echo ready; exec od -An -v -tx1 -w1`)
	s.until(c, other, "ready", func(p paneInfo) bool { return p.Offset >= 6 })
	if again := shown(); again != answers {
		t.Errorf("after reading: %s, before %s", again, answers)
	}
	s.end(syscall.SIGTERM)
	s.start()
	c = s.client()
	fresh := s.run(c, 80, 24, "sh", "-c", `stty raw -echo; echo ready; exec od -An -v -tx1 -w1`)
	s.until(c, fresh, "ready", func(p paneInfo) bool { return p.Offset >= 6 })
	s.rows(c, pane)
	if again := shown(); again != answers {
		t.Errorf("after a restart: %s, before %s", again, answers)
	}
	if got := s.export(c, fresh, "text"); strings.TrimSpace(got) != "ready" {
		t.Errorf("another pane is answered: %q", got)
	}
}
