package daemon

import (
	"context"

	"looptape/capture"
	"looptape/cmd/internal/wire"
	"looptape/replay"
)

func (s *Server) paneCaptureRows(ctx context.Context, r *request) (any, error) {
	q := capture.RowsRequest{Frame: r.Room, StringLen: wire.StringLen[[]byte]}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	p, err := s.readable(ctx, r)
	if err != nil {
		return nil, err
	}
	var result *capture.RowsResult
	var failed error
	err = p.View(ctx, func(t *replay.Terminal, _ bool) { result, failed = capture.Rows(t, q) })
	if err == nil {
		err = failed
	}
	return result, err
}
