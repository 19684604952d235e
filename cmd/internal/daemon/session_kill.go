package daemon

import (
	"context"
	"sync"
	"time"

	"looptape/cmd/internal/manifest"
)

func (s *Server) sessionKill(ctx context.Context, r *request) (any, error) {
	found, err := s.findSession(r)
	if err != nil {
		return nil, err
	}
	answer := map[string]string{"session": formatID(manifest.Session, found.ID)}
	if s.registry.dropProvisional(found.ID) {
		return answer, nil
	}
	now, first := time.Now().UTC(), false
	if err := s.registry.updateSession(found.ID, func(se *session) {
		if first = se.Killed == nil; first {
			se.Killed = &now
		}
	}); err != nil {
		return nil, err
	}
	if first {
		s.hub.publish(newEvent(found.object(), evClosed, now, eventData{}))
	}
	var kills sync.WaitGroup
	var mu sync.Mutex
	for _, w := range s.registry.allWindows() {
		if w.Session == found.ID && w.Killed == nil {
			kills.Go(func() {
				if e := s.killWindow(ctx, w); e != nil {
					mu.Lock()
					err = e
					mu.Unlock()
				}
			})
		}
	}
	kills.Wait()
	return answer, err
}
