package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
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

// untilSignal is ctx until a signal comes that is to end the command. The cause is
// the command's exitCode then.
func untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	signal.Stop(quits)
	ctx, cancel := context.WithCancelCause(ctx)
	go awaitSignal(ctx, signals, cancel)
	return ctx, func() {
		cancel(nil)
		signal.Notify(quits, syscall.SIGQUIT)
		signal.Stop(signals)
	}
}

// awaitSignal ends with ctx, which who made it ends; nobody waits for it.
func awaitSignal(ctx context.Context, signals <-chan os.Signal, cancel context.CancelCauseFunc) {
	select {
	case sig := <-signals:
		cancel(endedBy(sig))
	case <-ctx.Done():
	}
}
