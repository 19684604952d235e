package daemon

import (
	"context"
	"errors"
	"time"

	"looptape/cmd/internal/manifest"
	"looptape/recorder"
)

func (s *Server) windowKill(ctx context.Context, r *request) (any, error) {
	w, err := s.findWindow(r)
	if err != nil {
		return nil, err
	}
	return map[string]string{"window": formatID(manifest.Window, w.ID)}, s.killWindow(ctx, w)
}

// killWindow closes a window and ends its program, if it has one.
func (s *Server) killWindow(ctx context.Context, w window) error {
	now, first := time.Now().UTC(), false
	if err := s.registry.updateWindow(w.ID, func(w *window) {
		if first = w.Killed == nil; first {
			w.Killed = &now
		}
	}); err != nil {
		return err
	}
	if first {
		s.hub.add(&w.events.queue, newEvent(w.object(manifest.Window), evClosed, now, eventData{}))
	}
	w, _ = s.registry.pane(w.Pane.ID) // it may have been respawned meanwhile
	if w.live == nil {
		return nil
	}
	err := w.live.HangUp(ctx)
	s.exitKnown(ctx, w)
	if errors.Is(err, recorder.ErrExited) || errors.Is(err, recorder.ErrStopped) {
		return nil
	}
	return err
}
