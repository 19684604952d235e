package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/attach"
	"looptape/cmd/internal/wire"
)

// hand is an attachment by hand: it acknowledges nothing.
type hand struct {
	t  *testing.T
	nc net.Conn
	in *attach.Reader
}

func (s *server) attachByHand(t *testing.T, maxFrame int, p attach.Params) *hand {
	t.Helper()
	nc, in, w, _, err := wire.TakeOver(s.ctx, filepath.Join(s.dir, "looptape.sock"), s.owner(maxFrame), "pane.attach", p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return &hand{t, nc, attach.NewReader(in, w.MaxFrame)}
}

// next is the next frame, which is to be of one of the types.
func (h *hand) next(types ...attach.Type) attach.Frame {
	h.t.Helper()
	f, err := h.in.Next()
	if err != nil || !slices.Contains(types, f.Type) {
		h.t.Fatalf("%v at %d (%.200q) instead of %v: %v", f.Type, f.Offset, f.Data, types, err)
	}
	return f
}

func (h *hand) send(f attach.Frame) {
	h.t.Helper()
	if _, err := h.nc.Write(attach.Append(nil, f)); err != nil {
		h.t.Fatal(err)
	}
}

// fails expects an Error, and whether the connection ends behind it.
func (h *hand) fails(code, message string, last bool) {
	h.t.Helper()
	e := attach.ParseError(h.next(attach.Error).Data)
	if e.Code != code || !strings.Contains(e.Message, message) {
		h.t.Errorf("%s: %s", e.Code, e.Message)
	}
	if !last {
		return
	}
	if f, err := h.in.Next(); err != io.EOF {
		h.t.Errorf("behind an error that ends the connection: %+v, %v", f, err)
	}
}

// TestAttachSlow: a client that reads nothing for a while is resynchronised, ends with
// the right screen, and is in nobody's way.
func TestAttachSlow(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "/bin/sh", "-c", `stty -echo; for i in $(seq 1 60); do read go; seq 10001 30000; done; read go; echo end`)
	slow := s.attachIdle(attach.Params{Pane: pane, Mode: "write"})
	fast := s.attach(attach.Params{Pane: pane, Mode: "write"})
	const rounds, round = 60, 20000 * 7
	for i := range rounds { // in step with the fast one
		if err := fast.Input([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		fast.until("a round", func() bool { return fast.screen.Offset >= uint64(i+1)*round })
	}
	go slow.follow()
	slow.until("the last round", func() bool { return slow.screen.Offset >= rounds*round })
	if err := slow.Input([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*attached{fast, slow} {
		if status := a.untilExit(); status.Code == nil || *status.Code != 0 {
			t.Errorf("%+v", status)
		}
		<-a.ended
		if text := screenText(a.screen.Term); !strings.Contains(text, "30000 ") || !strings.Contains(text, "end ") {
			t.Errorf("the last screen is\n%s", text)
		}
	}
	recording := s.raw(c, pane)
	if n := fast.checkStream(recording); n != len(recording) || fast.count(attach.Resync) > 0 {
		t.Errorf("the fast one has %d bytes of %d: %s", n, len(recording), fast.told())
	}
	if n := slow.checkStream(recording); n > 3<<20 || slow.count(attach.Resync) == 0 {
		t.Errorf("the slow one has %d bytes: %s", n, slow.told())
	}
	for i, f := range slow.frames {
		if f.Type == attach.Resync && (string(f.Data) != "backlog" || slow.frames[i+1].Type != attach.Snapshot || slow.frames[i+1].Offset < f.Offset) {
			t.Errorf("%q at %d, then %v at %d", f.Data, f.Offset, slow.frames[i+1].Type, slow.frames[i+1].Offset)
		}
	}
}

// TestAttachWindow: a client that acknowledges is sent a window of the stream and no
// more, until it acknowledges again.
func TestAttachWindow(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	const rounds, round = 12, 15000 * 7
	pane := s.run(c, 80, 24, "/bin/sh", "-c", `stty -echo; printf ready; for i in $(seq 12); do read go; seq 10001 25000; done; read go; seq 1 1000000; exec sleep 600`)
	s.until(c, pane, "ready", func(p paneInfo) bool { return p.Offset == 5 })
	h := s.attachByHand(t, 64<<10, attach.Params{Pane: pane, Mode: "write"})
	at := h.next(attach.Snapshot).Offset
	h.send(attach.Frame{Type: attach.Ack, Offset: at})
	sent := at
	for i := range rounds + 1 { // in step with what comes
		h.send(attach.Frame{Type: attach.Input, Data: []byte("\n")})
		for sent < min(at+attach.Window, at+uint64(i+1)*round) {
			f := h.next(attach.Output)
			sent = f.End()
		}
	}
	if sent > at+attach.Window+64<<10 {
		t.Errorf("%d bytes without an acknowledgement", sent-at)
	}
	s.until(c, pane, "through with it", func(p paneInfo) bool { return p.Offset == 5+rounds*round+7888896 })
	// Nothing comes, but for what a complaint proves.
	h.send(attach.Frame{Type: attach.Viewport, Cols: 65535, Rows: 65535})
	h.fails("limit.cells", "4194304", false)
	h.send(attach.Frame{Type: attach.Ack, Offset: sent - 100})
	f := h.next(attach.Output, attach.Resync)
	for ; f.Type == attach.Output; f = h.next(attach.Output, attach.Resync) {
		sent = f.End() // the rest of a batch
	}
	if f.Offset != sent {
		t.Errorf("resynchronised from %d, and %d was sent", f.Offset, sent)
	}
	f = h.next(attach.Snapshot)
	if f.Offset != 5+rounds*round+7888896 || !bytes.Contains(f.Data, []byte("1000000")) {
		t.Errorf("a snapshot at %d", f.Offset)
	}
	h.send(attach.Frame{Type: attach.Ack, Offset: sent}) // late: it is below the snapshot
	h.send(attach.Frame{Type: attach.Ack, Offset: f.Offset + 1})
	h.fails("protocol.malformed", "is acknowledged", true)
}

// TestAttachFrames: what a client may not send is answered clearly; what is only
// refused leaves the connection as it is.
func TestAttachFrames(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "/bin/sh", "-c", "stty raw -echo; printf ready; exec sleep 600")
	s.until(c, pane, "ready", func(p paneInfo) bool { return p.Offset == 5 })
	for _, bad := range []struct{ name, bytes, code, message string }{
		{"a length of 0", "\x00\x00\x00\x00\x10", "protocol.malformed", "its length is 0"},
		{"too long", "\x00\x01\x00\x02\x10", "protocol.frame_size", "65538 bytes behind its length, and at most 65537"},
		{"4 GiB", "\xff\xff\xff\xff\x10", "protocol.frame_size", "at most"},
		{"an unknown type", "\x00\x00\x00\x01\x63", "protocol.malformed", "type 99"},
		{"a frame of the daemon's", "\x00\x00\x00\x09\x02\x00\x00\x00\x00\x00\x00\x00\x00", "protocol.malformed", "type 2"},
		{"a viewport of 0 columns", "\x00\x00\x00\x05\x11\x00\x00\x00\x18", "protocol.malformed", "0 columns"},
		{"a detach with a payload", "\x00\x00\x00\x02\x13x", "protocol.malformed", "too many"},
		{"an ack of what was not sent", "\x00\x00\x00\x09\x12\x00\x00\x00\x00\x00\x00\x00\x06", "protocol.malformed", "offset 6 is acknowledged, and 5 was sent"},
		{"a second attach", `{"id":2,"verb":"pane.attach","params":{"pane":"p0"}}` + "\n", "protocol.malformed", "a connection of its own"},
	} {
		h := s.attachByHand(t, 1<<20, attach.Params{Pane: pane, Mode: "write"})
		h.next(attach.Snapshot)
		if _, err := io.WriteString(h.nc, bad.bytes); err != nil {
			t.Fatal(err)
		}
		t.Log(bad.name)
		h.fails(bad.code, bad.message, true)
	}
	// Every end within a frame is a detach.
	whole := attach.Append(nil, attach.Frame{Type: attach.Viewport, Cols: 80, Rows: 24})
	for n := range whole {
		h := s.attachByHand(t, 1<<20, attach.Params{Pane: pane, Mode: "write"})
		h.next(attach.Snapshot)
		h.nc.Write(whole[:n])
		h.nc.(*net.UnixConn).CloseWrite()
		if f, err := h.in.Next(); err != io.EOF {
			t.Fatalf("behind %d bytes: %+v, %v", n, f, err)
		}
	}
	// A reader types nothing, and its viewport changes nothing.
	h := s.attachByHand(t, 1<<20, attach.Params{Pane: pane})
	h.next(attach.Snapshot)
	h.send(attach.Frame{Type: attach.Viewport, Cols: 10, Rows: 10})
	h.send(attach.Frame{Type: attach.Input, Data: []byte("x")})
	h.fails("conflict.mode", "for reading", false)
	// Of what a program does not read, so much waits, and the rest is refused.
	w := s.attachByHand(t, 1<<20, attach.Params{Pane: pane, Mode: "write"})
	w.next(attach.Snapshot)
	for range 4 {
		w.send(attach.Frame{Type: attach.Input, Data: make([]byte, attach.MaxInput)})
	}
	w.fails("limit.input", "does not read", false)
	call[obj](s, c, "pane.kill", obj{"pane": pane})
	for {
		f := w.next(attach.Error, attach.Exit)
		if f.Type == attach.Exit {
			break
		}
	}
	h.next(attach.Exit)
	// An archive, or a program that has ended, takes no input.
	w = s.attachByHand(t, 1<<20, attach.Params{Pane: pane, Mode: "write", Cols: 10, Rows: 10})
	if f := w.next(attach.Snapshot); f.Cols != 80 || f.Rows != 24 {
		t.Errorf("a pane that has ended is %dx%d", f.Cols, f.Rows)
	}
	if s.raw(c, pane)[4] != 'y' {
		t.Error("the recording")
	}
}

// TestAttachBusyConnection: a connection with requests in flight cannot be attached,
// and goes on.
func TestAttachBusyConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	pane := s.run(s.client(), 80, 24, "sleep", "600")
	nc, err := net.Dial("unix", filepath.Join(s.dir, "looptape.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(nc)
	hear := func(want string) {
		t.Helper()
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	fmt.Fprintf(nc, `{"id":1,"verb":"hello","params":{"proto":1}}`+"\n")
	hear(`"ok"`)
	fmt.Fprintf(nc, `{"id":2,"verb":"pane.capture_since","params":{"pane":%q,"since":0,"wait_ms":30000}}`+"\n", pane)
	fmt.Fprintf(nc, `{"id":3,"verb":"pane.attach","params":{"pane":%q}}`+"\n", pane)
	hear(`{"id":3,"error":{"code":"conflict.connection"`)
	fmt.Fprintf(nc, `{"id":4,"verb":"cancel","params":{"id":2}}`+"\n")
	hear(`"id":`)
	hear(`"id":`)
	fmt.Fprintf(nc, `{"id":5,"verb":"pane.attach","params":{"pane":%q}}`+"\n", pane)
	hear(`{"id":5,"ok":{"pane":"p0","mode":"read","state":"running","backlog_bytes":1048576,"window_bytes":1048576}}`)
	if f, err := attach.NewReader(in, 1<<20).Next(); err != nil || f.Type != attach.Snapshot || f.Cols != 80 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestAttachUnread: a thousand clients that read nothing take a bounded part of the
// daemon's memory, hold up nobody, and end at once with the daemon.
func TestAttachUnread(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand clients")
	}
	t.Parallel()
	s := newServer(t)
	c := s.client()
	var panes []string
	for range 10 {
		panes = append(panes, s.run(c, 80, 24, "/bin/sh", "-c", `read go; seq 1 400000; exec sleep 600`))
	}
	before := resident(t, s.cmd.Process.Pid)
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range 1000 {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			nc, _, _, _, err := wire.TakeOver(s.ctx, filepath.Join(s.dir, "looptape.sock"), s.owner(64<<20), "pane.attach",
				attach.Params{Pane: panes[i%10], Mode: "write", History: 100})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { nc.Close() })
		})
	}
	all.Wait()
	for _, pane := range panes {
		call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
	}
	for _, pane := range panes {
		s.until(c, pane, "through with it", func(p paneInfo) bool { return p.Offset > 3000000 })
	}
	grown := resident(t, s.cmd.Process.Pid) - before
	t.Logf("grown by %d MiB", grown>>20)
	if grown > 256<<20 {
		t.Errorf("the daemon has grown by %d MiB", grown>>20)
	}
	fast := s.attach(attach.Params{Pane: panes[0]})
	fast.until("a snapshot", func() bool { return strings.Contains(screenText(fast.screen.Term), "400000") })
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("the daemon ends with %v:\n%s", err, s.log)
	}
	<-fast.ended
	if e := attach.ParseError(fast.last(attach.Error).Data); e.Code != "unavailable.stopping" {
		t.Error(e)
	}
}

// resident is the memory that a process has, in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	fmt.Sscan(string(raw), &size, &pages)
	return pages * os.Getpagesize()
}
