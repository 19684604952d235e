package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// inTime returns when op has, or fails the test.
func inTime(t *testing.T, what string, op func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); op() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s is stuck", what)
	}
}

// stuckLog is a log that nobody reads, from block on until the test ends.
type stuckLog struct {
	slog.Handler
	mu    *sync.Mutex
	stuck *bool
	until <-chan struct{}
}

func newStuckLog(t *testing.T) (l *slog.Logger, block func()) {
	until := make(chan struct{})
	t.Cleanup(func() { close(until) })
	h := stuckLog{slog.DiscardHandler, new(sync.Mutex), new(bool), until}
	return slog.New(h), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		*h.stuck = true
	}
}

func (h stuckLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h stuckLog) Handle(context.Context, slog.Record) error {
	h.mu.Lock()
	stuck := *h.stuck
	h.mu.Unlock()
	if stuck {
		<-h.until
	}
	return nil
}

// A store that fails says so to all who wait for it before it says so to its log,
// which may be stuck.
func TestFailWithStuckLog(t *testing.T) {
	t.Parallel()
	logger, block := newStuckLog(t)
	faults := NewFaults(vfs.NewMem())
	s, l, m := newFed(t, faults.FS(), Options{Logger: logger})
	mustSync(t, l)
	block()
	faults.Add(Fault{Op: FaultSync, Path: "*.log", Err: syscall.EIO})
	m.output(l, []byte("lost"))
	inTime(t, "Sync", func() {
		if err := l.Sync(context.Background()); !errors.Is(err, ErrFailed) {
			t.Errorf("Sync: %v", err)
		}
	})
	inTime(t, "Failed", func() { <-s.Failed() })
	inTime(t, "Close", func() {
		if err := s.Close(); !errors.Is(err, ErrFailed) {
			t.Errorf("Close: %v", err)
		}
	})
}

// A disk that does not answer for one log holds up who wants that log, and nobody else.
func TestStuckRead(t *testing.T) {
	t.Parallel()
	faults := NewFaults(vfs.NewMem())
	s := mustOpen(t, "s", Options{FS: faults.FS(), EvictPace: time.Hour})
	for pane := range uint64(2) {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{pane: pane}
		m.spanOf(l, 10, 1000)
		mustSync(t, l)
		if err := s.db.Flush(); err != nil { // to a table of its own
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	s = mustOpen(t, "s", Options{FS: faults.FS(), EvictPace: time.Hour})
	defer func() { mustClose(t, s) }()
	other, err := s.Log(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.ReadOffset(0); err != nil {
		t.Fatal(err)
	}
	forgetTables(t, s)

	answer := make(chan struct{})
	answered := sync.OnceFunc(func() { close(answer) })
	defer answered()
	faults.Add(Fault{Op: FaultOpen | FaultRead, Path: "*.sst", Until: answer})
	type opened struct {
		log *Log
		err error
	}
	logs := make(chan opened, 2)
	open := func() {
		l, err := s.Log(0)
		logs <- opened{l, err}
	}
	go open()
	for deadline := time.Now().Add(20 * time.Second); faults.Failed() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the log is not read")
		}
	}
	go open()
	inTime(t, "Put", func() {
		if err := s.Put("a", []byte("b")); err != nil {
			t.Error(err)
		}
	})
	inTime(t, "Create", func() {
		l, err := s.Create(2)
		if err != nil {
			t.Error(err)
			return
		}
		l.AppendCheckpoint([]byte("new"), true)
		mustSync(t, l)
	})
	inTime(t, "another Log", func() {
		if l, err := s.Log(1); err != nil || l != other {
			t.Errorf("%p, not %p: %v", l, other, err)
		}
	})
	inTime(t, "Remove", func() {
		if err := s.Remove(2); err != nil {
			t.Error(err)
		}
	})
	select {
	case o := <-logs:
		t.Fatalf("a log that cannot be read: %+v", o)
	default:
	}
	answered()
	first, second := <-logs, <-logs
	if first.err != nil || second.err != nil || first.log != second.log || first.log.End().Offset != 10_000 {
		t.Errorf("the log is %+v and %+v", first, second)
	}
	if err := s.Remove(0); err != nil {
		t.Error(err)
	}
}
