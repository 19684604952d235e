package daemon

import (
	"context"

	"looptape/capture"
)

func (s *Server) paneCommands(ctx context.Context, r *request) (any, error) {
	q := capture.CommandsRequest{Frame: r.Room}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	p, err := s.readable(ctx, r)
	if err != nil {
		return nil, err
	}
	return capture.Commands(ctx, p, q)
}
