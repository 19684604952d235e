package daemon

import (
	"context"

	"looptape/cmd/internal/wire"
)

func (s *Server) paneWrite(ctx context.Context, r *request) (any, error) {
	var p struct {
		Text *string `json:"text"`
		Data *[]byte `json:"data"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	w, err := s.findLive(r)
	if err != nil {
		return nil, err
	}
	var input []byte
	switch {
	case (p.Text == nil) == (p.Data == nil):
		return nil, &wire.Error{Code: "invalid_params.write", Message: "pane.write takes exactly one of text and data", Data: map[string]string{"param": "text"}}
	case p.Text != nil:
		input = []byte(*p.Text)
	default:
		input = *p.Data
	}
	offset, err := w.live.Write(ctx, input)
	return map[string]uint64{"offset": offset}, liveError(w, err)
}
