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
// goroutines; answers find their callers by id. More calls than a connection may
// have in flight wait for one another.
type Client struct {
	Welcome Welcome

	nc      net.Conn
	slots   chan struct{}  // one for each request in flight
	writing chan struct{}  // holds one while somebody writes a line
	done    chan struct{}  // closed when receive has ended
	cancels sync.WaitGroup // of the goroutines that send cancel

	mu      sync.Mutex
	next    int64
	waiting map[int64]*pending
	broken  error // why nothing more can be answered
}

// pending is a request that has not been answered yet.
type pending struct {
	item    func(json.RawMessage) error
	reply   chan reply // holds one
	request bool       // takes a slot, which its answer gives back: it is no cancel

	mu   sync.Mutex // held while item runs
	over bool       // the caller has gone: item is not called any more
}

// Dial connects to the daemon that listens on the Unix socket and greets it.
// When none listens, the error is unavailable.daemon; when what listens runs as
// another user, denied.socket, and it is told nothing.
func Dial(ctx context.Context, socket string, h Hello) (*Client, error) {
	nc, err := dialOwn(ctx, socket)
	if err != nil {
		return nil, err
	}
	c := &Client{
		nc: nc, waiting: make(map[int64]*pending), done: make(chan struct{}),
		slots: make(chan struct{}, maxInFlight), writing: make(chan struct{}, 1),
	}
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

// dialOwn connects to the socket, if it is this user's.
func dialOwn(ctx context.Context, socket string) (net.Conn, error) {
	nc, err := connect(ctx, socket)
	if err != nil {
		return nil, dialError(socket, err)
	}
	if uc, ok := nc.(*net.UnixConn); !ok || !SamePeer(uc) {
		nc.Close()
		return nil, dialError(socket, os.ErrPermission)
	}
	return nc, nil
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
		return &Error{Code: "denied.socket", Message: fmt.Sprintf("the socket %s belongs to another user: nothing was sent to it", socket)}
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
	c.cancels.Wait()
	return err
}

// Alive says whether the connection still stands, as far as is known.
func (c *Client) Alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Call runs one verb and returns its result. A failed verb's error is an *Error.
func (c *Client) Call(ctx context.Context, verb string, params any) (json.RawMessage, error) {
	return c.Stream(ctx, verb, params, nil)
}

// Stream runs a verb that streams: item is called for each item, in order, on
// the receiving goroutine, and stops the stream by an error. When ctx ends, the
// daemon is told to cancel. item is not called any more once Stream has returned.
func (c *Client) Stream(ctx context.Context, verb string, params any, item func(json.RawMessage) error) (json.RawMessage, error) {
	select {
	case c.slots <- struct{}{}:
	case <-c.done:
		return nil, c.why()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p := &pending{item: item, reply: make(chan reply, 1), request: true}
	id, err := c.start(ctx, verb, params, p)
	if err != nil {
		return nil, err
	}
	select {
	case r := <-p.reply:
		return result(r)
	case <-ctx.Done():
		p.leave()
		c.cancelSoon(id)
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

// leave says that the caller has gone, and waits for an item in progress.
func (p *pending) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// take gives an item to the caller; false means that the caller has had enough
// just now.
func (p *pending) take(item json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.item == nil {
		return true
	}
	err := p.item(item)
	if err != nil {
		p.over = true
		p.reply <- reply{Err: AsError(err)}
	}
	return err == nil
}

// start registers a request and sends it. When it fails, nothing is registered.
func (c *Client) start(ctx context.Context, verb string, params any, p *pending) (int64, error) {
	id, err := c.register(p)
	if err != nil {
		return 0, err
	}
	line, err := c.line(id, verb, params)
	if err != nil {
		c.settle(id)
		return 0, err
	}
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		c.settle(id)
		return 0, ctx.Err()
	}
	_, err = c.nc.Write(line)
	<-c.writing
	if err == nil {
		return id, nil
	}
	c.settle(id)
	// The daemon may have said why before it closed.
	c.nc.SetReadDeadline(time.Now().Add(time.Second))
	select {
	case <-c.done:
		return 0, c.why()
	case <-ctx.Done():
		return 0, lost(err)
	}
}

func (c *Client) line(id int64, verb string, params any) ([]byte, error) {
	line, err := requestLine(id, verb, params)
	if limit := c.Welcome.MaxFrame; err == nil && limit > 0 && len(line) > limit {
		err = frameSize(limit)
	}
	return line, err
}

// requestLine is a request as a frame.
func requestLine(id int64, verb string, params any) ([]byte, error) {
	body, err := Marshal(params)
	if err != nil {
		return nil, err
	}
	line, err := Marshal(struct {
		ID     int64           `json:"id"`
		Verb   string          `json:"verb"`
		Params json.RawMessage `json:"params"`
	}{id, verb, body})
	return append(line, '\n'), err
}

// cancelSoon has a goroutine of its own send cancel.
func (c *Client) cancelSoon(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil { // else Close may be waiting already
		c.cancels.Add(1)
		go c.cancel(id)
	}
}

// cancel asks the daemon to end a request. It ends when the daemon has read
// that, or with the connection; Close waits for it.
func (c *Client) cancel(id int64) {
	defer c.cancels.Done()
	c.start(context.Background(), "cancel", map[string]int64{"id": id}, &pending{reply: make(chan reply, 1)})
}

func (c *Client) register(p *pending) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return 0, c.broken
	}
	c.next++
	c.waiting[c.next] = p
	return c.next, nil
}

// settle forgets a request that is answered or was never sent.
func (c *Client) settle(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.waiting[id]; p != nil && p.request {
		<-c.slots
	}
	delete(c.waiting, id)
}

func (c *Client) find(id int64) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[id]
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

// deliver runs on the receiving goroutine, which writes nothing: the daemon may
// be waiting for it to read.
func (c *Client) deliver(r reply) {
	p := c.find(*r.ID)
	switch {
	case p == nil:
	case r.Item == nil:
		c.settle(*r.ID)
		select {
		case p.reply <- r:
		default: // the caller had enough before
		}
	case !p.take(r.Item):
		c.cancelSoon(*r.ID)
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
