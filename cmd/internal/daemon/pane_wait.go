package daemon

import (
	"context"

	"looptape/capture"
)

func (s *Server) paneWait(ctx context.Context, r *request) (any, error) {
	q := capture.WaitRequest{Store: s.store.ID()}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	p, err := s.source(ctx, w)
	if err != nil {
		return nil, err
	}
	var result *capture.WaitResult
	err = r.Wait(ctx, func() (err error) {
		result, err = capture.Wait(ctx, p, q)
		return err
	})
	return result, err
}
