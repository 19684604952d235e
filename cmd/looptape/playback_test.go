package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"looptape/cmd/internal/wire"
)

// drawing is a program whose last screen is coloured, has wide characters and line
// drawing, was scrolled, scrolled in part, and edited, and comes after a full screen.
const drawing = `seq 1 40
printf '\033[?1049h\033[2J\033[3;4Hgone\033[?1049l'
printf '\033[2J\033[5;10r\033[10;1Ha\r\nb\r\nc\033[r'
printf '\033[H\033[1;31mbold red\033[m \033[4munder\033[m \346\274\242\345\255\227 caf\303\251'
printf '\033[3;5H\033(0lqqk\033(B \033[48;2;1;2;3mtrue colour\033[m\033[3;7H\033[2P\033[3@'
printf '\033[12;1H0123456789\r\033[5C\033[K'
printf '\033[20;1Hthe end, \377 is no UTF-8\033[22;70Hcorner wrapped around'`

// screen is what pane.capture shows.
type screen struct {
	Text   string
	Cursor struct{ Col, Row int }
}

func (s *server) shows(c *wire.Client, pane string) screen {
	s.t.Helper()
	return call[screen](s, c, "pane.capture", obj{"pane": pane})
}

// wantProgram skips the test without a program that "make test" installs.
func wantProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed: 'make test' installs it", name)
	}
}

// TestPlaysInAsciinema: an exported v2 recording, played by asciinema in a terminal of
// the same size, ends on the same screen.
func TestPlaysInAsciinema(t *testing.T) {
	wantProgram(t, "asciinema")
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "sh", "-c", drawing)
	s.until(c, pane, "exited", exited)
	want := s.shows(c, pane)
	if !strings.Contains(want.Text, "bold red under 漢字 café") {
		t.Fatalf("the program shows\n%s", want.Text)
	}
	home := t.TempDir()
	path := filepath.Join(home, "drawing.cast")
	if err := os.WriteFile(path, []byte(s.export(c, pane, "asciicast-v2")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, how := range [][]string{{"cat"}, {"play", "-s", "100", "-i", "0.01"}} {
		session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
		played := call[struct{ Pane string }](s, c, "window.create", obj{
			"session": session, "argv": append(append([]string{"asciinema"}, how...), path),
			"env": obj{"HOME": home, "LC_ALL": "C.UTF-8"},
		}).Pane
		info := s.until(c, played, "exited", exited)
		got := s.shows(c, played)
		if got != want {
			t.Errorf("asciinema %s shows (exit %+v, cursor %v, want %v)\n%s\nwant\n%s", how[0], info, got.Cursor, want.Cursor, got.Text, want.Text)
		}
	}
}

// TestImportsAsciinema: what asciinema records is imported, and ends on the screen that
// asciinema's own bytes make.
func TestImportsAsciinema(t *testing.T) {
	wantProgram(t, "asciinema")
	s := newServer(t)
	c := s.client()
	home := t.TempDir()
	path := filepath.Join(home, "seq.cast")
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	recorder := call[struct{ Pane string }](s, c, "window.create", obj{
		"session": session, "cols": 50, "rows": 12,
		"argv": []string{"asciinema", "rec", "-q", "--title", "a title", "-c", "sh -c 'seq 1 40; echo a line that is longer than the fifty columns of this terminal'", path},
		"env":  obj{"HOME": home, "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh", "TERM": "screen"},
	}).Pane
	s.until(c, recorder, "exited", exited)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: %s", err, s.export(c, recorder, "text"))
	}
	var out []byte // that asciinema recorded
	for _, line := range strings.Split(strings.TrimSpace(string(file)), "\n")[1:] {
		var event [3]any
		if err := json.Unmarshal([]byte(line), &event); err != nil || event[1] != "o" {
			t.Fatalf("asciinema wrote %s, %v", line, err)
		}
		out = append(out, event[2].(string)...)
	}
	want, err := layOut(out, 50)
	if err != nil {
		t.Fatal(err)
	}
	pane := s.importFile(c, file, 1000)
	got, bounds := s.rows(c, pane)
	if !slices.Equal(got[:len(want)], want) || len(want) < 42 || bounds.Active != uint64(len(want)-12) {
		t.Errorf("the archive has\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	info := call[struct {
		Title string
		Cols  int
		Rows  int
	}](s, c, "pane.get", obj{"pane": pane})
	if info.Title != "a title" || info.Cols != 50 || info.Rows != 12 {
		t.Errorf("the archive is %+v", info)
	}
}

// TestPlaysInPlayer: an exported recording, v3 and v2, played by asciinema-player with
// its own terminal, has the same sizes and ends on the same screen.
func TestPlaysInPlayer(t *testing.T) {
	wantProgram(t, "node")
	dir := os.Getenv("LOOPTAPE_PLAYER")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "asciinema-player")); dir == "" || err != nil {
		t.Skip("asciinema-player is not installed: 'make test' installs it, and says where by LOOPTAPE_PLAYER")
	}
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 60, 15, "sh", "-c", "echo in the first size; read x; echo in the second; read x\n"+drawing)
	s.until(c, pane, "waiting", func(p paneInfo) bool { return p.Offset >= 19 })
	for _, size := range [][2]int{{40, 10}, {80, 24}} {
		call[obj](s, c, "pane.resize", obj{"pane": pane, "cols": size[0], "rows": size[1]})
		at := s.until(c, pane, "resized", func(p paneInfo) bool { return true }).Offset
		call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
		s.until(c, pane, "going on", func(p paneInfo) bool { return p.Offset > at+2 })
	}
	s.until(c, pane, "exited", exited)
	want := s.shows(c, pane)
	for _, format := range []string{"asciicast", "asciicast-v2"} {
		path := filepath.Join(t.TempDir(), format)
		if err := os.WriteFile(path, []byte(s.export(c, pane, format)), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		node := exec.Command("node", "player/play.mjs", dir, path)
		node.Stderr = &stderr
		out, err := node.Output()
		if err != nil {
			t.Fatalf("node: %v\n%s", err, &stderr)
		}
		var got struct {
			Rows   []string
			Cursor [2]int
			Sizes  []string
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if text := strings.Join(got.Rows, "\n"); text != want.Text || got.Cursor != [2]int{want.Cursor.Col, want.Cursor.Row} {
			t.Errorf("%s: the player shows, cursor %v\n%s\nwant, cursor %v\n%s", format, got.Cursor, text, want.Cursor, want.Text)
		}
		if sizes := fmt.Sprint(got.Sizes); sizes != "[60x15 40x10 80x24]" {
			t.Errorf("%s: the player had the sizes %s", format, sizes)
		}
	}
}
