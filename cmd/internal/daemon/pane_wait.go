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
	p, err := s.sourceFor(ctx, r, w)
	if err != nil {
		return nil, err
	}
	var result *capture.WaitResult
	err = r.Wait(ctx, func() (err error) {
		result, err = capture.Wait(ctx, p, q)
		if err == nil && result.Reason == "exit" {
			s.exitKnown(ctx, w) // for the pane.get that comes next
		}
		return err
	})
	return result, err
}
