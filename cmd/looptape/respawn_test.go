package main_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// code is the code of a verb's error, "" if it has none.
func code(err error) string {
	var e *wire.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// TestFieldCursor is F4: a cursor, and then (a) the screen is cleared, (b) what it
// stands at is evicted, (c) the pane is respawned, (d) the daemon starts anew.
func TestFieldCursor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	run := func(script string) (pane, cursor string) {
		t.Helper()
		pane = call[struct{ Pane string }](s, c, "window.create", obj{"session": session, "retain": 4 << 20, "argv": []string{"sh", "-c", "stty -echo; echo one; read x; " + script}}).Pane
		s.until(c, pane, "writing", func(p paneInfo) bool { return p.Offset == 5 })
		a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane})
		if a.Text != "one" || a.Offset != 5 {
			t.Fatalf("the first answer: %+v", a)
		}
		call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
		return pane, a.Cursor
	}
	const clear = `printf '\033[H\033[2J\033[3J'; echo two; read x`
	goesOn := func(pane, cursor string, from uint64) {
		t.Helper()
		a := call[sinceAnswer](s, c, "pane.capture_since", obj{"cursor": cursor})
		if a.Missed || a.From != from || a.Text != "two\n" {
			t.Errorf("%s goes on from %d with %+v", pane, from, a)
		}
	}

	cleared, atClear := run(clear)
	s.until(c, cleared, "cleared", func(p paneInfo) bool { return p.Offset == 5+11+5 })
	goesOn(cleared, atClear, 5) // (a)

	evicted, atEvicted := run("seq 1 3000000; read x")
	s.until(c, evicted, "evicted", func(p paneInfo) bool { return p.Oldest > 5 && p.Offset >= 5+uint64(len(numbered(3000000))) })
	a := call[sinceAnswer](s, c, "pane.capture_since", obj{"cursor": atEvicted, "format": "raw", "max_bytes": 1 << 20})
	if stream := append([]byte("one\r\n"), numbered(int(a.Offset))...); !a.Missed || a.MissedBytes != a.From-5 || string(a.Data) != string(stream[a.From:a.Offset]) {
		t.Errorf("(b) %d bytes from %d on, missed %d (%v)", len(a.Data), a.From, a.MissedBytes, a.Missed)
	}

	gone, atGone := run("exit 0")
	s.until(c, gone, "exited", exited)
	call[obj](s, c, "pane.respawn", obj{"pane": gone, "argv": []string{"sh", "-c", "echo three; read x"}})
	s.until(c, gone, "writing", func(p paneInfo) bool { return p.Offset == 12 })
	if _, err := try[obj](s, c, "pane.capture_since", obj{"cursor": atGone}); code(err) != "conflict.respawned" {
		t.Errorf("(c) %v", err)
	}
	fresh := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": gone, "since": 5, "max_bytes": 3})
	if fresh.Text != "thr" || !fresh.More || fresh.Closed {
		t.Errorf("behind the respawn: %+v", fresh)
	}

	from := uint64(5)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} { // (d)
		s.end(sig)
		s.start()
		c = s.client()
		goesOn(cleared, atClear, from)
		if _, err := try[obj](s, c, "pane.capture_since", obj{"cursor": atGone}); code(err) != "conflict.respawned" {
			t.Errorf("after %v: %v", sig, err)
		}
		if a := call[sinceAnswer](s, c, "pane.capture_since", obj{"cursor": fresh.Cursor}); a.Missed || a.From != 8 || a.Text != "ee\n" || !a.Closed {
			t.Errorf("the new program's cursor after %v: %+v", sig, a)
		}
		// An archive can be respawned; then its cursors are old as well.
		call[obj](s, c, "pane.respawn", obj{"pane": cleared, "argv": []string{"cat"}})
		if _, err := try[obj](s, c, "pane.capture_since", obj{"cursor": atClear}); code(err) != "conflict.respawned" {
			t.Errorf("a cursor of the archive after %v: %v", sig, err)
		}
		if a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": cleared, "since": 5}); a.Text != "two\n" || !a.More || a.Closed || a.Boundary != "respawn" {
			t.Errorf("the range up to the respawn: %+v", a)
		}
		// A cursor that is handed out now goes on through what was written before.
		a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": cleared, "since": 0, "max_bytes": 4})
		atClear, from = a.Cursor, a.Offset
	}
}

// TestRespawnHelpers: a helper that holds the terminal of a program that has exited
// loses it to the next program; what it wrote before is there.
func TestRespawnHelpers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "sh", "-c", `(trap "" HUP; echo helper; read x) & read x; exit 0`)
	s.until(c, pane, "written", func(p paneInfo) bool { return p.Offset == 8 })
	call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
	s.until(c, pane, "exited", exited)
	call[obj](s, c, "pane.respawn", obj{"pane": pane, "argv": []string{"echo", "next"}})
	s.until(c, pane, "exited again", func(p paneInfo) bool { return p.State == "exited" && p.Offset == 16 })
	if got := string(s.raw(c, pane)); got != "helper\r\n\r\nnext\r\n" {
		t.Errorf("recorded %q", got)
	}
}

// TestRespawnOnce: of many who respawn a pane at once, one does.
func TestRespawnOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "echo", "x")
	s.until(c, pane, "exited", exited)
	for round := range 3 {
		var wg sync.WaitGroup
		outcomes := make(chan string, 10)
		for range cap(outcomes) {
			wg.Go(func() {
				_, err := try[obj](s, c, "pane.respawn", obj{"pane": pane, "argv": []string{"sh", "-c", "read x"}})
				outcomes <- code(err)
			})
		}
		wg.Wait()
		close(outcomes)
		count := map[string]int{}
		for outcome := range outcomes {
			count[outcome]++
		}
		if count[""] != 1 || count["conflict.state"] != cap(outcomes)-1 {
			t.Fatalf("round %d: %v", round, count)
		}
		call[obj](s, c, "pane.kill", obj{"pane": pane})
		s.until(c, pane, "exited", exited)
	}
}

// TestRespawnRush: clients that respawn a pane of very short programs as fast as they can,
// and others that read it, are all answered, and each program that was is in the log.
func TestRespawnRush(t *testing.T) {
	t.Parallel()
	const clients, each = 4, 40
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "true")
	var rush, reading sync.WaitGroup
	for range clients {
		c := s.client()
		rush.Go(func() {
			for n := 0; n < each; {
				switch _, err := try[obj](s, c, "pane.respawn", obj{"pane": pane, "argv": []string{"true"}}); code(err) {
				case "":
					n++
				case "conflict.state": // the program of another one runs
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	over := make(chan struct{})
	for _, verb := range []string{"pane.get", "pane.capture", "pane.capture_since", "pane.search"} {
		c, params := s.client(), obj{"pane": pane}
		if verb == "pane.search" {
			params["pattern"] = "nothing"
		}
		reading.Go(func() {
			for {
				if _, err := try[obj](s, c, verb, params); err != nil {
					t.Errorf("%s: %v", verb, err)
					return
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	rush.Wait()
	close(over)
	reading.Wait()
	s.until(c, pane, "exited", exited)
	n := 0
	for _, line := range strings.Split(s.export(c, pane, "asciicast"), "\n") {
		if strings.Contains(line, "respawned") {
			n++
		}
	}
	if n != clients*each {
		t.Errorf("%d respawns in the log, %d were answered", n, clients*each)
	}
}

// generation is a program that says which one it is, by what it writes, by its exit
// code and in its argv.
func generation(n int) []string {
	return []string{"sh", "-c", fmt.Sprintf("echo gen %d; exit %d", n, n%100)}
}

// TestKillRespawn kills the daemon at random moments while a pane is respawned all
// the time. The next daemon says that the pane ran what the log says that it ran,
// nothing that was answered is gone, and a respawn goes on from there.
func TestKillRespawn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, generation(0)...)
	s.until(c, pane, "exited", exited)
	n := 0                // the generation that was answered last
	cut := map[int]bool{} // those whose output a crash cut off
	for round := range 2 * crashes(t) {
		cursor, of := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane}).Cursor, n
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := try[obj](s, c, "pane.respawn", obj{"pane": pane, "argv": generation(n + 1)}); err != nil {
					return
				}
				n++
				a, err := try[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane})
				for p := (paneInfo{}); err == nil && !exited(p); {
					p, err = try[paneInfo](s, c, "pane.get", obj{"pane": pane})
				}
				if err != nil {
					return
				}
				cursor, of = a.Cursor, n
			}
		}()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		s.end(syscall.SIGKILL)
		<-done

		s.start()
		c = s.client()
		transcript := s.export(c, pane, "text")
		respawns := strings.Count(transcript, "---- looptape: respawned")
		if respawns != n && respawns != n+1 {
			t.Fatalf("round %d: %d respawns in the log, %d were answered", round, respawns, n)
		}
		info := call[struct {
			Argv []string
			Exit *struct{ Code int }
		}](s, c, "pane.get", obj{"pane": pane})
		if want := generation(respawns); len(info.Argv) != 3 || info.Argv[2] != want[2] {
			t.Fatalf("round %d: it ran %q, not %q", round, info.Argv, want)
		}
		if info.Exit != nil && info.Exit.Code != respawns%100 {
			t.Fatalf("round %d: exit %d of generation %d", round, info.Exit.Code, respawns)
		}
		// Each program's line stands between its rule and the next, but for those that
		// a crash has cut off.
		wrote, at := map[int]bool{}, 0
		for _, line := range regexp.MustCompile(`(?m)^(?:gen (\d+)|---- looptape: (respawned).*)$`).FindAllStringSubmatch(transcript, -1) {
			if line[2] != "" {
				at++
			} else if wrote[at] = true; line[1] != strconv.Itoa(at) {
				t.Fatalf("round %d: generation %d wrote %q", round, at, line[0])
			}
		}
		cut[respawns] = !wrote[respawns]
		for i := range respawns {
			if !wrote[i] && !cut[i] {
				t.Fatalf("round %d: what generation %d wrote is gone", round, i)
			}
		}
		_, err := try[obj](s, c, "pane.capture_since", obj{"cursor": cursor})
		if want := map[bool]string{false: "", true: "conflict.respawned"}[respawns > of]; code(err) != want {
			t.Fatalf("round %d: the last cursor: %v, not %q", round, err, want)
		}
		n = respawns
		before := call[paneInfo](s, c, "pane.get", obj{"pane": pane})
		call[obj](s, c, "pane.respawn", obj{"pane": pane, "argv": generation(n + 1)})
		n++
		after := s.until(c, pane, "exited", exited)
		if after.Offset <= before.Offset || after.Epoch <= before.Epoch {
			t.Fatalf("round %d: %+v after %+v", round, after, before)
		}
	}
	t.Logf("%d respawns", n)
}
