package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Call is one request. Its methods are for one goroutine at a time.
//
// While a handler runs, a whole max_frame of memory is reserved for what it
// produces: of a client that reads nothing, only so many requests run as their
// answers fit. A handler that waits for something says so by Wait, and holds no
// lock that other requests need while it is in Wait or Item.
type Call struct {
	Caller any
	Verb   string
	Params map[string]json.RawMessage
	// Room is the size of the largest result, as JSON, that fits the answer.
	Room int
	// Failed, if the handler sets it, is told the error that the call is answered
	// with, be it the handler's or that the answer does not fit.
	Failed func(*Error)

	id       int64
	conn     *conn
	reserved bool
	takeOver func(context.Context, *Takeover)
}

// Item sends one item of a stream. It blocks while the client reads too little;
// an error means that there is nobody to stream to any more.
func (c *Call) Item(ctx context.Context, v any) error {
	f, err := encodeFrame(c.id, "item", v)
	if err != nil {
		return err
	}
	if len(f) > c.conn.max {
		return resultSize(len(f), c.conn.max)
	}
	if err := c.conn.gone.Err(); err != nil {
		return err
	}
	if err := c.enter(ctx); err != nil {
		return err
	}
	c.pass(f)
	return c.enter(ctx)
}

// Wait runs wait, during which the handler holds no large result: the memory
// that is reserved for this request serves others meanwhile. Afterwards it waits
// for memory as long as ctx allows, which is the request's and has no deadline of
// wait's. Its error is ctx's then, and otherwise wait's.
func (c *Call) Wait(ctx context.Context, wait func() error) error {
	c.leave()
	err := wait()
	if eerr := c.enter(ctx); eerr != nil {
		return eerr
	}
	return err
}

// enter reserves a frame, unless one is reserved. It holds nothing of conn.own
// while it waits for that.
func (c *Call) enter(ctx context.Context) error {
	if c.reserved {
		return nil
	}
	err := c.conn.reserve(ctx, c.conn.weight())
	c.reserved = err == nil
	return err
}

func (c *Call) leave() {
	if c.reserved {
		c.reserved = false
		c.conn.free(c.conn.weight())
	}
}

// pass queues a frame, which takes its part of the reservation along; the rest
// of it is given back.
func (c *Call) pass(frame []byte) {
	cost := len(frame) + frameOverhead
	c.reserved = false
	c.conn.free(c.conn.weight() - cost)
	c.conn.out.push(queued{frame, cost, byRequest})
}

// run has the handler's answer to the call, as a frame.
func (c *Call) run(ctx context.Context) ([]byte, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	result, err := c.conn.h.Call(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	f, err := encodeFrame(c.id, "ok", result)
	if err == nil && len(f) > c.conn.max {
		err = resultSize(len(f), c.conn.max)
	}
	return f, err
}

// answer queues the last frame of the call, an error frame if err is one.
func (c *Call) answer(f []byte, err *Error) {
	if err == nil {
		c.pass(f)
		return
	}
	if c.Failed != nil && c.conn.gone.Err() == nil {
		c.Failed(err)
	}
	if c.reserved {
		c.pass(errorFrame(&c.id, err, c.conn.max))
		return
	}
	c.conn.say(&c.id, err)
}

// why is what the client is told of err: cancelled says that it asked for that.
func (c *conn) why(err error, cancelled bool) *Error {
	switch {
	case !errors.Is(err, context.Canceled):
	case cancelled:
		return &Error{Code: "timeout.cancelled", Message: "the request was cancelled"}
	case c.gone.Err() != nil:
		return &Error{Code: "unavailable.stopping", Message: "the daemon is stopping"}
	}
	return AsError(err)
}

// envelope is the size of an answer around its result.
func envelope(id int64) int {
	return len(`{"id":,"ok":}`) + len(strconv.FormatInt(id, 10)) + 1
}

func resultSize(size, limit int) *Error {
	return &Error{
		Code:    "unsupported.result_size",
		Message: fmt.Sprintf("the answer takes %d bytes, the connection allows %d: ask for less, or connect with a larger max_frame", size, limit),
		Data:    map[string]int{"bytes": size, "max_frame": limit},
	}
}
