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
	"time"
)

const (
	maxInFlight   = 64
	helloDeadline = 30 * time.Second
	lastAnswers   = 40 * time.Second // longer than any verb waits
	// hangUpTick is how soon a client is missed that goes away after it has
	// closed its sending half.
	hangUpTick = 100 * time.Millisecond
)

// Memory, in bytes. A request that runs takes a frame; an answer that waits for
// its client takes what it is long.
const (
	frameOverhead = 256       // that a frame takes beside its text
	ownFrames     = 2         // frames of a connection
	ownLeast      = 8 << 20   // of a connection, however small its frames
	controlBytes  = 64 << 10  // of a connection, for what its reader answers
	sharedBytes   = 384 << 20 // of all connections
	fairParts     = 1024      // holders of less than one such part are left alone
)

// shared is the memory that all connections of the process share.
var shared = newBudget(sharedBytes)

// Handler gives requests their meaning. Its methods are called from many
// goroutines.
type Handler interface {
	// Hello identifies the caller, who is passed to Call as it is.
	Hello(h Hello) (caller any, name string, err error)
	// Server names the server and its manifest's format in a Welcome.
	Server() (name string, manifestFormat int)
	// TakesOver names the verbs behind whose answer the connection is the handler's.
	TakesOver(verb string) bool
	// Call runs one verb. ctx ends when the client cancels or goes away.
	Call(ctx context.Context, c *Call) (result any, err error)
}

// conn is one accepted connection. Its reader is the goroutine that called
// Serve; writer is the only one that writes; each request has one of its own.
type conn struct {
	nc      net.Conn
	h       Handler
	max     int // fixed, like own, once hello is answered
	caller  any
	own     *budget // of this connection, for its requests
	control *budget // of this connection, for what the reader answers
	shared  *budget // of all
	out     queue
	written chan struct{}   // closed when the writer has ended
	gone    context.Context // ends when nothing can be written any more
	hangUp  context.CancelFunc

	mu      sync.Mutex
	flights map[int64]*flight // the requests in flight
	inBytes int               // of their lines
	stop    time.Time         // when gone ended; the reader reads no more
}

// flight is a request that has not been answered yet.
type flight struct {
	cancel    context.CancelFunc
	cancelled bool // by the client
	size      int  // bytes of its line
}

// Serve speaks with one client until it goes away, ctx ends, or it breaks the
// protocol; then nc is closed and every request of it has ended.
func Serve(ctx context.Context, nc net.Conn, h Handler) { serveConn(ctx, nc, h, shared) }

func serveConn(ctx context.Context, nc net.Conn, h Handler, shared *budget) {
	gone, hangUp := context.WithCancel(ctx)
	c := &conn{
		nc: nc, h: h, max: DefaultMaxFrame,
		control: newBudget(controlBytes), shared: shared,
		out: queue{wake: make(chan struct{}, 1)}, gone: gone, hangUp: hangUp,
		written: make(chan struct{}), flights: make(map[int64]*flight),
	}
	go c.write()
	defer context.AfterFunc(gone, c.halt)()
	var requests sync.WaitGroup
	if !c.read(&requests) {
		hangUp()
	}
	answered, lingered := make(chan struct{}), make(chan struct{})
	go c.linger(answered, lingered)
	requests.Wait()
	close(answered)
	<-lingered
	c.out.close()
	<-c.written
	hangUp()
	nc.Close()
}

// Refuse tells a client that was never served why, and closes the connection
// within a second.
func Refuse(nc net.Conn, e *Error) {
	defer nc.Close()
	nc.SetWriteDeadline(time.Now().Add(lastWrites))
	nc.Write(errorFrame(nil, e, LowestMaxFrame))
}

// halt ends the reading, for good.
func (c *conn) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = time.Now()
	c.nc.SetReadDeadline(time.Unix(1, 0))
}

// readUntil is SetReadDeadline while there is no halt.
func (c *conn) readUntil(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop.IsZero() {
		c.nc.SetReadDeadline(t)
	}
}

// stopped says whether halt was called, and when.
func (c *conn) stopped() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stop, !c.stop.IsZero()
}

// linger hangs up when the client goes away before everything is answered, or
// takes too long. A client may close its sending half and still wait for its
// answers. It ends when answered is closed; Serve waits for it.
func (c *conn) linger(answered <-chan struct{}, done chan<- struct{}) {
	patience := time.NewTimer(lastAnswers)
	defer patience.Stop()
	c.notice(answered, patience.C, done)
}

// notice hangs up when the client goes away, which whoever does not read cannot see,
// or at late. It ends when answered is closed, and closes done.
func (c *conn) notice(answered <-chan struct{}, late <-chan time.Time, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(hangUpTick)
	defer tick.Stop()
	for {
		if hungUp(c.nc) {
			c.hangUp()
		}
		select {
		case <-answered:
			return
		case <-c.gone.Done():
			return
		case <-late:
			c.hangUp()
		case <-tick.C:
		}
	}
}

// read takes frames until there can be no more. It returns false when that is
// because the connection broke.
func (c *conn) read(requests *sync.WaitGroup) bool {
	in := &frames{r: bufio.NewReaderSize(c.nc, 16<<10), max: c.max}
	c.readUntil(time.Now().Add(helloDeadline))
	greeted := false
	for {
		line, err := in.next()
		if errors.Is(err, errFrameSize) {
			c.say(nil, frameSize(in.max))
			c.skipRest()
			return true
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded)
		}
		r, perr := parseRequest(line)
		if perr != nil {
			c.say(nil, perr)
			return true
		}
		if !greeted {
			if !c.hello(r) {
				return true
			}
			greeted, in.max = true, c.max
			c.readUntil(time.Time{})
			continue
		}
		if c.h.TakesOver(*r.Verb) {
			if !c.handOver(r, in) {
				return true
			}
			continue
		}
		if !c.dispatch(r, len(line), requests) {
			return true
		}
	}
}

// skipRest reads what the client is still sending, for a moment: closing a
// socket with unread bytes would reset it and take the error answer along.
func (c *conn) skipRest() {
	c.readUntil(time.Now().Add(time.Second))
	io.CopyN(io.Discard, c.nc, CeilingMaxFrame)
}

// dispatch starts a request; false means that the connection is over.
func (c *conn) dispatch(r request, size int, requests *sync.WaitGroup) bool {
	if *r.Verb == "cancel" {
		return c.cancel(r)
	}
	ctx, cancel := context.WithCancel(c.gone)
	taken, full := c.register(*r.ID, &flight{cancel: cancel, size: size})
	switch {
	case taken:
		cancel()
		c.say(nil, malformed(fmt.Sprintf("the id %d is still in use", *r.ID)))
		return false
	case full:
		cancel()
		return c.say(r.ID, &Error{
			Code:    "limit.requests",
			Message: fmt.Sprintf("a connection may have %d requests in flight, of %d bytes in all: wait for an answer first", maxInFlight, c.own.size),
			Data:    map[string]int{"requests": maxInFlight, "bytes": c.own.size},
		})
	}
	requests.Add(1)
	go c.serve(ctx, r, requests)
	return true
}

// serve runs one request and answers it. It ends with the handler, which ctx
// bounds; Serve waits for it.
func (c *conn) serve(ctx context.Context, r request, requests *sync.WaitGroup) {
	defer requests.Done()
	call := c.call(r)
	f, err := call.run(ctx)
	cancelled := c.unregister(*r.ID) // first: the answer allows the client another request
	if err == nil {
		call.answer(f, nil)
		return
	}
	call.answer(nil, c.why(err, cancelled))
}

func (c *conn) call(r request) *Call {
	return &Call{Caller: c.caller, Verb: *r.Verb, Params: r.Params, Room: c.max - envelope(*r.ID), id: *r.ID, conn: c}
}

func (c *conn) cancel(r request) bool {
	var id int64
	if err := json.Unmarshal(r.Params["id"], &id); err != nil {
		return c.say(r.ID, invalidHello("type", "id", "cancel needs the integer id of a request"))
	}
	c.mu.Lock()
	f, ok := c.flights[id]
	if ok {
		f.cancelled = true
		f.cancel()
	}
	c.mu.Unlock()
	return c.sayOK(*r.ID, map[string]bool{"cancelled": ok})
}

// register admits a request, unless its id is taken or there are too many.
func (c *conn) register(id int64, f *flight) (taken, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, taken = c.flights[id]
	n := len(c.flights)
	full = n >= maxInFlight || n > 0 && c.inBytes+f.size > c.own.size
	if !taken && !full {
		c.flights[id] = f
		c.inBytes += f.size
	}
	return taken, full
}

// unregister says whether the client cancelled the request.
func (c *conn) unregister(id int64) (cancelled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[id]
	f.cancel()
	delete(c.flights, id)
	c.inBytes -= f.size
	return f.cancelled
}

// weight is what a request that runs takes.
func (c *conn) weight() int { return c.max + frameOverhead }

// reserve waits for n bytes of the connection's memory and of everybody's.
func (c *conn) reserve(ctx context.Context, n int) error {
	if err := c.own.acquire(ctx, n); err != nil {
		return err
	}
	err := c.shared.acquire(ctx, n)
	if err != nil {
		c.own.release(n)
	}
	return err
}

func (c *conn) free(n int) {
	c.shared.release(n)
	c.own.release(n)
}

// say queues an error for which nothing is reserved, shortened to what the
// smallest frame holds. It waits while the client reads nothing; false means
// that nobody reads any more.
func (c *conn) say(id *int64, e *Error) bool {
	return c.sayFrame(errorFrame(id, e, LowestMaxFrame))
}

// sayOK is say for a small result.
func (c *conn) sayOK(id int64, result any) bool {
	f, err := encodeFrame(id, "ok", result)
	if err != nil || len(f) > c.max {
		return false
	}
	return c.sayFrame(f)
}

func (c *conn) sayFrame(f []byte) bool {
	cost := len(f) + frameOverhead
	if c.control.acquire(c.gone, cost) != nil {
		return false
	}
	c.out.push(queued{f, cost, byReader})
	return true
}
