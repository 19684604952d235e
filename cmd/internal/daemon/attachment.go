package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"looptape/cmd/internal/attach"
	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
	"looptape/replay"
)

const (
	// attachChunk is the most of the stream that one Output carries, in bytes.
	attachChunk = 64 << 10
	// maxComplaints is how many Errors wait for a client that does not read them.
	maxComplaints = 16
)

// attachment is one client of a pane, behind the answer to pane.attach. Its receiver
// is the goroutine of the connection; its sender is the only one that sends.
type attachment struct {
	server   *Server
	window   window // as it was at the beginning: a respawn ends the attachment
	caller   grant.Caller
	write    bool
	writer   *writer // nil for a reader, and for an archive
	maxFrame int

	// The sender's, once there is one.
	t        *wire.Takeover
	snapshot []byte // the first frame
	history  uint64 // rows of the history that are to be sent
	scroll   scrollback
	stream   *recorder.Stream // nil once nothing more can come
	item     recorder.Item    // that is being sent
	rest     []byte           // of its data

	wake chan struct{} // holds one: acked or complaints changed

	mu         sync.Mutex
	sent       uint64 // offset up to which the client is served, or is about to be
	acked      uint64 // that the client acknowledged
	acks       bool   // the client acknowledges at all
	complaints []*wire.Error
}

// serve is the rest of the connection. It returns when the client has gone, the pane
// can have no more, or the daemon stops.
func (a *attachment) serve(ctx context.Context, t *wire.Takeover) {
	a.t = t
	ctx = recorder.WithHolds(ctx, a.server.tallies["pane.attach"].held)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.server.life, func() { cancel(errStopping) })()
	sent := make(chan struct{})
	go a.send(ctx, sent)
	cancel(a.receive(ctx))
	<-sent
	a.leave()
}

// leave ends what a has begun.
func (a *attachment) leave() {
	if a.stream != nil {
		a.stream.Close()
	}
	a.item.Release()
	if a.writer != nil && a.server.life.Err() == nil { // a daemon that stops resizes nothing
		a.writer.leave(context.Background())
	}
}

// errLeft is why an attachment ends of which the client wants nothing more.
var errLeft = errors.New("the client has left")

// receive obeys the client. It returns why it is over: errLeft, or what the client is
// to be told.
func (a *attachment) receive(ctx context.Context) error {
	in := attach.NewClientReader(a.t)
	for {
		f, err := in.Next()
		switch {
		case errors.Is(err, attach.ErrTooLong):
			return &wire.Error{Code: "protocol.frame_size", Message: err.Error(), Data: map[string]int{"max_frame": attach.MaxFromClient}}
		case errors.Is(err, attach.ErrMalformed):
			return &wire.Error{Code: "protocol.malformed", Message: err.Error()}
		case err != nil || f.Type == attach.Detach:
			return errLeft
		}
		switch f.Type {
		case attach.Input:
			err = a.input(ctx, f.Data)
		case attach.Viewport:
			err = a.viewport(ctx, f.Cols, f.Rows)
		case attach.Ack:
			if err := a.ack(f.Offset); err != nil {
				return err
			}
		}
		if err != nil && ctx.Err() == nil {
			a.complain(err)
		}
	}
}

// input types what a writer sends.
func (a *attachment) input(ctx context.Context, data []byte) error {
	switch {
	case !a.write:
		return &wire.Error{Code: "conflict.mode", Message: "attached for reading: nothing can be typed"}
	case a.writer == nil:
		return liveError(a.window, recorder.ErrExited)
	}
	if err := a.writer.act(ctx); err != nil && !ended(err) {
		return err
	}
	return liveError(a.window, a.window.live.Type(ctx, data))
}

// viewport takes the size of a writer's viewport; a reader's is of no concern.
func (a *attachment) viewport(ctx context.Context, cols, rows int) error {
	if a.writer == nil {
		return nil
	}
	if _, err := a.writer.view(ctx, cols, rows); !ended(err) {
		return err
	}
	return nil
}

// ended says whether an error means that a pane has no program any more.
func ended(err error) bool {
	return errors.Is(err, recorder.ErrExited) || errors.Is(err, recorder.ErrStopped)
}

// ack notes what the client has processed.
func (a *attachment) ack(offset uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if offset > a.sent {
		return &wire.Error{Code: "protocol.malformed", Message: fmt.Sprintf("offset %d is acknowledged, and %d was sent", offset, a.sent)}
	}
	a.acks, a.acked = true, max(a.acked, offset)
	a.stir()
	return nil
}

// complain has the sender tell the client what went wrong, unless the client reads
// nothing of the kind.
func (a *attachment) complain(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.complaints) < maxComplaints {
		a.complaints = append(a.complaints, wire.AsError(wireError(err)))
	}
	a.stir()
}

// stir wakes the sender.
func (a *attachment) stir() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// complaint takes the oldest complaint.
func (a *attachment) complaint() *wire.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.complaints) == 0 {
		return nil
	}
	e := a.complaints[0]
	a.complaints = a.complaints[1:]
	return e
}

// open subscribes to the pane, or what is left of it, and returns the frame of a
// snapshot from which the stream goes on. The error is errRetired if the pane has
// been respawned.
func (a *attachment) open(ctx context.Context) (frame []byte, err error) {
	a.stream = nil
	fits := false
	paint := func(t *replay.Terminal) {
		frame, fits = appendSnapshotFrame(t, a.maxFrame)
		a.served(t.Offset())
		if a.history > 0 {
			a.scroll.begin(t, a.history)
			a.history = 0
		}
	}
	err = recorder.ErrStopped
	if a.window.live != nil {
		a.stream, err = a.window.live.Subscribe(ctx, paint)
	}
	if errors.Is(err, recorder.ErrStopped) {
		err = a.window.archive.view(ctx, func(t *replay.Terminal, _ bool) { paint(t) })
	}
	if err == nil && !fits {
		err = &wire.Error{
			Code:    "unsupported.result_size",
			Message: fmt.Sprintf("what rebuilds the screen takes more than the %d bytes that the connection allows: connect with a larger max_frame", a.maxFrame),
			Data:    map[string]int{"max_frame": a.maxFrame},
		}
	}
	return frame, err
}

// appendSnapshotFrame makes the frame of a snapshot of t, unless it is longer than
// limit.
func appendSnapshotFrame(t *replay.Terminal, limit int) (frame []byte, fits bool) {
	head := attach.HeadLen(attach.Snapshot)
	frame, fits = t.AppendSnapshotWithin(make([]byte, head, 16<<10), 0, limit)
	b := t.Bounds()
	attach.AppendHead(frame[:0], attach.Frame{
		Type: attach.Snapshot, Offset: t.Offset(), Epoch: b.Epoch, Cols: b.Cols, Rows: b.Rows,
	}, len(frame)-head)
	return frame, fits
}

// served says that a snapshot serves the client up to offset, whatever it has
// acknowledged.
func (a *attachment) served(offset uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent, a.acked = offset, offset
}

// send sends what happens in the pane, and at last why there is no more. It ends with
// that or with ctx, and with it the receiver; serve waits for it.
func (a *attachment) send(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	defer a.t.Interrupt()
	defer a.t.Release()
	err := a.pump(ctx)
	var told *wire.Error
	if err != nil && !errors.Is(err, context.Canceled) && errors.As(wireError(err), &told) {
		a.t.Send(ctx, errorFrame(told))
	}
}

func errorFrame(e *wire.Error) []byte {
	text, err := wire.Marshal(e)
	if err != nil {
		text, _ = wire.Marshal(wire.AsError(err))
	}
	return attach.Append(nil, attach.Frame{Type: attach.Error, Data: text})
}

// errSent says that nothing more can be sent, as the connection broke.
var errSent = errors.New("the connection broke")

// pump sends until the stream of the pane ends, which is no error.
func (a *attachment) pump(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			a.server.logger.Error("panic in an attachment", "pane", a.window.Pane.ID, "panic", r, "stack", string(debug.Stack()))
			err = &wire.Error{Code: "internal.panic", Message: "looptape failed; its log says where"}
		}
	}()
	first := a.snapshot
	a.snapshot = nil
	if a.t.SendReserved(ctx, first) != nil {
		return errSent
	}
	for {
		moved, over, err := a.step(ctx)
		switch {
		case a.caller.Revoked():
			return errRevoked
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || over:
			return err
		case moved:
			continue
		}
		var ready <-chan struct{}
		if a.mayStream() {
			ready = a.stream.Ready()
		}
		select {
		case <-ready:
		case <-a.wake:
		case <-ctx.Done():
		}
	}
}

// step sends what is due, of each kind a frame. over says that the pane has no more.
func (a *attachment) step(ctx context.Context) (moved, over bool, err error) {
	if e := a.complaint(); e != nil {
		moved = true
		if a.t.Send(ctx, errorFrame(e)) != nil {
			return true, false, errSent
		}
	}
	if a.scroll.due {
		moved = true
		if err := a.sendRows(ctx); err != nil {
			return true, false, err
		}
	}
	switch {
	case len(a.rest) > 0:
		if a.mayStream() {
			return true, false, a.sendOutput(ctx)
		}
		return moved, false, nil
	case a.stream == nil && a.scroll.due:
		return moved, false, nil
	case a.stream == nil:
		return true, true, a.sendExit(ctx, true)
	case !a.mayStream():
		return moved, false, nil
	}
	i, ok, err := a.stream.Next()
	switch {
	case errors.Is(err, recorder.ErrBacklog):
		return true, false, a.resync(ctx, "backlog")
	case err != nil:
		return true, true, a.lost(ctx)
	case !ok:
		return moved, false, nil
	}
	return true, false, a.sendItem(ctx, i)
}

// mayStream says whether the client has acknowledged enough to be sent more.
func (a *attachment) mayStream() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.acks || a.sent-a.acked < attach.Window
}

// lost says why the pane is no longer followed although it was not closed: the daemon
// stops, its loop failed, or it is respawned, which the end of its program precedes.
func (a *attachment) lost(ctx context.Context) error {
	if a.server.life.Err() != nil {
		return errStopping
	}
	if fault := a.window.live.Fault(); fault != nil {
		return &wire.Error{Code: "internal.pane", Message: fmt.Sprintf("pane %s is no longer followed: %v", formatID(manifest.Pane, a.window.Pane.ID), fault)}
	}
	return a.sendExit(ctx, true)
}

// sendItem sends an item, of output as much as is sent at once.
func (a *attachment) sendItem(ctx context.Context, i recorder.Item) error {
	switch i.Kind {
	case recorder.ItemOutput:
		a.item, a.rest = i, i.Data
		return a.sendOutput(ctx)
	case recorder.ItemResize:
		defer i.Release()
		return a.sendResize(ctx, i)
	}
	if i.Closed { // behind what is left of the history
		a.stream.Close()
		a.stream = nil
		return nil
	}
	return a.sendExit(ctx, false)
}

// sendOutput sends the next chunk of a.rest.
func (a *attachment) sendOutput(ctx context.Context) error {
	head := attach.HeadLen(attach.Output)
	chunk := a.rest[:min(len(a.rest), attachChunk, a.maxFrame-head)]
	a.rest = a.rest[len(chunk):]
	f := attach.Frame{Type: attach.Output, Offset: a.sent} // only the sender changes it
	a.mu.Lock()
	a.sent += uint64(len(chunk))
	a.mu.Unlock()
	err := a.t.Send(ctx, attach.AppendHead(make([]byte, 0, head), f, len(chunk)), chunk)
	if len(a.rest) == 0 {
		a.item.Release()
		a.item = recorder.Item{}
	}
	if err != nil {
		return errSent
	}
	return nil
}

// sendResize sends a resize and the snapshot that came along.
func (a *attachment) sendResize(ctx context.Context, i recorder.Item) error {
	f := attach.Frame{Type: attach.Resize, Offset: i.Offset, Epoch: i.Epoch, Cols: i.Cols, Rows: i.Rows}
	frames := attach.Append(nil, f)
	f.Type = attach.Snapshot
	if attach.HeadLen(f.Type)+len(i.Data) > a.maxFrame {
		return a.resync(ctx, "resize")
	}
	if a.t.Send(ctx, attach.AppendHead(frames, f, len(i.Data)), i.Data) != nil {
		return errSent
	}
	return nil
}

// resync begins anew with a snapshot, unless the pane has been respawned.
func (a *attachment) resync(ctx context.Context, why string) error {
	a.stream.Close()
	if err := a.t.Reserve(ctx); err != nil {
		return err
	}
	served := a.sent
	snapshot, err := a.open(ctx)
	if errors.Is(err, errRetired) {
		a.t.Release()
		return nil // its program has ended, which comes next
	}
	if err != nil {
		return err
	}
	f := attach.Frame{Type: attach.Resync, Offset: served, Data: []byte(why)}
	if a.t.Send(ctx, attach.Append(nil, f)) != nil || a.t.SendReserved(ctx, snapshot) != nil {
		return errSent
	}
	return nil
}

// attachExit is the status in an Exit.
type attachExit struct {
	*exit
	Closed bool `json:"closed"`
}

// sendExit sends how the program ended; closed says that nothing follows.
func (a *attachment) sendExit(ctx context.Context, closed bool) error {
	_, how := a.window.ended()
	text, err := json.Marshal(attachExit{how, closed})
	if err != nil {
		return err
	}
	f := attach.Frame{Type: attach.Exit, Offset: a.sent, Data: text}
	if a.t.Send(ctx, attach.Append(nil, f)) != nil {
		return errSent
	}
	return nil
}
