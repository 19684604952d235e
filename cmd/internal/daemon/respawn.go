package daemon

import (
	"context"
	"errors"
	"fmt"

	"looptape/recorder"
	"looptape/replay"
	"looptape/store"
)

// A respawn changes two places, the log and the record of the window, which no
// batch covers. What comes when:
//
//	the record  gets Next: what is to run, and the position of the log's end
//	the program is started; what it writes waits
//	the log     gets the Respawn mark at that position, and a checkpoint
//	the pane    is live, for everybody to see
//	the record  says what Next said
//
// Each is durable before the one that follows. The log decides: whoever finds a
// record with Next looks whether the mark is there. So nobody has ever seen a
// program, or a cursor of its generation, that a crash can undo.

// settle decides whether the respawn that a crash came into has happened, if it
// did, and makes the record say so. An error means that it cannot be told.
func (r *registry) settle(w *window) error {
	next := w.Pane.Next
	if next == nil {
		return nil
	}
	happened, err := hasRespawn(r.store, w.Pane.ID, store.Pos{Offset: next.Offset, Seq: next.Seq})
	if err != nil {
		return fmt.Errorf("what pane %d ran last: %w", w.Pane.ID, err)
	}
	if happened {
		w.Pane.runs(next)
	}
	w.Pane.Next = nil
	// It can be told as long as the log keeps the place.
	if err := r.put(windowKey, w.ID, *w); !errors.Is(err, store.ErrReadOnly) {
		return err
	}
	return nil
}

// runs says that the pane runs next.
func (p *paneRecord) runs(next *program) {
	p.Argv, p.Cwd, p.Started, p.Daemon = next.Argv, next.Cwd, next.Started, next.Daemon
	p.Ended, p.Exit, p.Next, p.Imported = nil, nil, nil, nil
}

// hasRespawn reports whether the log of a pane has a Respawn mark at a position.
func hasRespawn(st *store.Store, pane uint64, at store.Pos) (bool, error) {
	log, err := st.Log(pane)
	if err != nil {
		return false, err
	}
	end := log.End()
	switch {
	case end.Seq <= at.Seq:
		return false, nil
	case at.Offset < log.Oldest(): // only what was recorded behind it can have evicted it
		return true, nil
	}
	frames, err := log.Read(at)
	if err != nil {
		return false, err
	}
	defer frames.Close()
	f, err := frames.Next()
	if errors.Is(err, store.ErrPosition) {
		return false, nil
	}
	return f.Kind == replay.MarkRespawn, err
}

// propose notes durably what a pane is about to run.
func (r *registry) propose(id uint64, next *program) error {
	next.Daemon = r.daemon
	err := r.updateWindow(id, func(w *window) { w.Pane.Next = next })
	if err != nil {
		r.locked(func() {
			if w := r.windows[id]; w != nil {
				w.Pane.Next = nil // the next update says so too
			}
		})
	}
	return err
}

// concluded makes it durable what became of a proposal: the record as it is now. By then
// somebody may have proposed what comes next, which stays.
func (r *registry) concluded(id uint64, next *program) error {
	return r.updateWindow(id, func(w *window) {
		if w.Pane.Next == next {
			w.Pane.Next = nil
		}
	})
}

// respawned shows that a pane runs what was proposed, and what it is read from. It
// returns the window as it is then; making that durable is updateWindow's.
func (r *registry) respawned(id uint64, live *recorder.Pane, a *archive) window {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.windows[id]
	w.Pane.runs(w.Pane.Next)
	w.live, w.archive = live, a
	return *w
}

// respawn has start run a program in the pane of a, whose Terminal and last frame's
// time it hands over. show is called with the live pane once that is durable, or if
// the disk takes too long for it; then a is retired.
func (a *archive) respawn(ctx context.Context, start func(*replay.Terminal, store.Time) (*recorder.Pane, error), show func(*recorder.Pane)) error {
	return a.with(ctx, func() error {
		if err := a.checkpoint(ctx, a.log, store.Time{}, 0); err != nil {
			return err
		}
		last, err := lastFrame(a.log)
		if err != nil {
			return err
		}
		live, err := start(a.term, last.Time)
		if err != nil {
			return err
		}
		a.retired, a.term = true, nil
		a.all.drop(a)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), putPatience)
		defer cancel()
		err = a.log.Sync(patience)
		show(live)
		return err
	})
}
