package mcp

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastAnswers is how long calls may take to be answered after the client has
// closed its sending half.
const lastAnswers = time.Second

// transport is that of the SDK behind lines, with a delay: the SDK gives up what is in flight
// when its input ends, and a client that sends its requests and closes would get
// no answers.
type transport struct {
	in  io.ReadCloser
	out io.WriteCloser
}

func (t *transport) Connect(ctx context.Context) (sdk.Connection, error) {
	out := &turns{WriteCloser: t.out}
	c, err := (&sdk.IOTransport{Reader: newLines(t.in, out), Writer: out}).Connect(ctx)
	return &connection{Connection: c, open: map[jsonrpc.ID]bool{}, idle: make(chan struct{})}, err
}

// connection knows which calls are not answered yet.
type connection struct {
	sdk.Connection

	mu    sync.Mutex
	open  map[jsonrpc.ID]bool
	ended bool          // nothing more comes in
	idle  chan struct{} // closed when ended and nothing is open
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.end()
		select {
		case <-c.idle:
		case <-time.After(lastAnswers):
		}
	}
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && r.IsCall() {
		c.note(r.ID, true)
	}
	return m, err
}

func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.note(r.ID, false)
	}
	return err
}

func (c *connection) note(id jsonrpc.ID, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if open {
		c.open[id] = true
		return
	}
	delete(c.open, id)
	if c.ended && len(c.open) == 0 {
		c.closeIdleLocked()
	}
}

func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if len(c.open) == 0 {
		c.closeIdleLocked()
	}
}

func (c *connection) closeIdleLocked() {
	select {
	case <-c.idle:
	default:
		close(c.idle)
	}
}
