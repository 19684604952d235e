package daemon

import "context"

func (s *Server) grantRevoke(_ context.Context, r *request) (any, error) {
	var p struct {
		Name string `json:"name"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if err := s.grants.Revoke(p.Name); err != nil {
		return nil, grantError(p.Name, err)
	}
	return map[string]string{"name": p.Name}, nil
}
