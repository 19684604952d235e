package daemon

import (
	"context"

	"looptape/capture"
	"looptape/cmd/internal/wire"
	"looptape/replay"
	"looptape/store"
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
	p, err := s.sourceFor(ctx, r, w)
	return waiting{p, r.Call, ctx}, err
}

// waiting is a pane whose reader gives memory back while it waits for output.
type waiting struct {
	capture.Pane
	call *wire.Call
	ctx  context.Context // the request's
}

// Await is capture.Pane's; ctx is that of the wait.
func (p waiting) Await(ctx context.Context, at store.Pos) error {
	return p.call.Wait(p.ctx, func() error { return p.Pane.Await(ctx, at) })
}
