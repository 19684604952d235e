package daemon

import "context"

func (s *Server) paneResize(ctx context.Context, r *request) (any, error) {
	var p struct {
		Cols int `json:"cols"`
		Rows int `json:"rows"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	w, err := s.findLive(r)
	if err != nil {
		return nil, err
	}
	size, err := s.writers.resize(ctx, w.live, p.Cols, p.Rows)
	return struct {
		Offset uint64 `json:"offset"`
		Epoch  uint32 `json:"epoch"`
		Cols   int    `json:"cols"`
		Rows   int    `json:"rows"`
	}{size.Offset, size.Epoch, size.Cols, size.Rows}, liveError(w, err)
}
