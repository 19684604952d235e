package daemon

import (
	"context"
	"errors"
	"time"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
	"looptape/replay"
	"looptape/store"
)

func (s *Server) paneRespawn(ctx context.Context, r *request) (any, error) {
	var p windowParams // without size, history and retain, which the pane has
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if s.readOnly {
		return nil, store.ErrReadOnly
	}
	for ctx.Err() == nil {
		w, err := s.findPane(r)
		if err == nil {
			s.exitKnown(ctx, w)
			w, err = s.findPane(r)
		}
		if err == nil {
			err = s.mayRespawn(w)
		}
		if err == nil {
			err = p.check()
		}
		if err != nil {
			return nil, err
		}
		offset, err := s.respawn(ctx, w, p)
		if errors.Is(err, errRetired) {
			continue // somebody else was faster
		}
		return struct {
			Pane   string `json:"pane"`
			Offset uint64 `json:"offset"`
		}{r.id, offset}, err
	}
	return nil, ctx.Err()
}

// mayRespawn refuses a pane whose program runs, and one that was closed.
func (s *Server) mayRespawn(w window) error {
	if w.state() == "running" {
		return conflict(w, "runs its program: end that first")
	}
	return s.notKilled(w)
}

func (s *Server) notKilled(w window) error {
	if _, ok := s.registry.session(w.Session); !ok || w.Killed != nil {
		return conflict(w, "belongs to a window that was killed: it can be read, nothing runs in it any more")
	}
	return nil
}

// respawn starts a program in the pane of w, and returns the offset at which what
// it writes begins. What p leaves open is as the pane had it; but for the
// environment, which nobody keeps: that is the daemon's, with what p says.
func (s *Server) respawn(ctx context.Context, w window, p windowParams) (offset uint64, err error) {
	if len(p.Argv) == 0 && w.Pane.Imported != nil {
		return 0, &wire.Error{
			Code: "invalid_params.argv", Message: "nothing ran in this pane, it was imported: say what is to run, by argv",
			Data: map[string]string{"param": "argv"},
		}
	}
	if len(p.Argv) == 0 {
		p.Argv = w.Pane.Argv
	}
	if p.Cwd == "" {
		p.Cwd = w.Pane.Cwd
	}
	select {
	case <-w.archive.turn:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { w.archive.turn <- struct{}{} }()
	if err := s.release(ctx, w); err != nil {
		return 0, err
	}
	log, err := w.archive.ready(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.admit(); err != nil {
		return 0, err
	}
	var now window // once the program is shown
	defer func() {
		if now.live == nil { // else its watch counts it
			s.dismiss(err)
		}
	}()
	end := log.End()
	next := &program{Argv: p.Argv, Cwd: p.Cwd, Started: time.Now().UTC(), Offset: end.Offset, Seq: end.Seq}
	if err := s.registry.propose(w.ID, next); err != nil {
		return 0, err
	}
	config := recorder.Config{
		Argv: p.Argv, Dir: p.Cwd, Env: p.environment(formatID(manifest.Pane, w.Pane.ID)),
		Retain: w.Pane.Retain, Logger: s.logger.With("pane", w.Pane.ID), Observe: w.events.observe,
	}
	err = w.archive.respawn(ctx, func(t *replay.Terminal, last store.Time) (*recorder.Pane, error) {
		return s.launch(ctx, func(ctx context.Context) (*recorder.Pane, error) {
			return recorder.Respawn(ctx, log, t, last, config)
		})
	}, func(live *recorder.Pane) {
		now = s.registry.respawned(w.ID, live, s.archives.open(w.Pane, false))
		w.events.respawnKnown()
		s.watches.Add(1)
		go s.watch(now)
	})
	if e := s.registry.concluded(w.ID, next); e != nil {
		s.logger.Error("the record of a respawn is not on disk", "pane", w.Pane.ID, "err", e)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = errNoStorage
	}
	if now.live != nil {
		if killed := s.notKilled(now); killed != nil { // while it started: who kills it from now on finds it
			s.hangUp(ctx, now)
			err = killed
		}
	}
	return end.Offset, err
}

// release ends what is left of the last recording of w.
func (s *Server) release(ctx context.Context, w window) error {
	if w.live == nil {
		return nil
	}
	if err := w.live.Release(ctx); err != nil {
		return liveError(w, err)
	}
	if _, missing := w.live.NotRecorded(); missing { // its loop failed in a gap
		return recorder.ErrNotRecorded
	}
	return nil
}
