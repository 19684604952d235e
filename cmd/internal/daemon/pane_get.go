package daemon

import (
	"context"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/manifest"
	"looptape/replay"
)

// paneInfo is the result of pane.get.
type paneInfo struct {
	Pane    string     `json:"pane"`
	Window  string     `json:"window"`
	Session string     `json:"session"`
	State   string     `json:"state"`
	Argv    []string   `json:"argv"`
	Cwd     string     `json:"cwd"`
	Title   string     `json:"title"`
	Cols    int        `json:"cols"`
	Rows    int        `json:"rows"`
	Screen  string     `json:"screen"`
	Epoch   uint32     `json:"epoch"`
	Offset  uint64     `json:"offset"`
	Durable uint64     `json:"durable"`
	Oldest  uint64     `json:"oldest"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Exit    *exit      `json:"exit,omitempty"`
}

func (s *Server) paneGet(ctx context.Context, r *request) (any, error) {
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	p, err := s.sourceFor(ctx, r, w)
	if err != nil {
		return nil, err
	}
	info := paneInfo{
		Pane: r.id, Window: formatID(manifest.Window, w.ID), Session: formatID(manifest.Session, w.Session),
		State: w.state(), Argv: w.Pane.Argv, Cwd: w.Pane.Cwd, Started: w.Pane.Started,
	}
	info.Ended, info.Exit = w.ended()
	err = p.View(ctx, func(t *replay.Terminal, _ bool) {
		b := t.Bounds()
		info.Title, info.Cols, info.Rows = t.Title(), b.Cols, b.Rows
		info.Screen, info.Epoch, info.Offset = b.Screen, b.Epoch, t.Offset()
		if i := w.Pane.Imported; i != nil && info.Title == "" {
			info.Title = i.Title
		}
		if cwd := t.Cwd(); cwd != "" {
			info.Cwd = capture.Directory(cwd)
		}
		// Between two batches, so that durable is never above offset.
		info.Durable, info.Oldest = p.Log().Durable(), p.Log().Oldest()
	})
	return info, err
}
