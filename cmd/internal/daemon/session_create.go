package daemon

import (
	"context"

	"looptape/cmd/internal/manifest"
)

func (s *Server) sessionCreate(_ context.Context, r *request) (any, error) {
	var p struct {
		Name string `json:"name"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	made, err := s.registry.addSession(p.Name)
	if err != nil {
		return nil, err
	}
	s.hub.publish(newEvent(made.object(), evCreated, made.Created, eventData{Name: shortName(made.Name)}))
	return struct {
		Session string `json:"session"`
		Name    string `json:"name"`
	}{formatID(manifest.Session, made.ID), made.Name}, nil
}
