package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// quits holds a SIGQUIT that ends the process, unless a command has taken it over.
var quits = make(chan os.Signal, 1)

// quitQuietly has SIGQUIT end the process as it ends others: without the stacks of
// Go, which only the daemon's log is the place for.
func quitQuietly() {
	signal.Notify(quits, syscall.SIGQUIT)
	go awaitQuit()
}

// awaitQuit ends with the process; nobody waits for it.
func awaitQuit() {
	sig := <-quits
	os.Exit(int(endedBy(sig)))
}

// endedBy is how a command ends that was told to by a signal, once it has cleaned up.
func endedBy(sig os.Signal) exitCode { return exitCode(128 + int(sig.(syscall.Signal))) }

// untilSignal runs f until it returns or a signal comes that is to end the command: the
// error is the command's exitCode then, and ctx ends. If f does not notice that, as it reads
// a file that gives nothing or writes to one that takes nothing, it is left behind.
func untilSignal(ctx context.Context, f func(context.Context) error) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	signal.Stop(quits)
	defer signal.Stop(signals)
	defer signal.Notify(quits, syscall.SIGQUIT)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	ended := start(func() { err = f(ctx) })
	select {
	case <-ended:
		return err
	case sig := <-signals:
		cancel()
		if await(ended) && err == nil {
			return nil
		}
		return endedBy(sig)
	}
}

// stuckPatience is how long what is about to end may take, before it is taken to be stuck
// in a file.
const stuckPatience = 500 * time.Millisecond

// briefly runs f, and leaves it behind if it is stuck.
func briefly(f func()) { await(start(f)) }

// start runs f. done is closed when it returns.
func start(f func()) (done <-chan struct{}) {
	d := make(chan struct{})
	go finish(f, d)
	return d
}

// finish ends with f; whoever started it waits for done, unless f is stuck.
func finish(f func(), done chan<- struct{}) {
	defer close(done)
	f()
}

// await waits for what is about to end, unless it is stuck.
func await(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(stuckPatience):
		return false
	}
}
