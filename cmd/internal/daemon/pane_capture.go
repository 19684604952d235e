package daemon

import (
	"context"

	"looptape/capture"
	"looptape/replay"
)

func (s *Server) paneCapture(ctx context.Context, r *request) (any, error) {
	p, err := s.readable(ctx, r)
	if err != nil {
		return nil, err
	}
	var result *capture.ScreenResult
	err = p.View(ctx, func(t *replay.Terminal, _ bool) { result = capture.Screen(t, r.id) })
	return result, err
}

// readable is what the pane that r is about is read from.
func (s *Server) readable(ctx context.Context, r *request) (capture.Pane, error) {
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	return s.source(ctx, w)
}
