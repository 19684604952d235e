package daemon

import (
	"context"
	"errors"

	"looptape/cmd/internal/attach"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
)

// attachParams are the parameters of pane.attach.
type attachParams struct {
	Mode    string `json:"mode"`
	Cols    int    `json:"cols"`
	Rows    int    `json:"rows"`
	History uint64 `json:"history"`
}

func (s *Server) paneAttach(ctx context.Context, r *request) (result any, err error) {
	var p attachParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	if (p.Cols == 0) != (p.Rows == 0) {
		return nil, &wire.Error{Code: "invalid_params.viewport", Message: "a viewport is cols and rows: give both or neither", Data: map[string]string{"param": "cols"}}
	}
	for ctx.Err() == nil {
		w, err := s.findPane(r)
		if err != nil {
			return nil, err
		}
		a := &attachment{
			server: s, window: w, caller: r.caller, maxFrame: r.MaxFrame(),
			write: p.Mode == "write", history: p.History, wake: make(chan struct{}, 1),
		}
		err = a.begin(ctx, r, p)
		if errors.Is(err, errRetired) {
			continue // it was respawned just now
		}
		return struct {
			Pane    string `json:"pane"`
			Mode    string `json:"mode"`
			State   string `json:"state"`
			Backlog int    `json:"backlog_bytes"`
			Window  int    `json:"window_bytes"`
		}{r.id, p.Mode, w.state(), recorder.MaxBacklog, attach.Window}, err
	}
	return nil, ctx.Err()
}

// begin attaches, up to the answer.
func (a *attachment) begin(ctx context.Context, r *request, p attachParams) (err error) {
	begun := false
	defer func() {
		if !begun { // an error or a panic
			a.leave()
		}
	}()
	if a.write && a.window.live != nil {
		a.writer = a.server.writers.join(a.window.live)
		if err := a.firstViewport(ctx, r, p.Cols, p.Rows); err != nil {
			return err
		}
	}
	if a.window.live == nil { // a program may be about to start there
		if err := r.Wait(ctx, func() error {
			_, err := a.window.archive.ready(ctx)
			return err
		}); err != nil {
			return err
		}
	}
	if a.snapshot, err = a.open(ctx); err != nil {
		return err
	}
	begun = true
	r.undo = a.leave
	r.TakeOver(a.serve)
	return nil
}

// firstViewport gives the pane the size of the viewport that the client came with, if
// it came with one, before the client sees anything.
func (a *attachment) firstViewport(ctx context.Context, r *request, cols, rows int) error {
	if cols == 0 {
		return nil
	}
	sized, err := a.writer.view(ctx, cols, rows)
	if err == nil {
		err = r.Wait(ctx, func() error {
			_, err := a.window.live.AwaitResize(ctx, sized)
			return err
		})
	}
	if ended(err) {
		return nil
	}
	return err
}
