package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Client is one connection to a daemon. Its methods may be called from many
// goroutines; answers find their callers by id.
type Client struct {
	Welcome Welcome

	nc   net.Conn
	done chan struct{} // closed when receive has ended

	mu      sync.Mutex
	next    int64
	waiting map[int64]*pending
	broken  error // why nothing more can be answered
}

// pending is a request that has not been answered yet.
type pending struct {
	item  func(json.RawMessage) error
	reply chan reply // holds one
}

// Dial connects to the daemon that listens on the Unix socket and greets it.
// When none listens, the error is unavailable.daemon.
func Dial(ctx context.Context, socket string, h Hello) (*Client, error) {
	nc, err := connect(ctx, socket)
	if err != nil {
		return nil, dialError(socket, err)
	}
	c := &Client{nc: nc, done: make(chan struct{}), waiting: make(map[int64]*pending)}
	h.Proto = Proto
	limit := CeilingMaxFrame // the answer to hello may come before the agreed limit is known
	go c.receive(limit)
	raw, err := c.Call(ctx, "hello", h)
	if err == nil {
		err = json.Unmarshal(raw, &c.Welcome)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// busyPatience is how long connect tries while the daemon has more clients
// waiting than the kernel keeps.
const busyPatience = 5 * time.Second

func connect(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	for began := time.Now(); ; {
		nc, err := d.DialContext(ctx, "unix", socket)
		if !errors.Is(err, syscall.EAGAIN) || time.Since(began) > busyPatience {
			return nc, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func dialError(socket string, err error) error {
	message := fmt.Sprintf("no daemon listens on %s: start one with 'looptape serve', or with 'looptape run -- COMMAND'", socket)
	switch {
	case errors.Is(err, os.ErrPermission):
		return &Error{Code: "denied.socket", Message: fmt.Sprintf("the socket %s belongs to somebody else", socket)}
	case errors.Is(err, syscall.EAGAIN):
		return &Error{Code: "limit.clients", Message: fmt.Sprintf("the daemon at %s has too many clients: try again later", socket)}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
	default:
		message += " (" + err.Error() + ")"
	}
	return &Error{Code: "unavailable.daemon", Message: message}
}

// Close ends the connection; calls that wait fail.
func (c *Client) Close() error {
	err := c.nc.Close()
	<-c.done
	return err
}

// Call runs one verb and returns its result. A failed verb's error is an *Error.
func (c *Client) Call(ctx context.Context, verb string, params any) (json.RawMessage, error) {
	return c.Stream(ctx, verb, params, nil)
}

// Stream runs a verb that streams: item is called for each item, in order, on
// the receiving goroutine, and stops the stream by an error.
func (c *Client) Stream(ctx context.Context, verb string, params any, item func(json.RawMessage) error) (json.RawMessage, error) {
	p := &pending{item: item, reply: make(chan reply, 1)}
	id, err := c.start(verb, params, p)
	if err != nil {
		return nil, err
	}
	select {
	case r := <-p.reply:
		return result(r)
	case <-ctx.Done():
		c.forget(id)
		return nil, ctx.Err()
	case <-c.done:
		select {
		case r := <-p.reply:
			return result(r)
		default:
			return nil, c.why()
		}
	}
}

func result(r reply) (json.RawMessage, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	return r.OK, nil
}

func (c *Client) start(verb string, params any, p *pending) (int64, error) {
	body, err := Marshal(params)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return 0, c.broken
	}
	c.next++
	id := c.next
	line, err := Marshal(struct {
		ID     int64           `json:"id"`
		Verb   string          `json:"verb"`
		Params json.RawMessage `json:"params"`
	}{id, verb, body})
	if err != nil {
		return 0, err
	}
	if limit := c.Welcome.MaxFrame; limit > 0 && len(line) >= limit {
		return 0, frameSize(limit)
	}
	if _, err := c.nc.Write(append(line, '\n')); err != nil {
		return 0, lost(err)
	}
	c.waiting[id] = p
	return id, nil
}

func (c *Client) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

func (c *Client) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// receive hands answers to their callers. It ends when the connection does;
// Close waits for it.
func (c *Client) receive(limit int) {
	defer close(c.done)
	in := &frames{r: bufio.NewReaderSize(c.nc, 64<<10), max: limit}
	for {
		line, err := in.next()
		var r reply
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err == nil && r.ID == nil {
			if r.Err == nil {
				r.Err = malformed("the daemon answered nothing that belongs to a request")
			}
			err = r.Err
		}
		if err != nil {
			c.fail(lost(err))
			return
		}
		c.deliver(r)
	}
}

func (c *Client) deliver(r reply) {
	c.mu.Lock()
	p := c.waiting[*r.ID]
	if p != nil && r.Item == nil {
		delete(c.waiting, *r.ID)
	}
	c.mu.Unlock()
	switch {
	case p == nil:
	case r.Item == nil:
		p.reply <- r
	case p.item != nil:
		if err := p.item(r.Item); err != nil {
			c.forget(*r.ID)
			p.reply <- reply{Err: AsError(err)}
			c.start("cancel", map[string]int64{"id": *r.ID}, &pending{reply: make(chan reply, 1)})
		}
	}
}

func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
}

// lost makes an error object of a broken connection.
func lost(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return &Error{Code: "unavailable.connection", Message: "the daemon closed the connection"}
	}
	return &Error{Code: "unavailable.connection", Message: "the connection to the daemon broke: " + err.Error()}
}
