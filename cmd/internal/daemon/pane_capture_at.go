package daemon

import (
	"context"
	"time"

	"looptape/capture"
)

func (s *Server) paneCaptureAt(ctx context.Context, r *request) (any, error) {
	var q capture.AtRequest
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	q.Started = w.Created
	p, err := s.source(ctx, w)
	if err != nil {
		return nil, err
	}
	var result *capture.AtResult
	err = r.Wait(ctx, func() error {
		return s.archives.hydrate(ctx, func() (err error) {
			result, err = capture.At(ctx, p, q, time.Now)
			return err
		})
	})
	return result, err
}
