package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"looptape/replay"
	"looptape/store"
)

// follower is a subscriber that keeps a Terminal of its own.
type follower struct {
	t      *testing.T
	pane   *Pane
	stream *Stream
	term   *replay.Terminal
	from   uint64 // offset of the snapshot
	bytes  []byte // what came since
	sizes  []Item
	exits  []Item
}

func follow(t *testing.T, p *Pane) *follower {
	t.Helper()
	f := &follower{t: t, pane: p}
	if err := f.begin(); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *follower) begin() (err error) {
	f.stream, err = f.pane.Subscribe(f.t.Context(), func(live *replay.Terminal) {
		b := live.Bounds()
		f.from, f.bytes = live.Offset(), nil
		f.redraw(b.Cols, b.Rows, live.AppendSnapshot(nil, 0))
	})
	return err
}

func (f *follower) redraw(cols, rows int, snapshot []byte) {
	f.term = replay.New(cols, rows, 0)
	f.term.Feed(snapshot)
}

// next waits for an item and applies it; false is the end.
func (f *follower) next() bool {
	for {
		i, ok, err := f.stream.Next()
		if errors.Is(err, ErrBacklog) {
			err = f.begin()
		}
		if err != nil {
			if !errors.Is(err, ErrStopped) {
				f.t.Error(err)
			}
			return false
		}
		if !ok {
			select {
			case <-f.stream.Ready():
			case <-time.After(patience):
				f.t.Error("nothing comes")
				return false
			}
			continue
		}
		if at := f.from + uint64(len(f.bytes)); i.Offset != at {
			f.t.Errorf("item %d at %d instead of %d", i.Kind, i.Offset, at)
		}
		switch i.Kind {
		case ItemOutput:
			f.bytes = append(f.bytes, i.Data...)
			f.term.Feed(i.Data)
		case ItemResize:
			f.redraw(i.Cols, i.Rows, i.Data)
			f.sizes = append(f.sizes, i)
		case ItemExit:
			f.exits = append(f.exits, i)
		}
		i.Release()
		return true
	}
}

// screen is the text of the screen of t.
func screen(t *replay.Terminal) string {
	var text strings.Builder
	b := t.Bounds()
	for r := range t.Rows(b.Active, b.End) {
		text.Write(r.Text)
		text.WriteByte('\n')
	}
	return text.String()
}

// TestFollow: subscribers that come at any time of a fast writer have its stream
// from their snapshot on, to the byte, and its screen at the end.
func TestFollow(t *testing.T) {
	p := record(t, "/bin/sh", "-c", `read go; i=0; while [ $i -lt 400 ]; do printf '\033[%d;%dH\033[3%dmrow %d\033[K\n' $((i % 24 + 1)) $((i % 60 + 1)) $((i % 8)) $i; i=$((i + 1)); done; seq 1 200000; printf '\033[?1049h\033[5;5Hend'`)
	var all sync.WaitGroup
	var followers []*follower
	begin := func() error {
		f := &follower{t: t, pane: p}
		if err := f.begin(); err != nil {
			return err
		}
		followers = append(followers, f)
		all.Go(func() {
			for f.next() {
			}
		})
		return nil
	}
	err := begin()
	p.Write(t.Context(), []byte("\n"))
	for err == nil && len(followers) < 12 {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		err = begin()
	}
	if err != nil && !errors.Is(err, ErrStopped) { // the pane may be over before all have come
		t.Error(err)
	}
	all.Wait()
	log := output(t, p.Log())
	want := replay.New(80, 24, 1000)
	want.Feed(log)
	whole := 0
	for i, f := range followers {
		if !bytes.HasPrefix(log[f.from:], f.bytes) || len(f.exits) > 0 && f.from+uint64(len(f.bytes)) != uint64(len(log)) {
			t.Errorf("follower %d, from %d: %d bytes, not those of the log", i, f.from, len(f.bytes))
		}
		if n := len(f.exits); n == 0 || !f.exits[n-1].Closed {
			continue // it lagged behind at the end
		}
		whole++
		if got := screen(f.term); got != screen(want) {
			t.Errorf("follower %d, from %d: its screen is\n%s", i, f.from, got)
		}
	}
	if n := backlog.Load(); n != 0 || whole == 0 {
		t.Errorf("%d bytes are still shared; %d followers came to the end", n, whole)
	}
}

// TestFollowSizes: resizes stand where they stand in the log, and the screen that
// comes along is the one behind them.
func TestFollowSizes(t *testing.T) {
	p := record(t, "/bin/sh", "-c", `seq 1 50; while read x; do seq 1 20; done`)
	f := follow(t, p)
	for i, size := range [][2]int{{100, 30}, {40, 10}, {80, 24}, {80, 50}} {
		if _, err := p.Resize(t.Context(), size[0], size[1]); err != nil {
			t.Fatal(err)
		}
		p.Write(t.Context(), []byte("\n"))
		for len(f.sizes) <= i && f.next() {
		}
		var at uint64
		var want string
		p.View(t.Context(), func(live *replay.Terminal, _ bool) { at, want = live.Offset(), screen(live) })
		for f.from+uint64(len(f.bytes)) < at && f.next() {
		}
		if f.from+uint64(len(f.bytes)) == at && screen(f.term) != want {
			t.Errorf("%v: the screen is\n%s\ninstead of\n%s", size, screen(f.term), want)
		}
	}
	p.Stop()
	for f.next() {
	}
	var marks []store.Frame
	for _, m := range kinds(t, p.Log()) {
		if m.Kind == replay.MarkResize {
			marks = append(marks, m)
		}
	}
	if len(marks) != len(f.sizes) {
		t.Fatalf("%d resizes, and %d in the log", len(f.sizes), len(marks))
	}
	for i, m := range marks {
		cols, rows, _ := replay.ParseResize(m.Data)
		if s := f.sizes[i]; s.Offset != m.Offset || s.Cols != cols || s.Rows != rows || s.Epoch != uint32(2+i) {
			t.Errorf("resize %d is %dx%d at %d in epoch %d, in the log %dx%d at %d", i, s.Cols, s.Rows, s.Offset, s.Epoch, cols, rows, m.Offset)
		}
	}
}

// TestSlowFollower: whoever takes nothing loses what waits for him, and nobody else
// anything; then he costs nothing any more.
func TestSlowFollower(t *testing.T) {
	p := record(t, "/bin/sh", "-c", `stty -echo; for i in $(seq 1 10); do read go; seq 100001 130000; done`)
	slow := follow(t, p)
	fast := follow(t, p)
	for i := range 10 { // in step with the fast one
		p.Write(t.Context(), []byte("\n"))
		for len(fast.bytes) < (i+1)*30000*8 && fast.next() {
		}
	}
	if _, ok, err := slow.stream.Next(); ok || !errors.Is(err, ErrBacklog) {
		t.Errorf("the slow one: %v, %v", ok, err)
	}
	for fast.next() {
	}
	if log := output(t, p.Log()); !bytes.Equal(fast.bytes, log) || len(log) < 10*30000*8 {
		t.Errorf("the fast one has %d bytes of %d", len(fast.bytes), len(log))
	}
	if n := backlog.Load(); n != 0 {
		t.Errorf("%d bytes are still shared", n)
	}
}

// TestBacklogBound: what waits is bounded, items without data counted as well.
func TestBacklogBound(t *testing.T) {
	for _, size := range []int{0, 1, 4095, batchBytes, 2 * MaxBacklog} {
		l := &loop{}
		s := &Stream{ready: make(chan struct{}, 1)}
		l.streams = []*Stream{s}
		most, waiting := 0, 0
		for len(l.streams) > 0 && waiting < 1<<20 {
			l.publish(Item{Kind: ItemOutput}, make([]byte, size))
			if s.end == nil {
				waiting = len(s.items)
				most = max(most, s.bytes)
			}
		}
		if most > MaxBacklog && waiting > 1 {
			t.Errorf("items of %d bytes: %d of them, %d bytes", size, waiting, most)
		}
		if !errors.Is(s.end, ErrBacklog) || backlog.Load() != 0 {
			t.Errorf("items of %d bytes: %v, %d bytes left", size, s.end, backlog.Load())
		}
	}
	// While much waits elsewhere, one item may wait for each.
	much := share(sharedBacklog + 1)
	defer much.release()
	l := &loop{}
	s := &Stream{ready: make(chan struct{}, 1)}
	l.streams = []*Stream{s}
	l.publish(Item{Kind: ItemOutput}, make([]byte, 10))
	if s.end != nil {
		t.Error("not even one")
	}
	l.publish(Item{Kind: ItemOutput}, make([]byte, 10))
	if !errors.Is(s.end, ErrBacklog) || backlog.Load() != much.size {
		t.Errorf("two: %v, %d bytes", s.end, backlog.Load()-much.size)
	}
}

// TestFollowExit: a helper that holds the terminal is followed behind the exit.
func TestFollowExit(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := record(t, "/bin/sh", "-c", `trap "" HUP; (read x; echo late) <`+fifo+` & echo early; exit 3`)
	f := follow(t, p)
	for len(f.exits) == 0 && f.next() {
	}
	if len(f.exits) == 0 || f.exits[0].Closed {
		t.Fatalf("%+v", f.exits)
	}
	late := follow(t, p)
	for late.exits == nil && late.next() {
	}
	if len(late.exits) != 1 || late.exits[0].Closed {
		t.Fatalf("one that comes later: %+v", late.exits)
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	for f.next() {
	}
	for late.next() {
	}
	if got := string(f.bytes); !strings.HasSuffix(got, "late\r\n") || len(f.exits) != 2 || !f.exits[1].Closed {
		t.Errorf("%q, %+v", got, f.exits)
	}
	if string(late.bytes) != "late\r\n" || len(late.exits) != 2 || !late.exits[1].Closed {
		t.Errorf("one that comes later: %q, %+v", late.bytes, late.exits)
	}
}

// TestUnsubscribe: subscriptions that ended leave nothing behind.
func TestUnsubscribe(t *testing.T) {
	p := record(t, "/bin/sh", "-c", "read x; echo y; read x")
	for range 1000 {
		f := follow(t, p)
		f.stream.Close()
	}
	p.Write(t.Context(), []byte("\n"))
	follow(t, p)
	if err := p.do(t.Context(), func(l *loop) error {
		if n := len(l.streams); n != 1 {
			return fmt.Errorf("%d streams", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	_, err := p.Subscribe(t.Context(), func(*replay.Terminal) { panic("boo") })
	if err == nil || !strings.Contains(err.Error(), "boo") {
		t.Errorf("a panic: %v", err)
	}
	p.Stop()
	if _, err := p.Subscribe(t.Context(), func(*replay.Terminal) {}); !errors.Is(err, ErrStopped) {
		t.Errorf("a pane that is stopped: %v", err)
	}
}

// TestType: more than waits at once passes while the program reads; when it reads
// nothing, what finds no room is refused, and nothing of it arrives.
func TestType(t *testing.T) {
	p := record(t, "/bin/sh", "-c", `stty raw -echo; echo ready; head -c 1000000 | wc -c; exec sleep 600`)
	f := follow(t, p) // it may come when that was said already
	for f.from+uint64(len(f.bytes)) < uint64(len("ready\n")) && f.next() {
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	piece := bytes.Repeat([]byte("x"), 50000)
	for range 20 {
		if err := p.Type(ctx, piece); err != nil {
			t.Fatal(err)
		}
	}
	for !bytes.Contains(f.bytes, []byte("1000000")) && f.next() {
	}
	var err error
	for n := 0; err == nil; n += len(piece) {
		if err = p.Type(ctx, piece); n > 4*maxQueued {
			t.Fatalf("%d bytes wait for a program that does not read", n)
		}
	}
	if !errors.Is(err, ErrInputFull) {
		t.Error(err)
	}
	if err := p.Type(ctx, make([]byte, maxQueued+1)); !errors.Is(err, ErrInputSize) {
		t.Error(err)
	}
	p.HangUp(ctx)
	if err := p.Type(ctx, []byte("x")); !errors.Is(err, ErrExited) {
		t.Errorf("behind the exit: %v", err)
	}
}
