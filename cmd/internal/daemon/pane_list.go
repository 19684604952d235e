package daemon

import (
	"context"
	"time"

	"looptape/cmd/internal/manifest"
)

func (s *Server) paneList(_ context.Context, r *request) (any, error) {
	var p struct {
		Session *string `json:"session"`
		State   *string `json:"state"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	type item struct {
		Pane    string     `json:"pane"`
		Window  string     `json:"window"`
		Session string     `json:"session"`
		State   string     `json:"state"`
		Argv    []string   `json:"argv"`
		Started time.Time  `json:"started"`
		Ended   *time.Time `json:"ended,omitempty"`
		Exit    *exit      `json:"exit,omitempty"`
	}
	list := []item{}
	for _, w := range s.registry.allWindows() {
		if !s.mayRead(r.caller, &w) {
			continue
		}
		session := formatID(manifest.Session, w.Session)
		state := w.state()
		if p.Session != nil && *p.Session != session || p.State != nil && *p.State != state {
			continue
		}
		ended, exit := w.ended()
		list = append(list, item{
			formatID(manifest.Pane, w.Pane.ID), formatID(manifest.Window, w.ID), session,
			state, briefList(w.Pane.Argv, manifest.MaxListed), w.Pane.Started, ended, exit,
		})
	}
	return page(r, "panes", list)
}

// ended is when and how the program ended, nil while it runs or if nobody knows.
func (w *window) ended() (*time.Time, *exit) {
	if w.live != nil {
		if e, at, ok := w.live.Exit(); ok {
			at = at.UTC()
			return &at, newExit(e)
		}
	}
	return w.Pane.Ended, w.Pane.Exit
}
