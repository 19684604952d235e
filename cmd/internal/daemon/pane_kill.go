package daemon

import (
	"context"

	"looptape/cmd/internal/wire"
	"looptape/recorder"
)

func (s *Server) paneKill(ctx context.Context, r *request) (any, error) {
	var p struct {
		Signal *string `json:"signal"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	w, err := s.findLive(r)
	if err != nil {
		return nil, err
	}
	if p.Signal == nil {
		err := w.live.HangUp(ctx)
		s.exitKnown(ctx, w)
		return map[string]string{"pane": r.id}, liveError(w, err)
	}
	sig, ok := recorder.ParseSignal(*p.Signal)
	if !ok {
		return nil, &wire.Error{Code: "invalid_params.signal", Message: "there is no signal " + *p.Signal, Data: map[string]string{"param": "signal"}}
	}
	return map[string]string{"pane": r.id}, liveError(w, w.live.Signal(ctx, sig))
}
