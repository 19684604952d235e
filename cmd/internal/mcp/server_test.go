package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"looptape/cmd/internal/wire"
)

// daemon is a daemon whose verbs do as its function says.
type daemon struct {
	listener *net.UnixListener
	call     func(ctx context.Context, d *daemon, verb string) (any, error)
	clients  sync.WaitGroup

	mu   sync.Mutex
	last *net.UnixConn // the client that came last
}

// drop closes the connection of the client that came last.
func (d *daemon) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last.Close()
}

func (d *daemon) Hello(wire.Hello) (any, string, error) { return nil, "test", nil }
func (d *daemon) Server() (string, int)                 { return "test", 1 }
func (d *daemon) TakesOver(string) bool                 { return false }

func (d *daemon) Call(ctx context.Context, c *wire.Call) (result any, err error) {
	err = c.Wait(ctx, func() (err error) {
		result, err = d.call(ctx, d, c.Verb)
		return err
	})
	return result, err
}

// accept serves connections until the listener is closed; the test waits for
// the clients.
func (d *daemon) accept(ctx context.Context) {
	for {
		nc, err := d.listener.AcceptUnix()
		if err != nil {
			d.clients.Done()
			return
		}
		d.mu.Lock()
		d.last = nc
		d.mu.Unlock()
		d.clients.Go(func() { wire.Serve(ctx, nc, d) })
	}
}

// connect starts a daemon and an MCP server before it, and connects to that.
func connect(t *testing.T, call func(context.Context, *daemon, string) (any, error)) *sdk.ClientSession {
	t.Helper()
	dir, err := os.MkdirTemp("", "lt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{listener: l, call: call}
	ctx, hangUp := context.WithCancel(context.Background())
	d.clients.Add(1)
	go d.accept(ctx)
	t.Cleanup(func() {
		l.Close()
		hangUp()
		d.clients.Wait()
	})

	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(context.Background(), Config{
			Dial:    func(ctx context.Context) (*wire.Client, error) { return wire.Dial(ctx, socket, wire.Hello{}) },
			Version: "1", In: fromClient, Out: toClient,
		})
	}()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(context.Background(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) { // an answer that nobody waits for
			t.Errorf("the server ended with %v", err)
		}
	})
	return c
}

// TestCancel: a request that the client cancels is cancelled at the daemon.
func TestCancel(t *testing.T) {
	began, ended := make(chan string), make(chan error)
	c := connect(t, func(ctx context.Context, _ *daemon, verb string) (any, error) {
		began <- verb
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	for range 100 { // more than a connection has in flight
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error)
		go func() {
			_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "pane_dexport", Arguments: map[string]any{"pane": "p0"}})
			answered <- err
		}()
		if verb := <-began; verb != "pane.export" {
			t.Fatalf("%s was called", verb)
		}
		cancel()
		if err := <-answered; !errors.Is(err, context.Canceled) {
			t.Fatalf("the cancelled call: %v", err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("the daemon's: %v", err)
		}
	}
}

// TestErrors: whatever the daemon says of an error arrives, in text and as
// content.
func TestErrors(t *testing.T) {
	c := connect(t, func(context.Context, *daemon, string) (any, error) {
		return nil, &wire.Error{Code: "conflict.epoch", Message: `"row" <epoch>` + "\u2028", Data: map[string]any{"epoch": 1, "screen": "primary"}}
	})
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "pane_dcapture__rows"})
	if err != nil || !r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	const want = `{"error":{"code":"conflict.epoch","message":"\"row\" <epoch>` + "\u2028" + `","data":{"epoch":1,"screen":"primary"}}}`
	if text := r.Content[0].(*sdk.TextContent).Text; text != want {
		t.Errorf("text %s", text)
	}
	var e struct {
		Error struct {
			Code, Message string
			Data          struct{ Epoch int }
		}
	}
	raw, _ := json.Marshal(r.StructuredContent)
	if err := json.Unmarshal(raw, &e); err != nil || e.Error.Code != "conflict.epoch" || e.Error.Message != "\"row\" <epoch>\u2028" || e.Error.Data.Epoch != 1 {
		t.Errorf("content %s", raw)
	}
}

// TestRepeats: when the connection breaks under a call, one that only reads is
// made again, one that changes something is not.
func TestRepeats(t *testing.T) {
	var mu sync.Mutex
	calls := map[string]int{}
	count := func(verb string, n int) int {
		mu.Lock()
		defer mu.Unlock()
		calls[verb] += n
		return calls[verb]
	}
	c := connect(t, func(ctx context.Context, d *daemon, verb string) (any, error) {
		if count(verb, 1) == 1 {
			d.drop()
			<-ctx.Done()
		}
		return map[string]any{}, ctx.Err()
	})
	for _, test := range []struct {
		tool, verb string
		calls      int
	}{{"pane_dget", "pane.get", 2}, {"pane_dexport", "pane.export", 2}, {"pane_dwrite", "pane.write", 1}} {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: test.tool, Arguments: map[string]any{"pane": "p0"}})
		if err != nil || r.IsError != (test.calls == 1) || count(test.verb, 0) != test.calls {
			t.Errorf("%s: %+v, %v after %d calls", test.tool, r, err, count(test.verb, 0))
		}
		if r.IsError && !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "unavailable.connection") {
			t.Errorf("%s: %+v", test.tool, r.Content[0])
		}
	}
}
