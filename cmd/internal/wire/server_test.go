package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// handlerFunc is a handler for tests that runs every verb.
type handlerFunc func(ctx context.Context, c *Call) (any, error)

func (handlerFunc) Hello(Hello) (any, string, error) { return nil, "somebody", nil }
func (handlerFunc) Server() (string, int)            { return "test", 1 }
func (handlerFunc) TakesOver(verb string) bool       { return verb == "take" }

func (f handlerFunc) Call(ctx context.Context, c *Call) (any, error) { return f(ctx, c) }

// peer is a client by hand: it reads only when it is told to.
type peer struct {
	t  *testing.T
	nc net.Conn
	in *bufio.Reader
}

// greet says hello on nc.
func greet(t *testing.T, nc net.Conn, maxFrame int) *peer {
	t.Helper()
	p := &peer{t, nc, bufio.NewReader(nc)}
	p.say(`{"id":0,"verb":"hello","params":{"proto":1,"max_frame":%d}}`, maxFrame)
	if got := p.hear(); !strings.HasPrefix(got, `{"id":0,"ok":`) {
		t.Fatalf("hello: %s", got)
	}
	return p
}

func (p *peer) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.nc, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) hear() string {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v behind %.80q", err, line)
	}
	return line
}

// pipe serves one end of a pipe and returns the other. ended is closed when
// Serve has returned.
func pipe(ctx context.Context, h Handler) (nc net.Conn, ended <-chan struct{}) {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		Serve(ctx, far, h)
	}()
	return near, done
}

// large is a handler whose answers take a whole frame.
type large struct{ begun, running atomic.Int32 }

func (h *large) Hello(Hello) (any, string, error) { return nil, "somebody", nil }
func (h *large) Server() (string, int)            { return "large", 1 }
func (h *large) TakesOver(string) bool            { return false }

func (h *large) Call(_ context.Context, c *Call) (any, error) {
	h.begun.Add(1)
	h.running.Add(1)
	defer h.running.Add(-1)
	return strings.Repeat("x", c.Room-2), nil
}

// TestUnreadAnswers: a client that reads nothing has as many requests run as fit
// two frames, and is dropped 30 s later; one that reads in the end gets them all.
func TestUnreadAnswers(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := &large{}
			nc, ended := pipe(t.Context(), h)
			defer nc.Close()
			p := greet(t, nc, 4<<20)
			for id := range 8 {
				p.say(`{"id":%d,"verb":"x"}`, id)
			}
			synctest.Wait()
			if n := h.begun.Load(); n != 2 {
				t.Fatalf("%d handlers ran ahead of a client that reads nothing", n)
			}
			began := time.Now()
			if !reads {
				<-ended
				if d := time.Since(began); d < 25*time.Second || d > 35*time.Second {
					t.Errorf("dropped after %v", d)
				}
				return
			}
			time.Sleep(20 * time.Second)
			for range 8 {
				if got := len(p.hear()); got != 4<<20 {
					t.Fatalf("an answer of %d bytes", got)
				}
			}
			nc.Close()
			<-ended
		})
	}
}

// hooked calls back before a read deadline is set.
type hooked struct {
	net.Conn
	before func(time.Time)
}

func (c *hooked) SetReadDeadline(t time.Time) error {
	c.before(t)
	return c.Conn.SetReadDeadline(t)
}

// TestStopAtDeadlines: ctx may end between any two steps of Serve; it returns.
// Here it ends just before the deadline of hello is set (n = 1), and before that
// is lifted (n = 2).
func TestStopAtDeadlines(t *testing.T) {
	for n := 1; n <= 2; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		near, far := net.Pipe()
		defer near.Close()
		var calls atomic.Int32
		halted := make(chan struct{}, 1)
		c := &hooked{far, func(d time.Time) {
			if d.Unix() == 1 {
				time.AfterFunc(10*time.Millisecond, func() { halted <- struct{}{} })
			} else if int(calls.Add(1)) == n {
				cancel()
				select {
				case <-halted:
				case <-time.After(100 * time.Millisecond):
				}
			}
		}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Serve(ctx, c, &echo{})
		}()
		if n == 2 {
			go io.Copy(io.Discard, near)
			io.WriteString(near, `{"id":1,"verb":"hello","params":{"proto":1}}`+"\n")
		}
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Errorf("step %d: Serve does not return", n)
		}
		cancel()
	}
}

// TestStopWhileWriting: a client that does not read holds a stop up for a moment,
// not for the deadline of a write.
func TestStopWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		nc, ended := pipe(ctx, &large{})
		defer nc.Close()
		greet(t, nc, 1<<20).say(`{"id":1,"verb":"x"}`)
		synctest.Wait()
		time.Sleep(500 * time.Millisecond)
		cancel()
		began := time.Now()
		<-ended
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("Serve returned after %v", d)
		}
	})
}

// TestTooManyRequests: the 65th request in flight is refused, and cancel still
// reaches the others.
func TestTooManyRequests(t *testing.T) {
	waits := handlerFunc(func(ctx context.Context, c *Call) (any, error) {
		err := c.Wait(ctx, func() error {
			<-ctx.Done()
			return ctx.Err()
		})
		return nil, err
	})
	nc, _ := net.Dial("unix", serve(t, waits))
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	p := greet(t, nc, CeilingMaxFrame)
	for id := range 65 {
		p.say(`{"id":%d,"verb":"wait"}`, id)
	}
	if got := p.hear(); !strings.HasPrefix(got, `{"id":64,"error":{"code":"limit.requests"`) {
		t.Errorf("the 65th: %s", got)
	}
	p.say(`{"id":100,"verb":"cancel","params":{"id":7}}`)
	answers := p.hear() + p.hear()
	if !strings.Contains(answers, `{"id":100,"ok":{"cancelled":true}}`) || !strings.Contains(answers, `{"id":7,"error":{"code":"timeout.cancelled"`) {
		t.Errorf("cancel: %s", answers)
	}
	p.say(`{"id":65,"verb":"wait"}`)
	p.say(`{"id":101,"verb":"cancel","params":{"id":65}}`)
	if answers = p.hear() + p.hear(); !strings.Contains(answers, `{"id":101,"ok":{"cancelled":true}}`) {
		t.Errorf("afterwards: %s", answers)
	}
}

// TestStopping: what a handler says when the server stops reaches the client;
// only a cancel of the client's own is called one.
func TestStopping(t *testing.T) {
	for _, c := range []struct {
		err, want string
		cancel    bool
	}{
		{"", "timeout.cancelled", true},
		{"", "unavailable.stopping", false},
		{"conflict.own", "conflict.own", true},
		{"conflict.own", "conflict.own", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			nc, ended := pipe(ctx, handlerFunc(func(ctx context.Context, _ *Call) (any, error) {
				<-ctx.Done()
				if c.err != "" {
					return nil, &Error{Code: c.err, Message: "x"}
				}
				return nil, fmt.Errorf("wrapped: %w", ctx.Err())
			}))
			defer func() { <-ended }()
			defer nc.Close()
			p := greet(t, nc, 1<<20)
			p.say(`{"id":1,"verb":"wait"}`)
			synctest.Wait()
			if c.cancel {
				p.say(`{"id":2,"verb":"cancel","params":{"id":1}}`)
			} else {
				stop()
			}
			for got := ""; !strings.HasPrefix(got, `{"id":1,`); {
				if got = p.hear(); strings.HasPrefix(got, `{"id":1,`) && !strings.Contains(got, `"`+c.want+`"`) {
					t.Errorf("%+v: %s", c, got)
				}
			}
		})
	}
}

// TestGoneClients: the requests of a client that closed the connection end at
// once, those of one that only sends no more are answered.
func TestGoneClients(t *testing.T) {
	for _, full := range []bool{true, false} {
		h := &echo{}
		nc, err := net.Dial("unix", serve(t, h))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(20 * time.Second))
		p := greet(t, nc, 1<<20)
		p.say(`{"id":1,"verb":"wait"}`)
		until(t, "the call", func() bool { return h.calls.Load() == 1 })
		if !full {
			p.say(`{"id":2,"verb":"stream"}`)
			nc.(*net.UnixConn).CloseWrite()
			for range 1001 {
				p.hear()
			}
			time.Sleep(2 * hangUpTick)
			if h.calls.Load() != 1 {
				t.Error("a request of a client that still waits has ended")
			}
		}
		nc.Close()
		until(t, "the end of the call", func() bool { return h.calls.Load() == 0 })
	}
}

// until waits a few seconds for something.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// TestLongError: an error that does not fit max_frame is answered without its
// data, and with the beginning of its message.
func TestLongError(t *testing.T) {
	for _, e := range []*Error{
		{Code: "conflict.long", Message: "short", Data: strings.Repeat("d", LowestMaxFrame)},
		{Code: "conflict.long", Message: strings.Repeat("\x01ü", LowestMaxFrame), Data: 1},
		{Code: "conflict.long" + strings.Repeat("g", LowestMaxFrame), Message: strings.Repeat("\x01", 511)},
	} {
		c := dial(t, serve(t, handlerFunc(func(context.Context, *Call) (any, error) { return nil, e })), LowestMaxFrame)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := c.Call(ctx, "x", struct{}{})
		cancel()
		var got *Error
		if !errors.As(err, &got) || !strings.HasPrefix(got.Code, "conflict.long") || got.Data != nil ||
			!strings.HasPrefix(e.Message, strings.TrimSuffix(got.Message, "…")) || len(got.Message) < 5 {
			t.Errorf("%.30q: %v", e.Message, err)
		}
	}
}

// TestRawMessages: JSON that a handler passes through means the same afterwards,
// and the escapes that encoding/json adds are undone wherever they are.
func TestRawMessages(t *testing.T) {
	for in, want := range map[string]string{
		`"\ud83d\ude00"`:          `"\ud83d\ude00"`,
		`"\uD83D\uDE00 \u00e9"`:   `"\uD83D\uDE00 \u00e9"`,
		`"\ud83d"`:                `"\ud83d"`,
		`"\u2028\u2029\uFFFD"`:    "\"\u2028\u2029\uFFFD\"",
		`"\ufffd\\ufffd\\\ufFfd"`: "\"\uFFFD\\\\ufffd\\\\\uFFFD\"",
		`{"\u2028":["\"1",1]}`:    "{\"\u2028\":[\"\\\"1\",1]}",
	} {
		got, err := Marshal(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s is written as %s, not %s: %v", in, got, want, err)
		}
	}
}
