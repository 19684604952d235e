package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

const (
	// hydrationsAtOnce bounds the memory and the cores that hydrations take.
	hydrationsAtOnce = 2
	// keptTerminals is how many hydrated terminals are kept for the next read.
	keptTerminals = 8
)

// archive is a pane that is no longer recorded: its log, and the Terminal at
// the log's end once somebody has read it.
type archive struct {
	pane uint64
	all  *archives

	lock chan struct{}    // holds one: whoever took it owns what follows
	log  *store.Log       // nil until it is opened
	term *replay.Terminal // nil while it is not hydrated
}

// archives is what the archives of a daemon share.
type archives struct {
	store *store.Store
	slots chan struct{} // as many as may hydrate at once

	mu   sync.Mutex
	kept []*archive // those with a Terminal, the one read last at the end
}

func newArchives(st *store.Store) *archives {
	return &archives{store: st, slots: make(chan struct{}, hydrationsAtOnce)}
}

func (all *archives) open(pane uint64) *archive {
	a := &archive{pane: pane, all: all, lock: make(chan struct{}, 1)}
	a.lock <- struct{}{}
	return a
}

// View is capture.Pane's.
func (a *archive) View(ctx context.Context, read func(t *replay.Terminal, closed bool)) error {
	return a.with(ctx, func() error {
		if err := a.hydrate(ctx); err != nil {
			return err
		}
		read(a.term, true)
		return nil
	})
}

// Await is capture.Pane's: an archive writes no more.
func (a *archive) Await(context.Context, uint64) error { return nil }

// ready opens the log, and makes sure that it ends in the mark of its end.
func (a *archive) ready(ctx context.Context) (*store.Log, error) {
	err := a.with(ctx, func() error {
		if a.log != nil {
			return nil
		}
		log, err := a.all.store.Log(a.pane)
		if err != nil {
			return err
		}
		if err := a.finish(log); err != nil {
			return err
		}
		a.log = log
		return nil
	})
	return a.log, err
}

// with runs f as the owner of a. A panic in f, as from a log that replays into
// one, is an error.
func (a *archive) with(ctx context.Context, f func() error) (err error) {
	select {
	case <-a.lock:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in the archive of pane %d: %v", a.pane, r)
			a.term = nil
		}
		a.lock <- struct{}{}
	}()
	return f()
}

// hydrate makes the Terminal, if it is not there.
func (a *archive) hydrate(ctx context.Context) error {
	if a.term == nil {
		select {
		case a.all.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-a.all.slots }()
		t, err := replay.Hydrate(a.log, a.log.End())
		if err != nil {
			return err
		}
		a.term = t
	}
	a.all.touch(a)
	return nil
}

// touch notes that a was read, and drops the Terminals of those that were read
// longest ago.
func (all *archives) touch(a *archive) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if i := slices.Index(all.kept, a); i >= 0 {
		all.kept = slices.Delete(all.kept, i, i+1)
	}
	all.kept = append(all.kept, a)
	for i := 0; len(all.kept) > keptTerminals && i < len(all.kept)-1; {
		select {
		case <-all.kept[i].lock:
			all.kept[i].term = nil
			all.kept[i].lock <- struct{}{}
			all.kept = slices.Delete(all.kept, i, i+1)
		default: // it is being read right now
			i++
		}
	}
}

// finish ends a log that a crash cut off: a gap for what may be lost, since
// clients may have seen offsets behind the log's end, then a checkpoint, then
// the mark of the recording's end. A log that ends as it should stays as it is.
func (a *archive) finish(log *store.Log) error {
	last, err := lastFrame(log)
	if err != nil || last.Kind == replay.MarkRestart {
		return err
	}
	t, err := replay.Hydrate(log, log.End())
	if err != nil {
		return err
	}
	now := store.Time{Wall: time.Now().UnixNano(), Mono: last.Time.Mono}
	skip := uint32(0)
	if last.Kind != replay.MarkClosed { // after which there was nothing to lose
		lost := a.all.store.LossBound()
		skip = uint32(lost) // each epoch took a byte or a frame
		if !log.NeedsFull() {
			log.AppendGap(now, lost, []byte("crash"))
			t.Gap(lost)
		}
		log.AppendCheckpoint(checkpoint.Encode(nil, t.State()), true)
	}
	log.Append(replay.MarkRestart, now, replay.AppendRestart(nil, skip))
	return log.Sync(context.Background())
}

// lastFrame returns the last frame of a log, or the zero Frame of an empty one.
// It reads from the last checkpoint on.
func lastFrame(log *store.Log) (store.Frame, error) {
	var last store.Frame
	c, err := log.Checkpoint(log.End())
	if err != nil {
		return last, err
	}
	r, err := log.Read(c.Pos)
	if err != nil {
		return last, err
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			last.Data = nil
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = f
	}
}

// recording is an archive whose log has been opened: what capture reads.
type recording struct {
	*archive
	log *store.Log
}

// Log is capture.Pane's.
func (r recording) Log() *store.Log { return r.log }
