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
	q.Started, q.Slots = w.Created, s.archives.inSlot
	p, err := s.sourceFor(ctx, r, w)
	if err != nil {
		return nil, err
	}
	var result *capture.AtResult
	err = r.Wait(ctx, func() (err error) { // for a slot, too
		result, err = capture.At(ctx, p, q, time.Now)
		return err
	})
	return result, err
}
