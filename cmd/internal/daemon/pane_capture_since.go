package daemon

import (
	"context"
	"time"

	"looptape/capture"
)

func (s *Server) paneCaptureSince(ctx context.Context, r *request) (any, error) {
	q := capture.SinceRequest{Store: s.store.ID()}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	q.Pane = r.id
	p, err := s.readable(ctx, r)
	if err != nil {
		return nil, err
	}
	q.Frame = r.Room
	return capture.Since(ctx, p, q, time.Now)
}
