package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/wire"
)

// restartable is a daemon in this process that is ended and started again.
type restartable struct {
	t      *testing.T
	config Config
	c      *wire.Client // the owner's
	stop   func()
}

func startRestartable(t *testing.T, change func(*Config)) *restartable {
	t.Helper()
	dir, err := os.MkdirTemp("", "lt") // short, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	d := &restartable{t: t, config: Config{Dir: filepath.Join(dir, "s"), Socket: filepath.Join(dir, "sock"), DiskCap: 4 << 30, Logger: slog.New(slog.DiscardHandler)}}
	if change != nil {
		change(&d.config)
	}
	d.start()
	t.Cleanup(func() {
		d.stop()
		os.RemoveAll(dir)
	})
	return d
}

func (d *restartable) start() {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- Serve(ctx, d.config, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		d.t.Fatal(err)
	}
	token, err := grant.ReadOwnerToken(d.config.Dir)
	if err == nil {
		d.c, err = wire.Dial(context.Background(), d.config.Socket, wire.Hello{Client: "test", Token: &token})
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.stop = func() {
		d.c.Close()
		cancel()
		if err := <-ended; err != nil {
			d.t.Errorf("the daemon ends with %v", err)
		}
	}
}

func (d *restartable) restart() {
	d.t.Helper()
	d.stop()
	d.start()
}

// call calls a verb, and fails if that takes longer than patience.
func (d *restartable) call(verb string, params any, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	raw, err := d.c.Call(ctx, verb, params)
	if ctx.Err() != nil {
		d.t.Errorf("%s is stuck", verb)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}

func (d *restartable) must(verb string, params any, into any) {
	d.t.Helper()
	if err := d.call(verb, params, into); err != nil {
		d.t.Fatalf("%s: %v", verb, err)
	}
}

// run runs a program to its end, and returns its pane.
func (d *restartable) run(argv ...string) string {
	d.t.Helper()
	var s struct{ Session string }
	d.must("session.create", nil, &s)
	var w struct{ Pane string }
	d.must("window.create", map[string]any{"session": s.Session, "argv": argv}, &w)
	d.must("pane.wait", map[string]any{"pane": w.Pane, "exit": true, "since": 0, "timeout_ms": 30000}, nil)
	return w.Pane
}

// TestSlots: readers of archives that nobody has read yet wait for each other's
// replays, and none waits for itself: as many at once as there are archives, of
// every verb that replays, are all answered.
func TestSlots(t *testing.T) {
	d := startRestartable(t, nil)
	var panes []string
	for range 2*replaysAtOnce + 1 {
		panes = append(panes, d.run("seq", "1", "2000"))
	}
	calls := map[string]func(pane string) error{
		"search": func(pane string) error {
			var r struct{ Matches []struct{ Line string } }
			err := d.call("pane.search", map[string]any{"pane": pane, "pattern": "^1999$"}, &r)
			if err == nil && (len(r.Matches) != 1 || r.Matches[0].Line != "1999") {
				err = fmt.Errorf("a search for 1999 finds %v", r.Matches)
			}
			return err
		},
		"capture_at": func(pane string) error {
			var r struct{ Text string }
			err := d.call("pane.capture_at", map[string]any{"pane": pane, "offset": 9}, &r)
			if err == nil && strings.Join(strings.Fields(r.Text), " ") != "1 2 3" { // each with CR and LF
				err = fmt.Errorf("the screen at offset 9 is %q", r.Text)
			}
			return err
		},
		"capture_at beyond": func(pane string) error {
			err := d.call("pane.capture_at", map[string]any{"pane": pane, "offset": 1 << 40}, nil)
			if e := new(wire.Error); errors.As(err, &e) && e.Code == "not_found.offset" {
				return nil
			}
			return fmt.Errorf("capture_at beyond the end: %w", err)
		},
		"capture": func(pane string) error { return d.call("pane.capture", map[string]any{"pane": pane}, nil) },
	}
	check := func(name, pane string) {
		if err := calls[name](pane); err != nil {
			t.Errorf("%s of %s: %v", name, pane, err)
		}
	}
	for _, together := range [][]string{{"search"}, {"capture_at beyond"}, {"search", "search", "capture", "capture"}, {"capture", "search", "capture_at", "capture_at beyond"}} {
		d.restart()
		var all sync.WaitGroup
		for _, pane := range panes {
			for _, name := range together {
				all.Go(func() { check(name, pane) })
			}
		}
		all.Wait()
	}
}

// TestNoSlotInASlot: who holds a slot cannot even begin to wait for an archive.
func TestNoSlotInASlot(t *testing.T) {
	all := newArchives(nil, true, nil)
	a := all.open(paneRecord{}, true)
	for name, f := range map[string]func(context.Context) error{
		"view": func(ctx context.Context) error { return a.view(ctx, nil) },
		"slot": func(ctx context.Context) error {
			return all.inSlot(ctx, func(context.Context) error { return nil })
		},
	} {
		all.inSlot(t.Context(), func(ctx context.Context) error {
			defer func() {
				if recover() == nil {
					t.Errorf("%s waits within a slot", name)
				}
			}()
			return f(ctx)
		})
	}
	if len(all.slots) != 0 {
		t.Error("a slot is held by nobody")
	}
}
