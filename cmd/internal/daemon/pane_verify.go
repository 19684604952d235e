package daemon

import (
	"context"
	"errors"

	"looptape/capture"
	"looptape/store"
)

// verifying holds one: verifying takes a core for as long as a log is long.
var verifying = make(chan struct{}, 1)

// place is a place among those that a channel holds.
type place struct {
	in   chan struct{}
	held bool
}

// enter waits for a place.
func (p *place) enter(ctx context.Context) error {
	select {
	case p.in <- struct{}{}:
		p.held = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *place) leave() {
	if p.held {
		p.held = false
		<-p.in
	}
}

// aside runs f, which may wait for a client, without the place. With an error, f's or
// ctx's, there is none afterwards.
func (p *place) aside(ctx context.Context, f func() error) error {
	p.leave()
	if err := f(); err != nil {
		return err
	}
	return p.enter(ctx)
}

func (s *Server) paneVerify(ctx context.Context, r *request) (any, error) {
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	report := func(item capture.VerifyItem) error { return r.Item(ctx, item) } // may wait for the client
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
	turn := place{in: verifying}
	if err := turn.enter(ctx); err != nil {
		return nil, err
	}
	defer turn.leave()
	return capture.Verify(ctx, log, r.id, func(item capture.VerifyItem) error {
		return turn.aside(ctx, func() error { return report(item) })
	})
}
