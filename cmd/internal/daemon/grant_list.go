package daemon

import "context"

func (s *Server) grantList(_ context.Context, r *request) (any, error) {
	return page(r, "grants", s.grants.List())
}
