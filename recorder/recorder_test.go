package recorder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"looptape/replay"
	"looptape/store"
)

const patience = 60 * time.Second

// record starts argv in a pane of its own store.
func record(t *testing.T, argv ...string) *Pane {
	t.Helper()
	st, err := store.Open(t.TempDir(), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	log, err := st.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), log, Config{Argv: argv, Env: os.Environ(), Cols: 80, Rows: 24, Scrollback: 1000, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		st.Close()
		p.child.hangUp(0)
	})
	return p
}

// output is all that the log holds of the stream.
func output(t *testing.T, log *store.Log) []byte {
	t.Helper()
	r, err := log.Read(store.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []byte
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == store.Output {
			if f.Offset != uint64(len(all)) {
				t.Fatalf("frame at %d behind %d bytes", f.Offset, len(all))
			}
			all = append(all, f.Data...)
		}
	}
}

// kinds lists the marks of a log, in order, with their offsets.
func kinds(t *testing.T, log *store.Log) (marks []store.Frame) {
	t.Helper()
	r, err := log.Read(store.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return marks
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != store.Output {
			f.Data = bytes.Clone(f.Data)
			marks = append(marks, f)
		}
	}
}

func waitFor(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: not after %v", what, patience)
	}
}

// closed waits until the terminal of p is closed.
func closed(t *testing.T, p *Pane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Await(ctx, 1<<60); err != nil {
		t.Fatal(err)
	}
}

func (p *Pane) nonblocking(t *testing.T) bool {
	t.Helper()
	flags := 0
	if err := p.do(t.Context(), func(l *loop) error {
		return l.pty.control(func(fd int) (err error) {
			flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_NONBLOCK != 0
}

// TestNonblocking: the library's ioctls would make the PTY blocking; ours must
// not, neither at the start nor at a resize.
func TestNonblocking(t *testing.T) {
	p := record(t, "sleep", "1000")
	if !p.nonblocking(t) {
		t.Error("the PTY blocks after the start")
	}
	size, err := p.Resize(t.Context(), 100, 30)
	if err != nil || size != (Size{Offset: 0, Epoch: 2, Cols: 100, Rows: 30}) {
		t.Errorf("Resize: %+v, %v", size, err)
	}
	if !p.nonblocking(t) {
		t.Error("the PTY blocks after a resize")
	}
}

// TestQueriesWithoutReader: a program that asks 100,000 times for the terminal's
// attributes and reads no answer must neither stop the loop nor lose its output.
func TestQueriesWithoutReader(t *testing.T) {
	const queries = 100000
	p := record(t, "sh", "-c", `stty raw -echo; yes "$(printf '\033[c')" | head -n 100000; printf done`)
	waitFor(t, "exit", p.Exited())
	want := bytes.Repeat([]byte("\x1b[c\n"), queries)
	want = append(want, "done"...)
	if got := output(t, p.Log()); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes are recorded, not %d", len(got), len(want))
	}
	if p.DroppedReplies() == 0 {
		t.Error("no reply was dropped, so the test has not filled the queue")
	}
}

// TestGrandchild: the exit of a program is known at once, though a grandchild
// keeps the terminal; what that one writes is recorded, and its end closes.
func TestGrandchild(t *testing.T) {
	p := record(t, "sh", "-c", `trap "" HUP; (read x </dev/null; while [ ! -e "$0" ]; do sleep 0.01; done; echo late) & echo hi; exit 4`, t.TempDir()+"/go")
	waitFor(t, "exit", p.Exited())
	if e, ended, ok := p.Exit(); !ok || e != (replay.Exit{Number: 4}) || ended.IsZero() {
		t.Errorf("Exit: %+v at %v, %v", e, ended, ok)
	}
	if got := output(t, p.Log()); string(got) != "hi\r\n" {
		t.Errorf("at the exit there is %q", got)
	}
	// The path that the grandchild waits for is the program's last argument.
	cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(grandchild(t, p)) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")
	if err := os.WriteFile(args[len(args)-1], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed(t, p)
	if got := output(t, p.Log()); string(got) != "hi\r\nlate\r\n" {
		t.Errorf("at the end there is %q", got)
	}
	marks := kinds(t, p.Log())
	if len(marks) != 2 || marks[0].Kind != replay.MarkExit || marks[0].Offset != 4 || marks[1].Kind != replay.MarkClosed || marks[1].Offset != 10 {
		t.Errorf("marks: %+v", marks)
	}
}

func grandchild(t *testing.T, p *Pane) int {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, pid := range p.child.members() {
			if comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); string(comm) == "sh\n" && pid != p.child.pid {
				return pid
			}
		}
	}
	t.Fatal("no grandchild")
	return 0
}

// TestHangUp ends a program that ignores SIGHUP, and its children with it.
func TestHangUp(t *testing.T) {
	p := record(t, "sh", "-c", `trap "" HUP TERM; sleep 1000 & echo ready; while :; do sleep 1000; done`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Await(ctx, 0); err != nil {
		t.Fatal(err)
	}
	members := p.child.members()
	if len(members) < 2 {
		t.Fatalf("session: %v", members)
	}
	if err := p.HangUp(ctx); err != nil {
		t.Fatal(err)
	}
	if e, _, ok := p.Exit(); !ok || !e.Signaled || e.Number != int(syscall.SIGKILL) {
		t.Errorf("Exit: %+v, %v", e, ok)
	}
	for _, pid := range members {
		for deadline := time.Now().Add(patience); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
			if stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); bytes.Contains(stat, []byte(") Z ")) {
				break // whoever inherited it has yet to reap it
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %d of the session lives on", pid)
			}
		}
	}
	<-p.Stopped() // until then the terminal is open, and may have somebody to hang up
	if err := p.HangUp(ctx); !errors.Is(err, ErrStopped) {
		t.Errorf("again: %v", err)
	}
}

// TestHangUpOfHelpers ends a helper that ignores SIGHUP and outlives its leader,
// also when the program itself has exited long ago.
func TestHangUpOfHelpers(t *testing.T) {
	p := record(t, "sh", "-c", `(trap "" HUP; exec sleep 1000) & echo ready; exec sleep 1000`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Await(ctx, 6); err != nil {
		t.Fatal(err)
	}
	if err := p.HangUp(ctx); err != nil {
		t.Fatal(err)
	}
	if left := p.child.members(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	closed(t, p)

	p = record(t, "sh", "-c", `trap "" HUP; sleep 1000 & echo ready`)
	waitFor(t, "exit", p.Exited())
	if len(p.child.members()) != 1 {
		t.Fatalf("members: %v", p.child.members())
	}
	if err := p.HangUp(ctx); err != nil {
		t.Fatal(err)
	}
	if left := p.child.members(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	closed(t, p)
}

// TestPanicIsContained: a panic in one pane's loop ends the recording of that
// pane only, and what it had recorded stays.
func TestPanicIsContained(t *testing.T) {
	bad, good := record(t, "sh", "-c", "echo before; exec sleep 1000"), record(t, "cat")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := bad.Await(ctx, 7); err != nil {
		t.Fatal(err)
	}
	if err := bad.do(ctx, func(*loop) error { panic("a mistake") }); !errors.Is(err, ErrStopped) {
		t.Errorf("the request that panicked: %v", err)
	}
	waitFor(t, "stop", bad.Stopped())
	if err := bad.Fault(); err == nil || !strings.Contains(err.Error(), "a mistake") {
		t.Errorf("Fault: %v", err)
	}
	if got := output(t, bad.Log()); string(got) != "before\r\n" {
		t.Errorf("recorded: %q", got)
	}
	waitFor(t, "end of its program", bad.child.reaped)

	// A panic of a reader's is the reader's alone.
	if err := good.View(ctx, func(*replay.Terminal, bool) { panic("a reader's mistake") }); err == nil || !strings.Contains(err.Error(), "a reader's mistake") {
		t.Errorf("View: %v", err)
	}
	if _, err := good.Write(ctx, []byte("hi\n")); err != nil {
		t.Fatal(err)
	}
	if err := good.Await(ctx, 7); err != nil {
		t.Fatal(err)
	}
	if got := output(t, good.Log()); string(got) != "hi\r\nhi\r\n" {
		t.Errorf("the other pane has recorded %q", got)
	}
}

// TestStop: what was written, a checkpoint and the mark are in the log, and the
// program is hung up.
func TestStop(t *testing.T) {
	p := record(t, "sh", "-c", "echo here; exec sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Await(ctx, 5); err != nil {
		t.Fatal(err)
	}
	p.Stop()
	p.Stop() // twice is once
	if marks := kinds(t, p.Log()); len(marks) != 1 || marks[0].Kind != replay.MarkRestart || marks[0].Offset != 6 {
		t.Errorf("marks: %+v", marks)
	}
	c, err := p.Log().FullCheckpoint(p.Log().End())
	if err != nil || c.Offset != 6 {
		t.Errorf("checkpoint at %d: %v", c.Offset, err)
	}
	if err := p.View(ctx, nil); !errors.Is(err, ErrStopped) {
		t.Errorf("View of a stopped pane: %v", err)
	}
	waitFor(t, "end of the program", p.child.reaped)
}

// TestInputLimit: input for a program that does not read is refused beyond 64
// KiB, and never holds up the loop.
func TestInputLimit(t *testing.T) {
	p := record(t, "sh", "-c", "stty raw -echo; printf ready; exec sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Await(ctx, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(ctx, make([]byte, maxQueued+1)); !errors.Is(err, ErrInputSize) {
		t.Errorf("more than the queue holds: %v", err)
	}
	var refused atomic.Bool
	short, end := context.WithTimeout(ctx, time.Second)
	defer end()
	writes := make(chan struct{}, 16)
	for range cap(writes) {
		go func() {
			if _, err := p.Write(short, make([]byte, 16<<10)); errors.Is(err, ErrInputFull) {
				refused.Store(true)
			}
			writes <- struct{}{}
		}()
	}
	for range cap(writes) {
		<-writes
	}
	if !refused.Load() {
		t.Error("256 KiB for a program that does not read: nothing was refused")
	}
	if err := p.View(ctx, func(*replay.Terminal, bool) {}); err != nil {
		t.Errorf("the loop: %v", err)
	}
}

// TestResizes: a dragged window costs few resizes, and the last one counts.
func TestResizes(t *testing.T) {
	p := record(t, "sleep", "1000")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sizes := make(chan Size, 50)
	for i := range cap(sizes) {
		go func() {
			s, err := p.Resize(ctx, 100+i, 30)
			if err != nil {
				t.Error(err)
			}
			sizes <- s
		}()
	}
	for range cap(sizes) {
		<-sizes
	}
	if n := len(kinds(t, p.Log())); n < 1 || n > 10 {
		t.Errorf("%d resizes", n)
	}
	if s, err := p.Resize(ctx, 77, 7); err != nil || s.Cols != 77 || s.Rows != 7 {
		t.Errorf("the last one: %+v, %v", s, err)
	}
	if _, err := p.Resize(ctx, 1<<12, 1<<11); !errors.Is(err, ErrCells) {
		t.Errorf("too large: %v", err)
	}
}

// TestStartErrors: what cannot be started is an error that names the parameter.
func TestStartErrors(t *testing.T) {
	st, err := store.Open(t.TempDir(), store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/plain", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		argv  string
		dir   string
		param string
	}{
		{"no-such-program", "", "argv"},
		{"", "", "argv"},
		{"/", "", "argv"},
		{"./plain", dir, "argv"},
		{"true", "/no/such/dir", "cwd"},
		{"true", dir + "/plain", "cwd"},
	} {
		log, err := st.Create(uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), log, Config{Argv: []string{c.argv}, Dir: c.dir, Env: os.Environ(), Cols: 80, Rows: 24, Logger: slog.Default()})
		var start *StartError
		if !errors.As(err, &start) || start.Param != c.param {
			t.Errorf("%q in %q: %v", c.argv, c.dir, err)
		}
	}
}
