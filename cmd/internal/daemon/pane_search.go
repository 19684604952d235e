package daemon

import (
	"context"
	"time"

	"looptape/capture"
)

func (s *Server) paneSearch(ctx context.Context, r *request) (any, error) {
	q := capture.SearchRequest{Frame: r.Room, Store: s.store.ID(), Slots: s.archives.inSlot}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	p, err := s.readable(ctx, r)
	if err != nil {
		return nil, err
	}
	var result *capture.SearchResult
	err = r.Wait(ctx, func() (err error) { // for a slot, too
		result, err = capture.Search(ctx, p, q, time.Now)
		return err
	})
	return result, err
}
