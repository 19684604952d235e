package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/attach"
	"looptape/cmd/internal/wire"
	"looptape/replay"
)

// attached is a client of a pane that keeps all that it gets. What it has is read
// under its lock.
type attached struct {
	t testing.TB
	*attach.Client
	ended chan struct{} // closed when follow has ended

	mu     sync.Mutex
	grew   chan struct{} // closed and made anew at each frame
	frames []attach.Frame
	screen attach.Emulator
}

// attach attaches as the owner, and follows.
func (s *server) attach(p attach.Params) *attached {
	s.t.Helper()
	a := s.attachIdle(p)
	go a.follow()
	a.until("a snapshot", func() bool { return len(a.frames) > 0 })
	return a
}

// attachIdle is attach, but follow is yet to be called.
func (s *server) attachIdle(p attach.Params) *attached {
	s.t.Helper()
	c, err := attach.Dial(s.ctx, filepath.Join(s.dir, "looptape.sock"), s.owner(wire.CeilingMaxFrame), p)
	if err != nil {
		s.t.Fatal(err)
	}
	a := &attached{t: s.t, Client: c, ended: make(chan struct{}), grew: make(chan struct{})}
	s.t.Cleanup(func() { c.Close() })
	return a
}

// owner is the hello of the owner.
func (s *server) owner(maxFrame int) wire.Hello {
	s.t.Helper()
	token, err := os.ReadFile(filepath.Join(s.dir, "owner.token"))
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.TrimSpace(string(token))
	return wire.Hello{Client: "test", Token: &text, MaxFrame: &maxFrame}
}

// follow reads to the end.
func (a *attached) follow() {
	defer close(a.ended)
	for {
		f, err := a.Next()
		if err != nil {
			return
		}
		f.Data = bytes.Clone(f.Data)
		a.mu.Lock()
		a.frames = append(a.frames, f)
		if err := a.screen.Apply(f); err != nil {
			a.t.Error(err)
		}
		close(a.grew)
		a.grew = make(chan struct{})
		a.mu.Unlock()
	}
}

// until waits until ok holds, of which more frames are needed; the lock is held in ok.
func (a *attached) until(what string, ok func() bool) {
	a.t.Helper()
	patient := time.After(patience)
	for {
		a.mu.Lock()
		done, grew := ok(), a.grew
		a.mu.Unlock()
		if done {
			return
		}
		select {
		case <-grew:
		case <-a.ended:
			a.mu.Lock()
			defer a.mu.Unlock()
			if !ok() {
				a.t.Fatalf("the connection ended before %s: %s", what, a.told())
			}
			return
		case <-patient:
			a.t.Fatalf("%s: not after %v: %s", what, patience, a.told())
		}
	}
}

// told is the frames but for their bytes.
func (a *attached) told() string {
	var b strings.Builder
	for _, f := range a.frames {
		fmt.Fprintf(&b, "%v@%d ", f.Type, f.Offset)
		if f.Type == attach.Error || f.Type == attach.Exit || f.Type == attach.Resync {
			fmt.Fprintf(&b, "%s ", f.Data)
		}
	}
	return b.String()
}

// count counts frames of a type.
func (a *attached) count(t attach.Type) (n int) {
	for _, f := range a.frames {
		if f.Type == t {
			n++
		}
	}
	return n
}

// last is the last frame of a type, which there is.
func (a *attached) last(t attach.Type) attach.Frame {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.frames) - 1; i >= 0; i-- {
		if a.frames[i].Type == t {
			return a.frames[i]
		}
	}
	a.t.Fatalf("no %v: %s", t, a.told())
	return attach.Frame{}
}

func (a *attached) untilExit() attach.Status {
	a.t.Helper()
	var status attach.Status
	a.until("the exit", func() bool {
		for _, f := range a.frames {
			if f.Type == attach.Exit {
				var err error
				if status, err = attach.ParseStatus(f.Data); err != nil {
					a.t.Fatal(err)
				}
			}
		}
		return status.Closed
	})
	return status
}

// screensAt are the screens as the frames show them at offsets of the stream, which
// ascend: each from the last Snapshot at or before it and the bytes from there on.
func (a *attached) screensAt(offsets ...uint64) map[uint64]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	screens := make(map[uint64]string)
	var e attach.Emulator
	for _, f := range a.frames {
		for len(offsets) > 0 && offsets[0] < f.End() {
			head := f
			if f.Type == attach.Output && offsets[0] >= f.Offset {
				n := offsets[0] - f.Offset
				head.Data = f.Data[:n]
				a.apply(&e, head)
				f.Offset, f.Data = offsets[0], f.Data[n:]
			}
			if e.Term != nil && e.Offset == offsets[0] {
				screens[offsets[0]] = screenText(e.Term)
			}
			offsets = offsets[1:]
		}
		a.apply(&e, f)
	}
	for _, at := range offsets {
		if e.Term != nil && e.Offset == at {
			screens[at] = screenText(e.Term)
		}
	}
	return screens
}

func (a *attached) apply(e *attach.Emulator, f attach.Frame) {
	if err := e.Apply(f); err != nil {
		a.t.Error(err)
	}
}

func screenText(t *replay.Terminal) string {
	if t == nil {
		return ""
	}
	var lines []string
	b := t.Bounds()
	for r := range t.Rows(b.Active, b.End) {
		lines = append(lines, string(r.Text))
	}
	return strings.Join(lines, "\n")
}

// checkStream checks that the output behind each Snapshot is that of the recording,
// and returns how many bytes there were.
func (a *attached) checkStream(recording []byte) (n int) {
	a.t.Helper()
	at := uint64(0)
	for _, f := range a.frames {
		switch f.Type {
		case attach.Snapshot:
			at = f.Offset
		case attach.Output:
			if f.Offset != at || !bytes.Equal(f.Data, recording[at:f.End()]) {
				a.t.Fatalf("the output at %d, where %d comes next, is not that of the recording", f.Offset, at)
			}
			at = f.End()
			n += len(f.Data)
		}
	}
	return n
}

// hostile is n pieces of what no program writes on purpose.
func hostile(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 77))
	pieces := []func() string{
		func() string { return strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(100)) },
		func() string { return "\x1b[" + fmt.Sprint(r.IntN(30)) + ";" + fmt.Sprint(r.IntN(100)) + "H" },
		func() string {
			return "\x1b[" + fmt.Sprint(r.IntN(5)) + string("ABCDEFGJKLMPSTX@"[r.IntN(16)])
		},
		func() string {
			return "\x1b[" + fmt.Sprint(r.IntN(110)) + ";" + fmt.Sprint(r.IntN(50)) + ";" + fmt.Sprint(r.IntN(300)) + "m"
		},
		func() string { return "\x1b[" + fmt.Sprint(1+r.IntN(12)) + ";" + fmt.Sprint(13+r.IntN(20)) + "r" },
		func() string {
			return "\x1b[?" + fmt.Sprint([]int{5, 7, 25, 1049, 2004, 1000, 1}[r.IntN(7)]) + "hl"[r.IntN(2):][:1]
		},
		func() string { return "\x1b]2;title " + fmt.Sprint(r.IntN(99)) + "\x07" },
		func() string { return "\x1b]8;;http://example.com/" + fmt.Sprint(r.IntN(9)) + "\x1b\\" },
		func() string { return "\x1bP+q544e\x1b\\\x1b_apc\x1b\\" },
		func() string { return "\u6f22\u5b57\u304b" },
		func() string { return "e\u0301\u0302\U0001F468\u200d\U0001F469\u200d\U0001F467" },
		func() string { return "\xff\xc3\xe2\x82" },
		func() string { return "\r\n" },
		func() string { return "\t\b\x0b\x0c" },
		func() string { return string([]byte{0x1b, byte("78DEHMc()"[r.IntN(9)]), '0'}) },
		func() string { return "\x1b[6n\x1b[c\x1b[>c" },
	}
	var b bytes.Buffer
	for range n {
		b.WriteString(pieces[r.IntN(len(pieces))]())
	}
	return b.Bytes()
}

// TestAttachExact: clients that come at any time of a fast writer have its bytes from
// their snapshot on, and its screen at every offset at which it was captured.
func TestAttachExact(t *testing.T) {
	t.Parallel()
	tui := func() []byte {
		var b bytes.Buffer
		b.WriteString("\x1b[?1049h")
		for i := range 3000 {
			fmt.Fprintf(&b, "\x1b[%d;%dH\x1b[3%d;4%dm cell %d \x1b[0m\x1b[K", i%24+1, i*7%70+1, i%8, i/8%8, i)
		}
		b.WriteString("\x1b[?1049l")
		return b.Bytes()
	}()
	lines := func() []byte {
		var b bytes.Buffer
		for i := range 60000 {
			fmt.Fprintf(&b, "line %d of a log\r\n", i)
		}
		return b.Bytes()
	}()
	for name, content := range map[string][]byte{
		"tui": bytes.Repeat(tui, 12), "log": lines, "hostile": hostile(1, 60000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			c := s.client()
			file := filepath.Join(t.TempDir(), "content")
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			// In pieces, so that it takes a while.
			pane := s.run(c, 80, 24, "/bin/sh", "-c", `stty raw -echo; printf ready; read go; split -b 20000 --filter 'cat; sleep 0.01' "$0"; sleep 0.1`, file)
			clients := []*attached{s.attach(attach.Params{Pane: pane})}
			clients[0].until("the program is ready", func() bool { return clients[0].screen.Offset == uint64(len("ready")) })
			content := append([]byte("ready"), content...)
			call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
			type shot struct {
				Offset uint64
				Text   string
			}
			var shots []shot
			for info := (paneInfo{}); info.State != "exited"; info = call[paneInfo](s, c, "pane.get", obj{"pane": pane}) {
				if len(clients) < 30 {
					clients = append(clients, s.attach(attach.Params{Pane: pane}))
				}
				shots = append(shots, call[shot](s, c, "pane.capture", obj{"pane": pane}))
				time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond)
			}
			s.until(c, pane, "exited", exited)
			shots = append(shots, call[shot](s, c, "pane.capture", obj{"pane": pane}))
			recording := s.raw(c, pane)
			if !bytes.Equal(recording, content) {
				t.Fatalf("the recording is not what was written, from byte %d on", common(recording, content))
			}
			var offsets []uint64
			for _, shot := range shots {
				offsets = append(offsets, shot.Offset)
			}
			compared := 0
			for i, a := range clients {
				if status := a.untilExit(); status.Code == nil || *status.Code != 0 {
					t.Errorf("client %d: %+v", i, status)
				}
				a.checkStream(recording)
				screens := a.screensAt(offsets...)
				for _, shot := range shots {
					text, ok := screens[shot.Offset]
					if ok && text != shot.Text {
						t.Fatalf("client %d, %s: at offset %d it shows\n%s\nand the pane\n%s", i, a.told(), shot.Offset, text, shot.Text)
					}
					if ok {
						compared++
					}
				}
				if n := a.count(attach.Resync); n > 0 {
					t.Logf("client %d was resynchronised %d times", i, n)
				}
			}
			if compared < len(clients) {
				t.Errorf("%d screens were compared", compared)
			}
			t.Logf("%d clients, %d captures, %d compared", len(clients), len(shots), compared)
		})
	}
}

// TestAttachEnds: the end of a program, of helpers that hold its terminal, of a pane
// that has ended long since, of a daemon.
func TestAttachEnds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	gone := s.run(c, 40, 5, "/bin/sh", "-c", "echo early; exit 3")
	s.until(c, gone, "exited", exited)
	a := s.attach(attach.Params{Pane: gone, Mode: "write"})
	if status := a.untilExit(); status.Code == nil || *status.Code != 3 {
		t.Errorf("a pane that has exited: %+v", status)
	}
	<-a.ended
	if got := a.told(); !strings.HasPrefix(got, "Snapshot@7 Exit@7") || a.screen.Offset != 7 {
		t.Error(got)
	}
	if text := a.screensAt(7)[7]; !strings.HasPrefix(text, "early ") {
		t.Errorf("%q", text)
	}

	killed := s.run(c, 40, 5, "/bin/sh", "-c", "echo waits; exec sleep 600")
	a = s.attach(attach.Params{Pane: killed})
	a.until("output", func() bool { return a.screen.Offset == 7 })
	call[obj](s, c, "pane.kill", obj{"pane": killed, "signal": "TERM"})
	if status := a.untilExit(); status.Signal != "SIGTERM" || status.Code != nil {
		t.Errorf("a pane that is killed: %+v", status)
	}

	goes := s.run(c, 40, 5, "/bin/sh", "-c", "echo waits; exec sleep 600")
	a = s.attach(attach.Params{Pane: goes, Mode: "write"})
	if err := a.Detach(); err != nil {
		t.Fatal(err)
	}
	<-a.ended
	if info := call[paneInfo](s, c, "pane.get", obj{"pane": goes}); info.State != "running" {
		t.Errorf("behind a detach the pane is %s", info.State)
	}

	a = s.attach(attach.Params{Pane: goes})
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Log(err)
	}
	<-a.ended
	if e := attach.ParseError(a.last(attach.Error).Data); e.Code != "unavailable.stopping" {
		t.Error(e.Code)
	}
	s.start()
	a = s.attach(attach.Params{Pane: killed})
	if status := a.untilExit(); status.Signal != "SIGTERM" {
		t.Errorf("an archive: %+v", status)
	}
	if text := a.screensAt(7)[7]; !strings.HasPrefix(text, "waits ") {
		t.Errorf("%q", text)
	}
	a = s.attach(attach.Params{Pane: goes})
	if status := a.untilExit(); status.Signal != "" || status.Code != nil {
		t.Errorf("an archive of which nobody knows the end: %+v", status)
	}
}

// TestAttachRespawn: a respawn ends the attachments of the program before; the next
// one begins where the new program does.
func TestAttachRespawn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 40, 5, "/bin/sh", "-c", "echo $$; read x; trap '' HUP; sleep 600 & exit 3")
	a := s.attach(attach.Params{Pane: pane, Mode: "write", Cols: 50, Rows: 6})
	a.Input([]byte("\n"))
	a.until("the exit", func() bool { return a.count(attach.Exit) > 0 })
	s.until(c, pane, "exited", exited) // for everybody to see, which is once it is on disk
	type respawned struct{ Offset uint64 }
	at := call[respawned](s, c, "pane.respawn", obj{"pane": pane}).Offset
	if status := a.untilExit(); status.Code == nil || *status.Code != 3 {
		t.Errorf("%+v", status)
	}
	<-a.ended
	if a.count(attach.Exit) != 2 || a.screen.Offset != at {
		t.Errorf("the first program's, respawned at %d: %s", at, a.told())
	}
	b := s.attach(attach.Params{Pane: pane, Mode: "write", Cols: 60, Rows: 7})
	b.Input([]byte("\n"))
	b.until("the exit", func() bool { return b.count(attach.Exit) > 0 })
	if f := b.frames[0]; f.Offset < at || f.Cols != 60 {
		t.Errorf("the second program's: %d columns, %s", f.Cols, b.told())
	}
	call[obj](s, c, "pane.kill", obj{"pane": pane})
	b.untilExit()
	b.checkStream(s.raw(c, pane))
}
