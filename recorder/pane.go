package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"looptape/replay"
	"looptape/store"
)

// MaxCells bounds cols x rows of one screen.
const MaxCells = 1 << 22

const (
	// inputPatience is how long Write waits for the program to take the input.
	inputPatience = 10 * time.Second
	// typePatience is how long Type waits for a program that reads nothing.
	typePatience = 3 * time.Second
)

// The errors of a pane's methods, beside those of a context.
var (
	// ErrStopped says that this pane is no longer recorded: closed, stopped or
	// faulty. What it recorded is in its log.
	ErrStopped = errors.New("the pane is no longer recorded")
	// ErrExited says that the program has exited.
	ErrExited = errors.New("the program has exited")
	// ErrInputSize says that a piece of input is too large.
	ErrInputSize = fmt.Errorf("at most %d bytes are typed at once", maxQueued)
	// ErrInputTimeout says that the input is queued, but has not been read yet.
	ErrInputTimeout = fmt.Errorf("the program has not read the input for %v; it stays queued", inputPatience)
	// ErrCells says that a screen is too large.
	ErrCells = fmt.Errorf("a screen has at most %d cells", MaxCells)
)

// Config says what a pane runs and how large it is.
type Config struct {
	Argv       []string // at least the program
	Dir        string   // working directory; "" is the daemon's
	Env        []string // the whole environment of the program
	Cols, Rows int      // 1..65535 each, MaxCells together
	Scrollback int      // rows of history that the Terminal keeps
	Retain     uint64   // bytes of the stream that the log keeps at least
	Logger     *slog.Logger
	// Observe is told what happens, on the pane's loop, in the order of the stream. It
	// must not block, nor call the Pane. Nil is nobody.
	Observe func(Observation)
}

// Pane is one program that is being recorded. Its methods may be called from
// any goroutine.
type Pane struct {
	log    *store.Log
	child  *child
	input  *inputWriter
	logger *slog.Logger

	requests chan func(*loop)
	stopped  chan struct{} // closed when the loop has ended

	gap atomic.Pointer[uint64] // since which offset nothing is recorded, see gap.go

	exited chan struct{} // closed once the Exit mark is in the log, and ended set
	ended  time.Time

	mu    sync.Mutex
	fault error // why the loop ended by itself
}

// Start runs a program and records it in log, which is new and empty. When the
// program cannot be started, the error is a *StartError, a *LimitError if the
// system has too little of something, or a *LateError if ctx ends before it has
// started, and the log stays empty.
func Start(ctx context.Context, log *store.Log, c Config) (*Pane, error) {
	if c.Cols*c.Rows > MaxCells {
		return nil, ErrCells
	}
	l, err := launch(ctx, log, replay.New(c.Cols, c.Rows, c.Scrollback), c)
	if err != nil {
		return nil, err
	}
	l.checkpoint()
	l.begin()
	return l.pane, nil
}

// launch runs a program on a new PTY and makes the loop of its pane, which owns t
// and does not run yet: what the program writes meanwhile waits in the PTY.
func launch(ctx context.Context, log *store.Log, t *replay.Terminal, c Config) (*loop, error) {
	s, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &Pane{
		log: log, child: s.child, input: newInputWriter(s.pty), logger: c.Logger,
		requests: make(chan func(*loop)),
		stopped:  make(chan struct{}),
		exited:   make(chan struct{}),
	}
	log.SetRetain(c.Retain)
	l := newLoop(p, s.pty, t, c.Observe)
	l.schedule.spanBytes = c.Retain / 4
	return l, nil
}

// begin lets the pane live.
func (l *loop) begin() {
	go l.pane.input.run()
	go l.run()
}

// Log is the log that the pane is recorded in.
func (p *Pane) Log() *store.Log { return p.log }

// Stopped is closed when the pane is no longer recorded.
func (p *Pane) Stopped() <-chan struct{} { return p.stopped }

// Exited is closed when the program has exited and its own output is recorded.
func (p *Pane) Exited() <-chan struct{} { return p.exited }

// PID is the program's process id.
func (p *Pane) PID() int { return p.child.pid }

// Ended is closed when the program has ended, whether that is recorded or not.
func (p *Pane) Ended() <-chan struct{} { return p.child.reaped }

// Exit returns how and when the program ended; ok is false while it runs.
func (p *Pane) Exit() (e replay.Exit, ended time.Time, ok bool) {
	select {
	case <-p.exited:
		return p.child.exit, p.ended, true
	default:
		return replay.Exit{}, time.Time{}, false
	}
}

// DroppedReplies counts the bytes of replies that the program did not read.
func (p *Pane) DroppedReplies() int { return p.input.droppedReplies() }

// NotRecorded is the offset since which nothing is recorded, because the log
// takes nothing; ok is false while all is recorded.
func (p *Pane) NotRecorded() (offset uint64, ok bool) {
	if from := p.gap.Load(); from != nil {
		return *from, true
	}
	return 0, false
}

// Fault is why the pane stopped being recorded by itself, or nil.
func (p *Pane) Fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// View calls read on the pane's loop, between two batches: t is the Terminal
// after exactly t.Offset() bytes, and closed says that no more can come. read
// must not keep t, and holds up the pane while it runs. A panic in read is an
// error of View's.
func (p *Pane) View(ctx context.Context, read func(t *replay.Terminal, closed bool)) error {
	return p.do(ctx, func(l *loop) error {
		return p.guard(func() { read(l.term, l.closed) })
	})
}

// guard makes an error of a panic in read.
func (p *Pane) guard(read func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.logger.Error("panic in a read", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic in a read: %v", r)
		}
	}()
	read()
	return nil
}

// Await returns when the stream reaches behind offset, when no more can come or
// the pane is no longer recorded, or when ctx ends.
func (p *Pane) Await(ctx context.Context, offset uint64) error {
	return p.AwaitFrame(ctx, store.Pos{Offset: offset, Seq: math.MaxUint64})
}

// AwaitFrame is Await for the stream to reach behind at.Offset, or the log to have the
// frame at.Seq: also a mark, which takes no bytes.
func (p *Pane) AwaitFrame(ctx context.Context, at store.Pos) error {
	arrived := make(chan struct{})
	err := p.do(ctx, func(l *loop) error {
		l.waiters[arrived] = at
		return nil
	})
	if errors.Is(err, ErrStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-arrived:
		return nil
	case <-p.stopped:
		return nil
	case <-ctx.Done():
		p.do(context.WithoutCancel(ctx), func(l *loop) error {
			delete(l.waiters, arrived)
			return nil
		})
		return ctx.Err()
	}
}

// Write types data and returns once the kernel has taken all of it. offset is
// that of the stream before the typing: whatever data causes comes behind it.
func (p *Pane) Write(ctx context.Context, data []byte) (offset uint64, err error) {
	var done <-chan error
	err = p.do(ctx, func(l *loop) (err error) {
		if l.exited {
			return ErrExited
		}
		offset = l.term.Offset()
		done, err = p.input.typeIn(data)
		return err
	})
	if err != nil {
		return 0, err
	}
	patience := time.NewTimer(inputPatience)
	defer patience.Stop()
	select {
	case err := <-done:
		return offset, err
	case <-patience.C:
		return offset, ErrInputTimeout
	case <-ctx.Done():
		return offset, ctx.Err()
	}
}

// Type types data and returns once it is queued. While there is no room for it, Type
// waits as long as the program reads; the error is ErrInputFull, and nothing of data
// is typed, once the program has read nothing for typePatience.
func (p *Pane) Type(ctx context.Context, data []byte) error {
	data = bytes.Clone(data)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.exited:
			return ErrExited
		default:
		}
		_, err := p.input.typeIn(data)
		if !errors.Is(err, ErrInputFull) {
			return err
		}
		patience := typePatience - time.Since(p.input.lastTaken())
		if patience <= 0 {
			return err
		}
		timer.Reset(patience)
		select {
		case <-p.input.taken:
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Size is where and how a resize took effect.
type Size struct {
	Offset     uint64
	Epoch      uint32
	Cols, Rows int
}

// Resize changes the size of the pane. Of resizes that come closer than 100 ms,
// as from a window that is dragged, the first and the last take effect; each
// returns the size that did.
func (p *Pane) Resize(ctx context.Context, cols, rows int) (Size, error) {
	result, err := p.RequestResize(ctx, cols, rows)
	if err != nil {
		return Size{}, err
	}
	return p.AwaitResize(ctx, result)
}

// RequestResize is Resize up to the place where the loop has taken note; result
// receives what AwaitResize returns. Of two requests, the one that returned last
// decides.
func (p *Pane) RequestResize(ctx context.Context, cols, rows int) (result <-chan Size, err error) {
	if cols*rows > MaxCells {
		return nil, ErrCells
	}
	sizes := make(chan Size, 1)
	return sizes, p.do(ctx, func(l *loop) error {
		if l.closed {
			return ErrExited
		}
		l.requestResize(cols, rows, sizes)
		return nil
	})
}

// AwaitResize waits for what RequestResize asked for.
func (p *Pane) AwaitResize(ctx context.Context, result <-chan Size) (Size, error) {
	select {
	case s := <-result:
		return s, nil
	case <-p.stopped:
		return Size{}, ErrStopped
	case <-ctx.Done():
		return Size{}, ctx.Err()
	}
}

// Signal sends a signal to the foreground process group of the terminal. The error is
// a *KillError if the system does not let it.
func (p *Pane) Signal(ctx context.Context, sig unix.Signal) error {
	return p.do(ctx, func(l *loop) error {
		if l.exited {
			return ErrExited
		}
		if err := p.child.signal(l.pty.foreground(), sig); errors.Is(err, unix.ESRCH) {
			return ErrExited // its end is about to be recorded
		} else {
			return err
		}
	})
}

// HangUp ends the program and everything in its session: SIGHUP, and SIGKILL
// after 5 s. It returns when the program has exited. Helpers that hold the
// terminal of a program that has exited can still be ended so. What has not ended
// 5 s after SIGKILL is a *KillError, and goes on being recorded. Once it has begun,
// it goes through with the signals, whatever becomes of ctx.
func (p *Pane) HangUp(ctx context.Context) error {
	foreground := 0
	if err := p.do(ctx, func(l *loop) error {
		if l.closed { // while the PTY is open, helpers of the program may live
			return ErrExited
		}
		foreground = l.pty.foreground()
		return nil
	}); err != nil {
		return err
	}
	err := p.child.hangUp(foreground)
	if !p.child.isReaped() {
		return err
	}
	select {
	case <-p.exited:
	case <-p.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return err
}

// Stop ends the recording: what can be read is recorded, a full checkpoint and a
// Restart mark follow, and the terminal is hung up. It returns when the loop has
// ended; making it durable is the store's business.
func (p *Pane) Stop() {
	select {
	case p.requests <- (*loop).stop:
		<-p.stopped
	case <-p.stopped:
	}
}

// holds is the key of a context's value.
type holds struct{}

// WithHolds returns a context for the methods of panes: held is told, on the loop of
// the pane, how long each of them held that up.
func WithHolds(ctx context.Context, held func(time.Duration)) context.Context {
	return context.WithValue(ctx, holds{}, held)
}

// do runs f on the loop.
func (p *Pane) do(ctx context.Context, f func(*loop) error) error {
	outcome := make(chan error, 1)
	held, _ := ctx.Value(holds{}).(func(time.Duration))
	request := func(l *loop) {
		began := time.Now()
		err := f(l)
		if held != nil {
			held(time.Since(began))
		}
		outcome <- err
	}
	select {
	case p.requests <- request:
	case <-p.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-outcome:
		return err
	case <-p.stopped: // f may have been what the loop ended by
		select {
		case err := <-outcome:
			return err
		default:
			return ErrStopped
		}
	}
}
