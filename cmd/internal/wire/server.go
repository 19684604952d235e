package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	maxInFlight   = 64
	writeQueue    = 64
	writeDeadline = 30 * time.Second
	helloDeadline = 30 * time.Second
	lastAnswers   = 40 * time.Second // longer than any verb waits
)

// Handler gives requests their meaning. Its methods are called from many
// goroutines.
type Handler interface {
	// Hello identifies the caller, who is passed to Call as it is.
	Hello(h Hello) (caller any, name string, err error)
	// Server names the server and its manifest's format in a Welcome.
	Server() (name string, manifestFormat int)
	// Call runs one verb. ctx ends when the client cancels or goes away.
	Call(ctx context.Context, c *Call) (result any, err error)
}

// Call is one request.
type Call struct {
	Caller any
	Verb   string
	Params map[string]json.RawMessage
	// Room is the size of the largest result, as JSON, that fits the answer.
	Room int

	id   int64
	conn *conn
}

// Item sends one item of a stream. It blocks while the client's queue is full;
// an error means that there is nobody to stream to any more.
func (c *Call) Item(ctx context.Context, v any) error {
	raw, err := marshalResult(v)
	if err != nil {
		return err
	}
	return c.conn.send(ctx, frame(&c.id, "item", raw))
}

// conn is one accepted connection. Its reader is the goroutine that called
// Serve; writer is the only one that writes; each request has one of its own.
type conn struct {
	nc       net.Conn
	h        Handler
	max      int
	caller   any
	out      chan []byte
	gone     context.Context // ends when nothing can be written any more
	hangUp   context.CancelFunc
	inFlight chan struct{}

	mu      sync.Mutex
	cancels map[int64]context.CancelFunc // of the requests in flight
}

// Serve speaks with one client until it goes away, ctx ends, or it breaks the
// protocol; then nc is closed and every request of it has ended.
func Serve(ctx context.Context, nc net.Conn, h Handler) {
	gone, hangUp := context.WithCancel(ctx)
	c := &conn{
		nc: nc, h: h, max: DefaultMaxFrame,
		out: make(chan []byte, writeQueue), gone: gone, hangUp: hangUp,
		inFlight: make(chan struct{}, maxInFlight),
		cancels:  make(map[int64]context.CancelFunc),
	}
	written := make(chan struct{})
	go c.write(written)
	stop := context.AfterFunc(gone, func() { nc.SetReadDeadline(time.Unix(1, 0)) })
	var requests sync.WaitGroup
	c.read(&requests)
	// A client may close its sending half and still wait for its answers.
	grace := time.AfterFunc(lastAnswers, c.cancelAll)
	requests.Wait()
	grace.Stop()
	close(c.out)
	<-written
	stop()
	hangUp()
	nc.Close()
}

// write sends what is queued. It ends when out is closed, and takes and drops
// the rest once the client no longer reads. Serve waits for it.
func (c *conn) write(done chan<- struct{}) {
	defer close(done)
	for frame := range c.out {
		if c.gone.Err() != nil {
			c.nc.SetWriteDeadline(time.Now().Add(time.Second))
		} else {
			c.nc.SetWriteDeadline(time.Now().Add(writeDeadline))
		}
		if _, err := c.nc.Write(frame); err != nil {
			c.hangUp()
			for range c.out {
			}
			return
		}
	}
}

// read takes frames until there can be no more.
func (c *conn) read(requests *sync.WaitGroup) {
	in := &frames{r: bufio.NewReaderSize(c.nc, 16<<10), max: c.max}
	c.nc.SetReadDeadline(time.Now().Add(helloDeadline))
	greeted := false
	for {
		line, err := in.next()
		if errors.Is(err, errFrameSize) {
			c.fatal(frameSize(in.max))
			c.skipRest()
			return
		}
		if err != nil {
			return
		}
		r, perr := parseRequest(line)
		if perr != nil {
			c.fatal(perr)
			return
		}
		if !greeted {
			if !c.hello(r) {
				return
			}
			greeted, in.max = true, c.max
			if c.gone.Err() == nil {
				c.nc.SetReadDeadline(time.Time{})
			}
			continue
		}
		if !c.dispatch(r, requests) {
			return
		}
	}
}

// skipRest reads what the client is still sending, for a moment: closing a
// socket with unread bytes would reset it and take the error answer along.
func (c *conn) skipRest() {
	c.nc.SetReadDeadline(time.Now().Add(time.Second))
	io.CopyN(io.Discard, c.nc, CeilingMaxFrame)
}

func (c *conn) hello(r request) bool {
	if *r.Verb != "hello" {
		c.fatal(&Error{Code: "protocol.hello", Message: fmt.Sprintf("the first request must be hello, not %q", *r.Verb)})
		return false
	}
	welcome, err := c.greet(r.Params)
	if err != nil {
		c.send(c.gone, errorFrame(r.ID, AsError(err)))
		return false
	}
	raw, err := Marshal(welcome)
	if err != nil {
		return false
	}
	return c.send(c.gone, frame(r.ID, "ok", raw)) == nil
}

func (c *conn) greet(params map[string]json.RawMessage) (Welcome, error) {
	h, err := parseHello(params)
	if err != nil {
		return Welcome{}, err
	}
	caller, name, err := c.h.Hello(h)
	if err != nil {
		return Welcome{}, err
	}
	c.caller = caller
	if h.MaxFrame != nil {
		c.max = min(*h.MaxFrame, CeilingMaxFrame)
	}
	server, format := c.h.Server()
	return Welcome{Proto: Proto, Server: server, ManifestFormat: format, MaxFrame: c.max, Caller: name}, nil
}

func parseHello(params map[string]json.RawMessage) (Hello, error) {
	var h Hello
	fields := map[string]any{"proto": &h.Proto, "client": &h.Client, "token": &h.Token, "max_frame": &h.MaxFrame}
	for name, raw := range params {
		into, known := fields[name]
		if !known {
			return h, invalidHello("unknown", name, fmt.Sprintf("hello has no parameter %s", name))
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return h, invalidHello("type", name, fmt.Sprintf("hello: %s has the wrong type", name))
		}
	}
	if _, ok := params["proto"]; !ok {
		return h, invalidHello("missing", "proto", "hello needs proto, the version of the protocol")
	}
	if h.Proto != Proto {
		return h, &Error{
			Code:    "unsupported.proto",
			Message: fmt.Sprintf("this daemon speaks protocol %d, the client %d: use the looptape of the same version, or restart the daemon", Proto, h.Proto),
			Data:    map[string]int{"proto": Proto},
		}
	}
	if h.MaxFrame != nil && *h.MaxFrame < LowestMaxFrame {
		return h, invalidHello("range", "max_frame", fmt.Sprintf("max_frame must be at least %d", LowestMaxFrame))
	}
	return h, nil
}

func invalidHello(reason, param, message string) *Error {
	return &Error{Code: "invalid_params." + reason, Message: message, Data: map[string]string{"param": param}}
}

// dispatch starts a request; false means that the connection is over.
func (c *conn) dispatch(r request, requests *sync.WaitGroup) bool {
	if *r.Verb == "cancel" {
		return c.cancel(r)
	}
	select {
	case c.inFlight <- struct{}{}:
	case <-c.gone.Done():
		return false
	}
	ctx, cancel := context.WithCancel(c.gone)
	if !c.register(*r.ID, cancel) {
		cancel()
		c.fatal(malformed(fmt.Sprintf("the id %d is still in use", *r.ID)))
		return false
	}
	requests.Add(1)
	go c.serve(ctx, r, requests)
	return true
}

// serve runs one request and answers it. It ends with the handler, which ctx
// bounds; Serve waits for it.
func (c *conn) serve(ctx context.Context, r request, requests *sync.WaitGroup) {
	defer requests.Done()
	defer func() { <-c.inFlight }()
	call := &Call{Caller: c.caller, Verb: *r.Verb, Params: r.Params, Room: c.max - envelope(*r.ID), id: *r.ID, conn: c}
	result, err := c.h.Call(ctx, call)
	cancelled := ctx.Err() != nil
	c.unregister(*r.ID)
	if err == nil {
		var raw []byte
		if raw, err = marshalResult(result); err == nil && len(raw) > call.Room {
			err = resultSize(len(raw)+envelope(*r.ID), c.max)
		}
		if err == nil {
			c.send(c.gone, frame(r.ID, "ok", raw))
			return
		}
	}
	if cancelled {
		err = &Error{Code: "timeout.cancelled", Message: "the request was cancelled"}
	}
	c.send(c.gone, errorFrame(r.ID, AsError(err)))
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

func (c *conn) cancel(r request) bool {
	var id int64
	if err := json.Unmarshal(r.Params["id"], &id); err != nil {
		return c.send(c.gone, errorFrame(r.ID, invalidHello("type", "id", "cancel needs the integer id of a request"))) == nil
	}
	c.mu.Lock()
	cancel, ok := c.cancels[id]
	c.mu.Unlock()
	if ok {
		cancel()
	}
	raw, _ := Marshal(map[string]bool{"cancelled": ok})
	return c.send(c.gone, frame(r.ID, "ok", raw)) == nil
}

func (c *conn) register(id int64, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.cancels[id]; taken {
		return false
	}
	c.cancels[id] = cancel
	return true
}

func (c *conn) unregister(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancels[id]()
	delete(c.cancels, id)
}

func (c *conn) cancelAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.cancels {
		cancel()
	}
}

// fatal answers a frame that is no request; the caller then ends the connection.
func (c *conn) fatal(e *Error) { c.send(c.gone, errorFrame(nil, e)) }

// send queues one frame. It waits for room in the queue as long as ctx allows.
func (c *conn) send(ctx context.Context, frame []byte) error {
	if len(frame) > c.max {
		return resultSize(len(frame), c.max)
	}
	select {
	case c.out <- frame:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
