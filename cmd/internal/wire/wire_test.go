package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestText: strings escape what JSON requires and nothing else, come back as
// they were, and take as many bytes as StringLen says.
func TestText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune{'a', '"', '\\', '\n', '\r', '\t', '\b', '\f', 0, 0x1b, 0x1f, 0x7f, 0x85, '<', '>', '&', 0x2028, 0x2029, 0xFFFD, 'é', '漢', '👍', '/', 'u'}
	for range 5000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteRune(alphabet[r.IntN(len(alphabet))])
		}
		s := b.String()
		raw, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(raw, &back); err != nil || back != s {
			t.Fatalf("%q is written as %s and read as %q: %v", s, raw, back, err)
		}
		if len(raw) != StringLen(s) || len(raw) != StringLen([]byte(s)) {
			t.Fatalf("%s takes %d bytes, StringLen says %d", raw, len(raw), StringLen(s))
		}
		want := `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\b", `\b`, "\f", `\f`,
			"\x00", `\u0000`, "\x1b", `\u001b`, "\x1f", `\u001f`).Replace(s) + `"`
		if string(raw) != want {
			t.Fatalf("%q is written as %s, not %s", s, raw, want)
		}
	}
}

func TestLargeIntegers(t *testing.T) {
	for _, c := range []struct {
		n  any
		ok bool
	}{{uint64(MaxInteger), true}, {uint64(MaxInteger + 1), false}, {int64(-MaxInteger), true}, {uint64(1 << 63), false}, {"9007199254740999", true}, {0.12345678901234567, true}} {
		_, err := marshalResult(map[string]any{"n": c.n, "z": 1})
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c.n, err)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Code != "internal.result") {
			t.Errorf("%v: %v", c.n, err)
		}
	}
}

// echo is a handler for tests: it answers with its parameters.
type echo struct{ calls atomic.Int32 }

func (h *echo) Hello(Hello) (any, string, error) { return "somebody", "somebody", nil }
func (h *echo) Server() (string, int)            { return "echo", 1 }
func (h *echo) TakesOver(string) bool            { return false }

func (h *echo) Call(ctx context.Context, c *Call) (any, error) {
	h.calls.Add(1)
	defer h.calls.Add(-1)
	switch c.Verb {
	case "wait":
		<-ctx.Done()
		return nil, ctx.Err()
	case "stream":
		for i := range 1000 {
			if err := c.Item(ctx, map[string]int{"i": i}); err != nil {
				return nil, err
			}
		}
	case "large":
		return strings.Repeat("x", c.Room-2), nil
	case "toolarge":
		return strings.Repeat("x", c.Room-1), nil
	}
	return c.Params, nil
}

// serve listens on a socket of its own and serves what comes.
func serve(t *testing.T, h Handler) (socket string) {
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
	ctx, cancel := context.WithCancel(context.Background())
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { Serve(ctx, nc, h) })
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		conns.Wait()
		os.RemoveAll(dir)
	})
	return socket
}

func dial(t *testing.T, socket string, maxFrame int) *Client {
	t.Helper()
	c, err := Dial(t.Context(), socket, Hello{Client: "test", MaxFrame: &maxFrame})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestFrames: the largest frame that hello allows passes, one byte more does
// not, in both directions; the connection says so and what follows is served.
func TestFrames(t *testing.T) {
	c := dial(t, serve(t, &echo{}), LowestMaxFrame)
	if _, err := c.Call(t.Context(), "large", struct{}{}); err != nil {
		t.Errorf("an answer of exactly max_frame: %v", err)
	}
	var e *Error
	if _, err := c.Call(t.Context(), "toolarge", struct{}{}); !errors.As(err, &e) || e.Code != "unsupported.result_size" {
		t.Errorf("an answer of one byte more: %v", err)
	}
	id := int64(4)
	around := len(fmt.Sprintf(`{"id":%d,"verb":"echo","params":{"x":""}}`+"\n", id))
	if _, err := c.Call(t.Context(), "echo", map[string]string{"x": strings.Repeat("y", LowestMaxFrame-around)}); err != nil {
		t.Errorf("a request of exactly max_frame: %v", err)
	}
	if _, err := c.Call(t.Context(), "echo", map[string]string{"x": strings.Repeat("y", LowestMaxFrame-around+1)}); !errors.As(err, &e) || e.Code != "protocol.frame_size" {
		t.Errorf("a request of one byte more: %v", err)
	}
	if _, err := c.Call(t.Context(), "echo", struct{}{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestOverlongFrame: a line that never ends is answered and cut off; the server
// holds no more of it than max_frame.
func TestOverlongFrame(t *testing.T) {
	nc, err := net.Dial("unix", serve(t, &echo{}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	go io.Copy(nc, io.LimitReader(zeros{}, 8<<20))
	answer, err := bufio.NewReader(nc).ReadString('\n')
	if err != nil || !strings.Contains(answer, `"id":null,"error":{"code":"protocol.frame_size"`) {
		t.Errorf("%q, %v", answer, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestConcurrentCalls: answers find their callers, streams keep their order,
// and a cancelled call ends.
func TestConcurrentCalls(t *testing.T) {
	h := &echo{}
	c := dial(t, serve(t, h), DefaultMaxFrame)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			raw, err := c.Call(t.Context(), "echo", map[string]int{"n": i})
			if err != nil || string(raw) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Errorf("call %d: %s, %v", i, raw, err)
			}
		})
	}
	for range 4 {
		all.Go(func() {
			next := 0
			_, err := c.Stream(t.Context(), "stream", struct{}{}, func(item json.RawMessage) error {
				if string(item) != fmt.Sprintf(`{"i":%d}`, next) {
					t.Errorf("item %s instead of %d", item, next)
				}
				next++
				return nil
			})
			if err != nil || next != 1000 {
				t.Errorf("%d items, %v", next, err)
			}
		})
	}
	all.Wait()
	stop := errors.New("enough")
	if _, err := c.Stream(t.Context(), "stream", struct{}{}, func(json.RawMessage) error { return stop }); err == nil || err.Error() != stop.Error() {
		t.Errorf("a stream that its reader stops: %v", err)
	}
	if _, err := c.Call(t.Context(), "echo", struct{}{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestDroppedConnections opens many connections and drops them in the middle of
// a line or of a call; nothing of them stays, no goroutine and no descriptor.
func TestDroppedConnections(t *testing.T) {
	h := &echo{}
	socket := serve(t, h)
	before, files := runtime.NumGoroutine(), openFiles()
	n := 10000
	if testing.Short() {
		n = 500
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, 50)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			nc, err := connect(t.Context(), socket)
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			switch i % 3 {
			case 0:
				io.WriteString(nc, `{"id":1,"verb":"hel`)
			case 1:
				io.WriteString(nc, `{"id":1,"verb":"hello","params":{"proto":1}}`+"\n"+`{"id":2,"ve`)
			case 2:
				io.WriteString(nc, `{"id":1,"verb":"hello","params":{"proto":1}}`+"\n"+`{"id":2,"verb":"stream"}`+"\n")
			}
		})
	}
	all.Wait()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+5 || openFiles() > files+5; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before; %d descriptors, %d before; %d calls", runtime.NumGoroutine(), before, openFiles(), files, h.calls.Load())
		}
	}
}

// openFiles is the number of this process's descriptors, 0 where nobody tells.
func openFiles() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}

// names is an object with n names.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	return "{" + b.String()[min(1, n):] + "}"
}

// TestManyParams: a request has at most 64 parameters, counted before any is kept; what
// is inside one does not count.
func TestManyParams(t *testing.T) {
	for _, c := range []struct {
		what, params string
		keeps        int // -1: refused
	}{
		{"none", `{}`, 0},
		{"null", `null`, 0},
		{"the most", names(64), 64},
		{"one too many", names(65), -1},
		{"far too many", names(1 << 20), -1},
		{"one name again and again", `{` + strings.Repeat(`"a":0,`, 64) + `"a":0}`, -1},
		{"objects that add up", names(64) + `,"params":{"x":1}`, 1},
		{"an object", `{"env":` + names(1000) + `,"x":1}`, 2},
		{"arrays of objects", `{"a":[` + names(40) + `,` + names(40) + `],"b":[[]]}`, 2},
		{"texts", `{"a":"` + strings.Repeat(`\"a\":0,\\:{`, 100) + `","` + strings.Repeat(":", 100) + `":"{"}`, 2},
		{"spaces", strings.NewReplacer(",", " ,\t", ":", " : ").Replace(names(65)), -1},
	} {
		r, err := parseRequest([]byte(`{"id":1,"verb":"x","params":` + c.params + `}`))
		switch {
		case c.keeps < 0 && (err == nil || err.Code != "protocol.malformed" || !strings.Contains(err.Message, "at most 64") || len(r.Params) > 0):
			t.Errorf("%s: %v, %d kept", c.what, err, len(r.Params))
		case c.keeps >= 0 && (err != nil || len(r.Params) != c.keeps):
			t.Errorf("%s: %v, %d kept", c.what, err, len(r.Params))
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":1,"verb":"hello","params":{"proto":1,"client":"x"}}`))
	f.Add([]byte(`{"id":-1,"verb":null}`))
	f.Add([]byte(`{"id":1,"verb":"x","params":[]}`))
	f.Add([]byte(`{}{}`))
	f.Add([]byte(`{"id":1,"verb":"x","params":{"a":{"b":1,"c":[{"d":2}]},"e\\":\"":"{:,"}}`))
	f.Add([]byte(`{"id":1,"verb":"x","params":` + names(maxParams+1) + `}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, perr := parseRequest(line)
		if perr == nil && (r.ID == nil || *r.ID < 0 || r.Verb == nil) {
			t.Fatalf("%q is accepted as %+v", line, r)
		}
		if perr != nil && (perr.Exit() != 8 || perr.Message == "") {
			t.Fatalf("%q: %+v", line, perr)
		}
		if len(r.Params) > maxParams {
			t.Fatalf("%q has %d parameters", line, len(r.Params))
		}
		if perr == nil {
			parseHello(r.Params)
		}
	})
}
