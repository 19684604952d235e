package daemon

import (
	"context"
	"errors"
	"time"

	"looptape/recorder"
	"looptape/store"
)

func (s *Server) paneDelete(ctx context.Context, r *request) (any, error) {
	if s.readOnly {
		return nil, store.ErrReadOnly
	}
	for ctx.Err() == nil {
		w, err := s.findPane(r)
		if err == nil {
			s.exitKnown(ctx, w)
			w, err = s.findPane(r)
		}
		if err == nil && w.state() == "running" {
			err = conflict(w, "runs its program: end that first")
		}
		if err == nil {
			err = s.deletePane(ctx, w)
		}
		if errors.Is(err, errRetired) {
			continue // it was respawned, or deleted
		}
		return map[string]string{"pane": r.id}, err
	}
	return nil, ctx.Err()
}

// deletePane removes the pane of w, whose program has ended, and its window.
func (s *Server) deletePane(ctx context.Context, w window) error {
	select {
	case <-w.archive.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.archive.turn <- struct{}{} }()
	err := s.release(ctx, w)
	unfinished := errors.Is(err, recorder.ErrNotRecorded)
	if err != nil && !unfinished {
		return err
	}
	err = w.archive.with(ctx, func() error {
		if err := s.registry.markDeleted(w.ID); err != nil {
			return err
		}
		w.archive.retired, w.archive.term = true, nil
		s.archives.drop(w.archive)
		return nil
	})
	if err != nil {
		return err
	}
	if unfinished { // its log takes nothing, and need not
		w.live.Stop()
	}
	w.events.tell(evDeleted, time.Now(), eventData{})
	return s.erase(w)
}

// erase takes away what is left of a deleted pane. On a full disk that may have to wait
// for space, and goes on behind the answer.
func (s *Server) erase(w window) error {
	err := s.abandon(w.Pane.ID, s.registry.leave(w)...)
	if errors.Is(err, errNoStorage) {
		s.logger.Warn("a pane is deleted; its recording goes once the disk has some space for that", "pane", w.Pane.ID)
		return nil
	}
	return err
}
