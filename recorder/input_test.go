package recorder

import (
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// untilLoop waits until ok is true on the loop of p.
func untilLoop(t *testing.T, p *Pane, what string, ok func(l *loop) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		is := false
		if err := p.do(t.Context(), func(l *loop) error { is = ok(l); return nil }); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if is {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v", what, patience)
		}
	}
}

// TestEmptyInput: typing nothing takes no room, so that there may be any number of it
// while the program does not read.
func TestEmptyInput(t *testing.T) {
	p := record(t, "sh", "-c", "stty raw -echo; printf ready; exec sleep 600")
	untilLoop(t, p, "ready", func(l *loop) bool { return l.term.Offset() == 5 })
	for err := error(nil); err == nil; { // until nothing finds room
		_, err = p.input.typeIn(make([]byte, 4096))
	}
	entries := func() int {
		p.input.mu.Lock()
		defer p.input.mu.Unlock()
		return len(p.input.input)
	}
	before := entries()
	for range 1000 {
		if err := p.Type(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if offset, err := p.Write(t.Context(), []byte{}); err != nil || offset != 5 {
			t.Fatalf("written at %d: %v", offset, err)
		}
	}
	if after := entries(); after > before {
		t.Errorf("%d pieces of input wait, %d did before", after, before)
	}
}

// TestInputOvertaken: what a program had not read when it ended was typed into a pane
// that has exited.
func TestInputOvertaken(t *testing.T) {
	p := record(t, "sh", "-c", "stty raw -echo; printf ready; exec sleep 600")
	untilLoop(t, p, "ready", func(l *loop) bool { return l.term.Offset() == 5 })
	// More than the kernel takes: all that is waited for is a queue that is full.
	var results []<-chan error
	for n := 0; n < 100000; {
		done, err := p.input.typeIn(make([]byte, 4000))
		switch {
		case err == nil:
			results = append(results, done)
			n += 4000
		case !errors.Is(err, ErrInputFull):
			t.Fatal(err)
		case time.Since(p.input.lastTaken()) > time.Second:
			n = 100000
		default:
			time.Sleep(time.Millisecond)
		}
	}
	if err := p.HangUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	overtaken := 0
	for _, done := range results {
		switch err := <-done; {
		case errors.Is(err, ErrExited):
			overtaken++
		case err != nil:
			t.Errorf("the outcome is %v", err)
		}
	}
	if overtaken == 0 {
		t.Error("nothing was overtaken by the end of the program")
	}
	waitFor(t, "stop", p.Stopped())
	if _, err := p.Write(t.Context(), []byte("x")); !errors.Is(err, ErrExited) && !errors.Is(err, ErrStopped) {
		t.Errorf("behind the end: %v", err)
	}
}

// TestExitBehindOutput: the exit comes behind all that the program wrote, though the log
// had no room when the child was reaped (contract.md, section 8).
func TestExitBehindOutput(t *testing.T) {
	faults := store.NewFaults(store.MemFS())
	logger := slog.New(slog.DiscardHandler)
	st, err := store.Open("s", store.Options{FS: faults.FS(), Logger: logger, InFlight: 64 << 10, Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log, err := st.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	const script = `stty raw -echo; printf ready
		while read x && [ -z "$x" ]; do head -c 1000 /dev/zero | tr '\0' y; done
		head -c 3000 /dev/zero | tr '\0' x; printf END`
	p, err := Start(t.Context(), log, Config{Argv: []string{"sh", "-c", script}, Env: os.Environ(), Cols: 80, Rows: 24, Scrollback: 1000, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	untilLoop(t, p, "ready", func(l *loop) bool { return l.term.Offset() == 5 })
	faults.Add(store.Fault{Op: store.FaultWrite, Path: "*.log", Err: syscall.ENOSPC})
	// What the log has no room for stays in the terminal, which holds 4,095 bytes.
	all := uint64(5)
	for log.Room() > 0 {
		if _, err := p.Write(t.Context(), []byte("\n")); err != nil {
			t.Fatal(err)
		}
		all += 1000
		untilLoop(t, p, "output", func(l *loop) bool { return l.term.Offset() == all || log.Room() <= 0 })
	}
	if _, err := p.Write(t.Context(), []byte("end\n")); err != nil {
		t.Fatal(err)
	}
	all += 3003
	waitFor(t, "the end of the child", p.child.reaped)
	untilLoop(t, p, "exit due", func(l *loop) bool {
		l.batch = leastBatch // as behind bytes that took long
		return l.exitDue || l.exited || l.gap.open
	})
	faults.Clear()
	waitFor(t, "exit", p.Exited())
	waitFor(t, "stop", p.Stopped())
	if end := log.End().Offset; end != all {
		t.Errorf("the stream has %d bytes, want %d", end, all)
	}
	for _, m := range kinds(t, log) {
		if m.Kind == replay.MarkExit && m.Offset != all {
			t.Errorf("the exit is at offset %d, want %d", m.Offset, all)
		}
	}
}
