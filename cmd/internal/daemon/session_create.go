package daemon

import (
	"context"

	"looptape/cmd/internal/manifest"
	"looptape/store"
)

// announce tells that there is a session.
func (s *Server) announce(made session) {
	s.hub.publish(newEvent(made.object(), evCreated, made.Created, eventData{Name: shortName(made.Name)}))
}

func (s *Server) sessionCreate(_ context.Context, r *request) (any, error) {
	var p struct {
		Name        string `json:"name"`
		Provisional bool   `json:"provisional"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if p.Provisional && s.readOnly {
		return nil, store.ErrReadOnly
	}
	made := s.registry.newSession(p.Name)
	if p.Provisional {
		if err := s.registry.addProvisional(made); err != nil {
			return nil, err
		}
		context.AfterFunc(r.Gone(), func() { s.registry.dropProvisional(made.ID) })
	} else if err := s.registry.addSession(made); err != nil {
		return nil, err
	} else {
		s.announce(made)
	}
	return struct {
		Session string `json:"session"`
		Name    string `json:"name"`
	}{formatID(manifest.Session, made.ID), made.Name}, nil
}
