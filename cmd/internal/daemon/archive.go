package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"looptape/replay"
	"looptape/store"
)

const (
	// replaysAtOnce bounds the memory and the cores that hydrations and searches take.
	replaysAtOnce = 2
	// keptTerminals is how many hydrated terminals are kept for the next read.
	keptTerminals = 8
)

// archive is a pane that is no longer recorded: its log, and the Terminal at
// the log's end once somebody has read it.
type archive struct {
	pane paneRecord
	all  *archives
	// found says that an earlier daemon recorded the pane. Its log may lack the
	// mark of its end, and more than that after a crash.
	found bool

	turn  chan struct{} // holds one: who takes it may respawn or delete the pane
	known chan struct{} // closed once everybody sees how the program ended

	lock    chan struct{}    // holds one: whoever took it owns what follows
	log     *store.Log       // nil until it is opened, and finished if it was found
	term    *replay.Terminal // nil while it is not hydrated
	retired bool             // the pane was respawned, or deleted
	empty   bool             // expire has nothing to do any more
}

// errRetired says that an archive is none any more: the registry knows what the
// pane is now.
var errRetired = errors.New("the pane was respawned or deleted")

// archives is what the archives of a daemon share.
type archives struct {
	store    *store.Store
	readOnly bool                     // no log can be finished
	lost     func(pane, bytes uint64) // told of gaps
	slots    chan struct{}            // as many as may replay at once

	mu   sync.Mutex
	kept []*archive // those with a Terminal, the one read last at the end
}

func newArchives(st *store.Store, readOnly bool, lost func(pane, bytes uint64)) *archives {
	return &archives{store: st, readOnly: readOnly, lost: lost, slots: make(chan struct{}, replaysAtOnce)}
}

func (all *archives) open(pane paneRecord, found bool) *archive {
	a := &archive{
		pane: pane, all: all, found: found,
		turn: make(chan struct{}, 1), known: make(chan struct{}), lock: make(chan struct{}, 1),
	}
	a.turn <- struct{}{}
	a.lock <- struct{}{}
	return a
}

// view calls read with the Terminal at the log's end.
func (a *archive) view(ctx context.Context, read func(t *replay.Terminal, closed bool)) error {
	return a.with(ctx, func() error {
		if err := a.openLog(ctx); err != nil {
			return err
		}
		if err := a.hydrate(ctx, a.log); err != nil {
			return err
		}
		read(a.term, true)
		return nil
	})
}

// ready returns the log. One that was found ends in the mark of its end.
func (a *archive) ready(ctx context.Context) (log *store.Log, err error) {
	err = a.with(ctx, func() error {
		err := a.openLog(ctx)
		log = a.log
		return err
	})
	return log, err
}

// end appends the mark of its end to the log of a pane that this daemon
// recorded, if the log lacks it.
func (a *archive) end(ctx context.Context) error {
	return a.with(ctx, func() error {
		if err := a.openLog(ctx); err != nil || a.found {
			return err
		}
		return a.finish(ctx, a.log, time.Now().UnixNano())
	})
}

// openLog opens the log. What one that was found lacks at its end is dated as what is
// there: nobody knows more of when the recording ended.
func (a *archive) openLog(ctx context.Context) error {
	if a.log != nil {
		return nil
	}
	log, err := a.all.store.Log(a.pane.ID)
	if err == nil && a.found && !a.all.readOnly {
		log.SetRetain(a.pane.Retain)
		err = a.finish(ctx, log, 0)
		// A log whose end is damaged keeps what stands before: it is read as it is,
		// and who wants its screen is told of the damage.
		if damaged := new(store.DamagedError); errors.As(err, &damaged) {
			err = nil
		}
	}
	if err == nil {
		a.log = log
	}
	return err
}

// with runs f as the owner of a, unless it is retired. A panic in f, as from a log
// that replays into one, is an error.
func (a *archive) with(ctx context.Context, f func() error) (err error) {
	mustNotHoldSlot(ctx)
	select {
	case <-a.lock:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in the archive of pane %d: %v", a.pane.ID, r)
			a.term = nil
		}
		a.lock <- struct{}{}
	}()
	if a.retired {
		return errRetired
	}
	return f()
}

// hydrate makes the Terminal at the end of log, if it is not there.
func (a *archive) hydrate(ctx context.Context, log *store.Log) error {
	if a.term == nil {
		err := a.all.inSlot(ctx, func(context.Context) (err error) {
			a.term, err = replay.Hydrate(log, log.End())
			return err
		})
		if err != nil {
			return err
		}
	}
	a.all.touch(a)
	return nil
}

// slotKey is known to the context of who holds a slot.
type slotKey struct{}

// inSlot runs f, which replays a log, as soon as few enough others do. Who holds an
// archive may wait for a slot here. So f, which holds one, waits for no archive and
// no other slot: with its context that panics.
func (all *archives) inSlot(ctx context.Context, f func(ctx context.Context) error) error {
	mustNotHoldSlot(ctx)
	select {
	case all.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-all.slots }()
	return f(context.WithValue(ctx, slotKey{}, true))
}

func mustNotHoldSlot(ctx context.Context) {
	if ctx.Value(slotKey{}) != nil {
		panic("who holds a slot waits for what may wait for one")
	}
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

// drop forgets a, which has no Terminal any more.
func (all *archives) drop(a *archive) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.kept = slices.DeleteFunc(all.kept, func(kept *archive) bool { return kept == a })
}

// finish appends what a log lacks at its end, if anything: after a crash a gap
// for what may be lost, since clients may have seen offsets behind the log's
// end, and a checkpoint; in any case the mark of the recording's end. Nobody
// waits until that is durable: after a crash before, it is appended again. It is dated
// by wall, ns since the epoch; 0 is the time of the last frame.
func (a *archive) finish(ctx context.Context, log *store.Log, wall int64) error {
	last, err := lastFrame(log)
	if err != nil || last.Kind == replay.MarkRestart {
		return err
	}
	if wall == 0 {
		wall = last.Time.Wall
	}
	if wall == 0 { // there is no frame
		wall = a.pane.Started.UnixNano()
	}
	now := store.Time{Wall: wall, Mono: last.Time.Mono}
	lost := uint64(0)
	switch {
	case last.Kind == store.Gap: // a crash in the middle of finish
		lost = last.Lost
		err = a.checkpoint(ctx, log, now, 0)
	case a.found && last.Kind != replay.MarkClosed: // behind which nothing comes
		seen, _ := log.Reserved()
		lost = max(a.all.store.LossBound(), seen-min(seen, log.End().Offset))
		err = a.checkpoint(ctx, log, now, lost)
	}
	if err != nil {
		return err
	}
	mark := store.Frame{Kind: replay.MarkRestart, Time: now, Data: replay.AppendRestart(nil, a.epochs(log, lost))}
	log.Append(mark.Kind, mark.Time, mark.Data)
	if a.term != nil {
		err = replay.Apply(a.term, mark)
	}
	return err
}

// epochs is how many epochs may have been lost with so many bytes: each took a
// byte or a frame, or was reserved.
func (a *archive) epochs(log *store.Log, lost uint64) uint32 {
	if lost == 0 {
		return 0
	}
	_, seen := log.Reserved()
	now := uint64(a.term.Bounds().Epoch)
	return uint32(min(max(lost, seen-min(seen, now)), math.MaxUint32-min(now+1, math.MaxUint32)))
}

// checkpoint appends a gap of lost bytes, if there is one, and the checkpoint
// that has to follow it.
func (a *archive) checkpoint(ctx context.Context, log *store.Log, now store.Time, lost uint64) error {
	if log.End() == (store.Pos{}) && log.NeedsFull() { // the crash came before the first checkpoint
		a.term = replay.New(a.pane.Cols, a.pane.Rows, a.pane.Scrollback)
		a.putState(log)
	}
	if err := a.hydrate(ctx, log); err != nil {
		return err
	}
	if lost > 0 {
		log.AppendGap(now, lost, []byte("crash"))
		a.all.lost(a.pane.ID, lost)
		a.term.Gap(lost)
	}
	if log.NeedsFull() {
		a.putState(log)
	}
	return nil
}

// putState appends the state of a.term.
func (a *archive) putState(log *store.Log) {
	blob, _, _ := a.term.EncodeState(nil, store.MaxCheckpoint)
	log.AppendCheckpoint(blob, true)
}

// lastFrame returns the last frame of a log without its data, or the zero Frame
// of a log without any.
func lastFrame(log *store.Log) (last store.Frame, err error) {
	from := max(log.End().Offset, 1) - 1 // the last byte: then come marks only
	r, err := log.ReadOffset(max(from, log.Oldest()))
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
