package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// taking is a handler whose verb take hands the connection to serve.
func taking(serve func(ctx context.Context, t *Takeover)) handlerFunc {
	return func(ctx context.Context, c *Call) (any, error) {
		switch c.Verb {
		case "take":
			if c.Params["refuse"] != nil {
				return nil, &Error{Code: "not_found.thing", Message: "no"}
			}
			c.TakeOver(serve)
		case "wait":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return c.Verb, nil
	}
}

// echoBytes sends back what it reads, in upper case, until it reads a dot.
func echoBytes(ctx context.Context, t *Takeover) {
	buf := make([]byte, 1)
	for {
		if _, err := t.Read(buf); err != nil || buf[0] == '.' {
			return
		}
		if t.Send(ctx, bytes.ToUpper(buf), []byte("|")) != nil {
			return
		}
	}
}

// TestTakeOver: behind the answer the connection is the handler's, in both
// directions; what the client sends too early is not lost; the end is the end.
func TestTakeOver(t *testing.T) {
	socket := serve(t, taking(echoBytes))
	nc, in, w, result, err := TakeOver(t.Context(), socket, Hello{Client: "test"}, "take", map[string]int{})
	if err != nil || string(result) != `"take"` || w.Server != "test" {
		t.Fatalf("%s %+v %v", result, w, err)
	}
	io.WriteString(nc, "ab")
	io.WriteString(nc, "c.the rest")
	got, err := io.ReadAll(in)
	if string(got) != "A|B|C|" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	nc.Close()

	early, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	p := greet(t, early, 4096)
	io.WriteString(early, `{"id":1,"verb":"take"}`+"\n"+`xyz.`)
	got, err = io.ReadAll(p.in)
	if string(got) != `{"id":1,"ok":"take"}`+"\nX|Y|Z|" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTakeOverRefused: a connection that has requests in flight stays as it is, and
// so does one whose verb fails.
func TestTakeOverRefused(t *testing.T) {
	nc, ended := pipe(t.Context(), taking(echoBytes))
	p := greet(t, nc, 4096)
	p.say(`{"id":1,"verb":"wait"}`)
	p.say(`{"id":2,"verb":"take"}`)
	if got := p.hear(); !strings.HasPrefix(got, `{"id":2,"error":{"code":"conflict.connection","message":"take needs a connection of its own, and 1 requests are`) {
		t.Error(got)
	}
	p.say(`{"id":3,"verb":"cancel","params":{"id":1}}`)
	for range 2 {
		p.hear()
	}
	p.say(`{"id":4,"verb":"take","params":{"refuse":true}}`)
	if got := p.hear(); got != `{"id":4,"error":{"code":"not_found.thing","message":"no"}}`+"\n" {
		t.Error(got)
	}
	p.say(`{"id":5,"verb":"other"}`)
	if got := p.hear(); got != `{"id":5,"ok":"other"}`+"\n" {
		t.Error(got)
	}
	p.say(`{"id":6,"verb":"take"}`)
	p.hear()
	io.WriteString(nc, ".")
	<-ended

	_, _, _, _, err := TakeOver(t.Context(), serve(t, taking(echoBytes)), Hello{Client: "test"}, "take", map[string]bool{"refuse": true})
	if e := new(Error); !errors.As(err, &e) || e.Code != "not_found.thing" {
		t.Error(err)
	}
}

// TestTakeOverUnread: a client that reads nothing is waited for, but not once the
// server stops, and not while it holds memory that others need.
func TestTakeOverUnread(t *testing.T) {
	for _, stops := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			memory := newBudget(10 << 20)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var sent error
			h := taking(func(ctx context.Context, tk *Takeover) {
				if err := tk.Reserve(ctx); err != nil {
					t.Error(err)
				}
				sent = tk.SendReserved(ctx, make([]byte, 3<<20))
			})
			near, far := net.Pipe()
			defer near.Close()
			ended := make(chan struct{})
			go func() { defer close(ended); serveConn(ctx, far, h, memory) }()
			p := greet(t, near, 4<<20)
			p.say(`{"id":1,"verb":"take"}`)
			p.hear()
			time.Sleep(10 * time.Minute)
			select {
			case <-ended:
				t.Fatal("given up without need")
			default:
			}
			if memory.used > 3<<20+frameOverhead {
				t.Errorf("%d bytes for 3 MiB", memory.used)
			}
			began := time.Now()
			if stops {
				cancel()
			} else if err := memory.acquire(ctx, 8<<20); err != nil {
				t.Error(err)
			} else {
				memory.release(8 << 20)
			}
			<-ended
			if d := time.Since(began); d > 2*time.Second || !errors.Is(sent, errSlow) {
				t.Errorf("ended after %v: %v", d, sent)
			}
			if memory.used != 0 {
				t.Errorf("%d bytes are still reserved", memory.used)
			}
		})
	}
}

// TestTakeOverGone: a client that goes away before the answer ends the call; one that
// only sends no more has its answer.
func TestTakeOverGone(t *testing.T) {
	t.Parallel()
	began, answer, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	socket := serve(t, handlerFunc(func(ctx context.Context, c *Call) (any, error) {
		c.TakeOver(func(context.Context, *Takeover) {})
		began <- struct{}{}
		select {
		case <-answer:
		case <-ctx.Done():
		}
		ended <- ctx.Err()
		return "taken", ctx.Err()
	}))
	take := func() *peer {
		t.Helper()
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		nc.SetDeadline(time.Now().Add(20 * time.Second))
		p := greet(t, nc, CeilingMaxFrame)
		p.say(`{"id":1,"verb":"take"}`)
		<-began
		return p
	}
	half := take()
	defer half.nc.Close()
	half.nc.(*net.UnixConn).CloseWrite()
	time.Sleep(2 * hangUpTick)
	close(answer)
	if got, err := half.hear(), <-ended; got != `{"id":1,"ok":"taken"}`+"\n" || err != nil {
		t.Errorf("a client that sends no more: %s%v", got, err)
	}

	answer = make(chan struct{})
	take().nc.Close()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("of a client that has gone: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the call of a client that has gone goes on")
		close(answer)
	}
}

// TestTakeOverHangUp: hanging up ends reading and ctx.
func TestTakeOverHangUp(t *testing.T) {
	nc, ended := pipe(t.Context(), taking(func(ctx context.Context, tk *Takeover) {
		hangUp := time.AfterFunc(0, tk.HangUp)
		defer hangUp.Stop()
		if n, err := tk.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
		<-ctx.Done()
	}))
	p := greet(t, nc, 4096)
	p.say(`{"id":1,"verb":"take"}`)
	p.hear()
	<-ended
}

// TestTakeOverParts: parts arrive whole and in order however slowly they are read.
func TestTakeOverParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want []byte
		parts := [][]byte{bytes.Repeat([]byte("head"), 3), bytes.Repeat([]byte("0123456789"), 5000), []byte("tail")}
		for _, p := range parts {
			want = append(want, p...)
		}
		nc, ended := pipe(t.Context(), taking(func(ctx context.Context, tk *Takeover) {
			if err := tk.Send(ctx, parts...); err != nil {
				t.Error(err)
			}
		}))
		p := greet(t, nc, 4096)
		p.say(`{"id":1,"verb":"take"}`)
		p.hear()
		var got []byte
		slow := bufio.NewReaderSize(p.in, 16)
		for buf := make([]byte, 7001); ; {
			time.Sleep(900 * time.Millisecond)
			n, err := slow.Read(buf)
			if got = append(got, buf[:n]...); err != nil {
				break
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d", len(got), len(want))
		}
		<-ended
	})
}
