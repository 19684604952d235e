package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"

	"looptape/cmd/internal/wire"
	"looptape/replay"
)

// Params are the parameters of pane.attach.
type Params struct {
	Pane    string `json:"pane"`
	Mode    string `json:"mode,omitempty"`
	Cols    int    `json:"cols,omitempty"` // of a writer's viewport
	Rows    int    `json:"rows,omitempty"`
	History int    `json:"history,omitempty"` // rows
}

// ackEvery is after how much of the stream a Client acknowledges, in bytes.
const ackEvery = Window / 16

// Client is one attachment. Next is for one goroutine, the other methods for any.
type Client struct {
	nc net.Conn
	in *Reader

	seen, acked uint64 // Next's: offsets
	snapshot    bool   // a Snapshot is yet to be acknowledged

	mu sync.Mutex // held while a frame is written
}

// Dial attaches to a pane by the daemon that listens on the socket. params are a Params,
// or whatever else is pane.attach's when it is written as JSON. A refusal is a
// *wire.Error.
func Dial(ctx context.Context, socket string, h wire.Hello, params any) (*Client, error) {
	nc, in, welcome, _, err := wire.TakeOver(ctx, socket, h, "pane.attach", params)
	if err != nil {
		return nil, err
	}
	return &Client{nc: nc, in: NewReader(in, welcome.MaxFrame)}, nil
}

// Next returns the next frame. Data is valid until the next call, by which the client
// says that it has processed the frame: it is acknowledged then. io.EOF is the end.
func (c *Client) Next() (Frame, error) {
	if c.snapshot || c.seen-c.acked >= ackEvery {
		c.write(Frame{Type: Ack, Offset: c.seen}) // when it fails, the next read says why
		c.acked, c.snapshot = c.seen, false
	}
	f, err := c.in.Next()
	switch f.Type {
	case Snapshot:
		c.seen, c.acked, c.snapshot = f.Offset, f.Offset, true
	case Output:
		c.seen = f.End()
	}
	return f, err
}

// Input types data, in pieces of MaxInput.
func (c *Client) Input(data []byte) error {
	for len(data) > 0 {
		n := min(len(data), MaxInput)
		if err := c.write(Frame{Type: Input, Data: data[:n]}); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Viewport says how large the client's viewport is.
func (c *Client) Viewport(cols, rows int) error {
	return c.write(Frame{Type: Viewport, Cols: cols, Rows: rows})
}

// Detach says that the client leaves.
func (c *Client) Detach() error { return c.write(Frame{Type: Detach}) }

// Close ends the attachment; a Next that waits fails.
func (c *Client) Close() error { return c.nc.Close() }

func (c *Client) write(f Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.nc.Write(Append(nil, f))
	return err
}

// ParseError is the error object in the Data of an Error.
func ParseError(data []byte) *wire.Error {
	e := &wire.Error{}
	if err := json.Unmarshal(data, e); err != nil || e.Code == "" {
		return &wire.Error{Code: "protocol.malformed", Message: fmt.Sprintf("the daemon sent %q as an error", data)}
	}
	return e
}

// Status is what the Data of an Exit says.
type Status struct {
	Code   *int   `json:"code"`   // exit code; nil if it was a signal, or if nobody knows
	Signal string `json:"signal"` // its name, as SIGTERM
	Closed bool   `json:"closed"` // nothing more comes
}

// ParseStatus reads the Data of an Exit.
func ParseStatus(data []byte) (Status, error) {
	var s Status
	err := json.Unmarshal(data, &s)
	return s, err
}

// ErrSequence says that a frame does not follow from the frames before it.
var ErrSequence = errors.New("attach: frames out of sequence")

// Emulator is a terminal that shows what the frames of an attachment say.
type Emulator struct {
	Term   *replay.Terminal // nil before the first Snapshot
	Offset uint64           // of the pane's stream
	Epoch  uint32           // of the pane, at the last Snapshot or Resize
	// Events is told what Outputs cause beside rows, if it is not nil.
	Events func(replay.Event)
}

// Apply obeys a frame; those that are not about the screen change nothing. The error
// is ErrSequence.
func (e *Emulator) Apply(f Frame) error {
	switch f.Type {
	case Snapshot:
		e.Term = replay.New(f.Cols, f.Rows, 0)
		e.Term.Feed(f.Data)
		e.Term.SetEventSink(e.Events)
		e.Offset, e.Epoch = f.Offset, f.Epoch
	case Output, Resize:
		if e.Term == nil || f.Offset != e.Offset {
			return fmt.Errorf("%w: %s at offset %d behind %d", ErrSequence, f.Type, f.Offset, e.Offset)
		}
		if f.Type == Resize {
			e.Term.Resize(f.Cols, f.Rows)
			e.Epoch = f.Epoch
			break
		}
		e.Term.Feed(f.Data)
		e.Offset = f.End()
	}
	if e.Term != nil {
		e.Term.TakeReplies() // the pane's terminal answers
	}
	return nil
}
