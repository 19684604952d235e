//go:build conformance

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"looptape/cmd/internal/attach"
)

// TestConformanceAttach: what a client gets, from a snapshot in the middle on, shows in
// tmux what the pane shows.
func TestConformanceAttach(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	var tui bytes.Buffer
	tui.WriteString("main screen\r\n\x1b[?1049h")
	for i := range 6000 {
		fmt.Fprintf(&tui, "\x1b[%d;%dH\x1b[3%d;4%dm cell %d \u6f22\u5b57 \x1b[0m\x1b[K", i%24+1, i*7%60+1, i%8, i/8%8, i)
		if i%50 == 0 {
			tui.WriteString("\x1b[3;20r\x1b[20H\n\n\x1b[3H\x1bM\x1b[r")
		}
		if i%200 == 100 {
			tui.WriteString("\x1b[?1049lback\r\n\x1b[?1049h\x1b[10;10Hagain")
		}
	}
	file := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(file, tui.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	pane := s.run(c, 80, 24, "/bin/sh", "-c", `stty raw -echo; printf ready; read go; split -b 3000 --filter 'cat; sleep 0.02' "$0"; exec sleep 600`, file)
	clients := []*attached{s.attach(attach.Params{Pane: pane})}
	clients[0].until("the program is ready", func() bool { return clients[0].screen.Offset == 5 })
	call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
	end := uint64(5 + tui.Len())
	for len(clients) < 20 && call[paneInfo](s, c, "pane.get", obj{"pane": pane}).Offset < end {
		clients = append(clients, s.attach(attach.Params{Pane: pane}))
		time.Sleep(20 * time.Millisecond)
	}
	for _, a := range clients {
		a.until("the end", func() bool { return a.screen.Offset == end })
	}
	want := call[struct{ Text string }](s, c, "pane.capture", obj{"pane": pane}).Text
	for i, a := range clients {
		var got []byte
		for _, f := range a.frames {
			if f.Type == attach.Snapshot || f.Type == attach.Output {
				got = append(got, f.Data...)
			}
		}
		if screen := inTmux(t, got); screen != trimmed(want) {
			t.Errorf("client %d, from offset %d on: tmux shows\n%s\ninstead of\n%s", i, a.frames[0].Offset, screen, trimmed(want))
		}
	}
	t.Logf("%d clients", len(clients))
}

// inTmux is the screen of a tmux of 80x24 behind bytes, without trailing blanks.
func inTmux(t *testing.T, stream []byte) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "stream")
	if err := os.WriteFile(file, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "tmux")
	tmux := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("tmux", append([]string{"-u", "-S", socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	tmux("new-session", "-d", "-x", "80", "-y", "24", "stty raw -echo; cat "+file+"; touch "+dir+"/done; exec sleep 600")
	defer tmux("kill-server")
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "done")); err == nil {
			break
		}
	}
	// What cat has written, tmux reads soon: until two looks agree.
	var screen string
	for last := "\x00"; screen != last; {
		last = screen
		time.Sleep(200 * time.Millisecond)
		screen = tmux("capture-pane", "-p")
	}
	return trimmed(screen)
}

func trimmed(screen string) string {
	lines := strings.Split(screen, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
