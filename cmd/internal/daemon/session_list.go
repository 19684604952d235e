package daemon

import (
	"context"
	"time"

	"looptape/cmd/internal/manifest"
)

func (s *Server) sessionList(_ context.Context, r *request) (any, error) {
	type item struct {
		Session string    `json:"session"`
		Name    string    `json:"name"`
		Created time.Time `json:"created"`
		Windows []string  `json:"windows"`
	}
	windows := make(map[uint64][]string)
	for _, w := range s.registry.allWindows() {
		if w.Killed == nil && s.mayReadWindow(r.caller, &w) {
			windows[w.Session] = append(windows[w.Session], formatID(manifest.Window, w.ID))
		}
	}
	list := []item{}
	for _, se := range s.registry.allSessions() {
		if s.mayReadSession(r.caller, &se) {
			list = append(list, item{formatID(manifest.Session, se.ID), brief(se.Name, manifest.MaxName), se.Created, append([]string{}, windows[se.ID]...)})
		}
	}
	return page(r, "sessions", list)
}
