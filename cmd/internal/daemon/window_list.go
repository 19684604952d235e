package daemon

import (
	"context"
	"time"

	"looptape/cmd/internal/manifest"
)

func (s *Server) windowList(_ context.Context, r *request) (any, error) {
	var p struct {
		Session *string `json:"session"`
	}
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	type item struct {
		Window  string    `json:"window"`
		Session string    `json:"session"`
		Pane    string    `json:"pane"`
		Created time.Time `json:"created"`
	}
	list := []item{}
	for _, w := range s.registry.allWindows() {
		if !s.mayReadWindow(r.caller, &w) {
			continue
		}
		session := formatID(manifest.Session, w.Session)
		if w.Killed != nil || p.Session != nil && *p.Session != session {
			continue
		}
		list = append(list, item{formatID(manifest.Window, w.ID), session, formatID(manifest.Pane, w.Pane.ID), w.Created})
	}
	return page(r, "windows", list)
}
