package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Takeover is a connection whose lines have ended: behind the answer to a verb that
// takes it over, it carries what the verb's handler likes. One goroutine at a time
// reads and one writes.
//
// The memory of a connection is bounded as before: what a handler makes is reserved
// by Reserve, until Send has written it.
type Takeover struct {
	conn *conn
	in   *bufio.Reader
	held int // bytes reserved
}

// TakeOver says that serve gets the connection once the call is answered. The call's
// verb is one that Handler.TakesOver names, and its handler does not fail. What is
// reserved for the call goes along. serve's ctx ends when nothing can be written any
// more; when serve returns, the connection is closed.
func (c *Call) TakeOver(serve func(ctx context.Context, t *Takeover)) { c.takeOver = serve }

// Gone ends when nothing can be answered any more: the client has gone.
func (c *Call) Gone() context.Context { return c.conn.gone }

// MaxFrame is what hello agreed on.
func (c *Call) MaxFrame() int { return c.conn.max }

// handOver runs a call that takes the connection over, on the reader's goroutine, so
// that nothing behind it is read as a line. A client that goes away meanwhile ends it.
// false means that the connection is over.
func (c *conn) handOver(r request, in *frames) (goOn bool) {
	c.mu.Lock()
	busy := len(c.flights)
	c.mu.Unlock()
	if busy > 0 {
		return c.say(r.ID, &Error{
			Code:    "conflict.connection",
			Message: fmt.Sprintf("%s needs a connection of its own, and %d requests are in flight on this one", *r.Verb, busy),
			Data:    map[string]int{"requests": busy},
		})
	}
	ctx, cancel := context.WithCancel(c.gone)
	defer cancel()
	call := c.call(r)
	answered, noticed := make(chan struct{}), make(chan struct{})
	go c.notice(answered, nil, noticed)
	f, err := call.run(ctx)
	close(answered)
	<-noticed
	if err != nil {
		call.answer(nil, c.why(err, false))
		return true
	}
	if call.takeOver == nil {
		call.answer(f, nil)
		return true
	}
	cost := len(f) + frameOverhead
	t := &Takeover{conn: c, in: in.r, held: c.weight() - cost} // the answer takes the rest along
	call.reserved = false
	c.out.push(queued{f, cost, byRequest})
	c.out.close()
	<-c.written
	call.takeOver(ctx, t)
	t.shrink(0)
	c.shut()
	return false
}

// shut ends the sending, and reads for a moment what the client still sends: closing
// a socket with unread bytes would take along what the client has yet to read.
func (c *conn) shut() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		c.skipRest()
	}
}

// HangUp ends the connection, as if the client had gone away: serve's ctx ends, and
// Read fails. It may be called from any goroutine.
func (t *Takeover) HangUp() { t.conn.hangUp() }

// Read reads what the client sends. It fails for good when ctx ends.
func (t *Takeover) Read(p []byte) (int, error) { return t.in.Read(p) }

// Interrupt ends the reading, now and later.
func (t *Takeover) Interrupt() { t.conn.readUntil(time.Unix(1, 0)) }

// Reserve waits until a whole max_frame of memory is reserved, as for a request.
func (t *Takeover) Reserve(ctx context.Context) error {
	if t.held > 0 {
		return nil
	}
	err := t.conn.reserve(ctx, t.conn.weight())
	if err == nil {
		t.held = t.conn.weight()
	}
	return err
}

// Release gives back what is reserved.
func (t *Takeover) Release() { t.shrink(0) }

// shrink gives back all that is reserved but n bytes.
func (t *Takeover) shrink(n int) {
	if n < t.held {
		t.conn.free(t.held - n)
		t.held = n
	}
}

// SendReserved sends a frame for which memory is reserved, and gives that back as it
// is not needed any more.
func (t *Takeover) SendReserved(ctx context.Context, frame []byte) error {
	t.shrink(len(frame) + frameOverhead)
	err := t.Send(ctx, frame)
	t.shrink(0)
	return err
}

// errSlow says that a client is given up.
var errSlow = errors.New("the client does not read")

// Send writes parts, one behind the other, which memory elsewhere pays for. It waits
// while the client reads nothing: as long as ctx allows and a second longer, so that
// what has begun can end; but if others wait for memory and the client's reservation
// is more than its part, for a second only. After an error, what was written may end
// anywhere.
func (t *Takeover) Send(ctx context.Context, parts ...[]byte) error {
	c := t.conn
	stop := context.AfterFunc(ctx, func() { c.nc.SetWriteDeadline(time.Now().Add(lastWrites)) })
	defer stop()
	buffers := net.Buffers(parts)
	var ended time.Time // when ctx was first seen to have ended
	for moved := time.Now(); ; {
		deadline := time.Now().Add(writeTick)
		if ctx.Err() != nil {
			if ended.IsZero() {
				ended = time.Now()
			}
			deadline = ended.Add(lastWrites)
		}
		c.nc.SetWriteDeadline(deadline)
		n, err := buffers.WriteTo(c.nc)
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		now := time.Now()
		if n > 0 {
			moved = now
		}
		hoards := t.held > c.shared.size/fairParts && c.shared.short()
		if hoards && now.Sub(moved) >= writeTick || !ended.IsZero() && now.Sub(ended) >= lastWrites {
			return errSlow
		}
	}
}

// TakeOver greets the daemon at the socket and calls a verb that takes the
// connection over. Behind result, nc carries what the verb says; in has what was
// read of that, and reads on. The caller closes nc.
func TakeOver(ctx context.Context, socket string, h Hello, verb string, params any) (nc net.Conn, in *bufio.Reader, w Welcome, result json.RawMessage, err error) {
	nc, err = dialOwn(ctx, socket)
	if err != nil {
		return nil, nil, w, nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	h.Proto = Proto
	lines := &frames{r: bufio.NewReaderSize(nc, 64<<10), max: CeilingMaxFrame}
	raw, err := exchange(nc, lines, 0, "hello", h)
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	if err == nil {
		result, err = exchange(nc, lines, 1, verb, params)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, nil, w, nil, err
	}
	return nc, lines.r, w, result, nil
}

// exchange sends one request on a connection that has no other, and returns its
// result.
func exchange(nc net.Conn, in *frames, id int64, verb string, params any) (json.RawMessage, error) {
	line, err := requestLine(id, verb, params)
	if err != nil {
		return nil, err
	}
	_, werr := nc.Write(line) // after an error the daemon may have said why
	raw, err := in.next()
	var r reply
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	switch {
	case err != nil:
		return nil, lost(errors.Join(err, werr))
	case r.Err != nil:
		return nil, r.Err
	case r.ID == nil || *r.ID != id || r.OK == nil:
		return nil, malformed("the daemon answered something else")
	}
	return r.OK, nil
}
