package daemon

import (
	"context"
	"errors"

	"looptape/capture"
	"looptape/store"
)

// verifying holds one: verifying takes a core for as long as a log is long.
var verifying = make(chan struct{}, 1)

func (s *Server) paneVerify(ctx context.Context, r *request) (any, error) {
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	report := func(item capture.VerifyItem) error { return r.Item(ctx, item) }
	// The log as it is: an archive that was cut off by a crash is not finished for
	// this, and one that is damaged need not be readable.
	log, err := s.store.Log(w.Pane.ID)
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return capture.Unopened(r.id, damaged, report)
	}
	if err != nil {
		return nil, err
	}
	select {
	case verifying <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-verifying }()
	return capture.Verify(ctx, log, r.id, report)
}
