package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fake listens on a socket, and runs a daemon by hand for the one client that
// comes.
func fake(t *testing.T, daemon func(nc net.Conn)) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if nc, err := l.Accept(); err == nil {
			daemon(nc)
			nc.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
		os.RemoveAll(dir)
	})
	return socket
}

// TestBusyBothWays: a daemon that sends a lot before it reads on, and a client
// that sends a lot at that time, do not wait for each other.
func TestBusyBothWays(t *testing.T) {
	const items, size = 64, 64 << 10
	socket := fake(t, func(nc net.Conn) {
		in := bufio.NewReaderSize(nc, 64)
		in.ReadString('\n')
		fmt.Fprintf(nc, `{"id":1,"ok":{"proto":1,"max_frame":%d}}`+"\n", CeilingMaxFrame)
		in.ReadString('\n')
		time.Sleep(200 * time.Millisecond) // the second request is on its way, and stuck
		for range items {
			fmt.Fprintf(nc, `{"id":2,"item":"%s"}`+"\n", strings.Repeat("x", size))
		}
		fmt.Fprintln(nc, `{"id":2,"ok":{}}`)
		in.ReadString('\n')
		fmt.Fprintln(nc, `{"id":3,"ok":{}}`)
	})
	c, err := Dial(t.Context(), socket, Hello{})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Second, func() { c.nc.Close() })
	streamed := make(chan error, 1)
	got := 0
	go func() {
		_, err := c.Stream(t.Context(), "stream", struct{}{}, func(json.RawMessage) error { got++; return nil })
		streamed <- err
	}()
	time.Sleep(100 * time.Millisecond)
	if _, err := c.Call(t.Context(), "large", strings.Repeat("y", 4<<20)); err != nil {
		t.Errorf("the large request: %v", err)
	}
	if err := <-streamed; err != nil || got != items {
		t.Errorf("%d items, %v", got, err)
	}
	c.Close()
}

// TestCallerLeaves: when the context of a call ends, so does the request, and its
// items are not delivered any more.
func TestCallerLeaves(t *testing.T) {
	h := &echo{}
	c := dial(t, serve(t, h), DefaultMaxFrame)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "wait", struct{}{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	until(t, "the end of the request", func() bool { return h.calls.Load() == 0 })
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		c.Stream(ctx, "stream", struct{}{}, func(json.RawMessage) error {
			if n++; n == 3 {
				cancel()
			}
			return nil
		})
		n++ // a race if items still come
		cancel()
	}
	until(t, "the end of the streams", func() bool { return h.calls.Load() == 0 })
	for range 2 * maxInFlight { // every slot came back
		if _, err := c.Call(t.Context(), "echo", struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefuse: a client that is not served learns why, however it was doing.
func TestRefuse(t *testing.T) {
	for range 50 {
		socket := fake(t, func(nc net.Conn) { Refuse(nc, &Error{Code: "limit.clients", Message: "too many"}) })
		_, err := Dial(t.Context(), socket, Hello{})
		var e *Error
		if !errors.As(err, &e) || e.Code != "limit.clients" {
			t.Fatal(err)
		}
	}
	near, far := net.Pipe() // nobody reads
	defer near.Close()
	began := time.Now()
	Refuse(far, &Error{Code: "limit.clients"})
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("closed after %v", d)
	}
}

// TestOtherUser: nothing is said to a daemon of another user.
func TestOtherUser(t *testing.T) {
	if socket := os.Getenv("WIRE_TEST_SOCKET"); socket != "" {
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		os.Chmod(socket, 0o777)
		nc, _ := l.Accept()
		nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, _ := nc.Read(make([]byte, 1))
		os.Exit(10 + n)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs to be root, to run something as another user")
	}
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o777)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(dir, "wire.test")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(program, "-test.run=^TestOtherUser$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WIRE_TEST_SOCKET="+socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	until(t, "the socket", func() bool { info, err := os.Stat(socket); return err == nil && info.Mode()&0o777 == 0o777 })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = Dial(ctx, socket, Hello{})
	var e *Error
	if !errors.As(err, &e) || e.Code != "denied.socket" || !strings.Contains(e.Message, socket) {
		t.Errorf("%v", err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 10 {
		t.Errorf("the other daemon ended with %d: it was told something", code)
	}
}
