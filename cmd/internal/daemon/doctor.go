package daemon

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/store"
)

// storeHealth is the store's part of doctor.
type storeHealth struct {
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	Disk  int64  `json:"disk_bytes"`
	Free  uint64 `json:"free_bytes"`
	// FullSince is since when the disk takes nothing.
	FullSince *time.Time `json:"full_since,omitempty"`
}

// paneHealth is one pane's part of doctor.
type paneHealth struct {
	Pane    string `json:"pane"`
	State   string `json:"state"`
	Offset  uint64 `json:"offset"`
	Durable uint64 `json:"durable"`
	Oldest  uint64 `json:"oldest"`
	Dropped int    `json:"dropped_replies"`
	// NotRecorded is the offset since which nothing is recorded.
	NotRecorded *uint64 `json:"not_recorded_since,omitempty"`
	Fault       string  `json:"fault,omitempty"`
}

func (s *Server) doctor(_ context.Context, r *request) (any, error) {
	name, _ := s.Server()
	head := struct {
		Server  string       `json:"server"`
		PID     int          `json:"pid"`
		Started time.Time    `json:"started"`
		Store   *storeHealth `json:"store,omitempty"`
	}{name, os.Getpid(), s.born, nil}
	if s.grants.Allows(r.caller, manifest.Manage, grant.Everything) {
		head.Store = s.storeHealth()
	}
	panes := []paneHealth{}
	for _, w := range s.registry.allWindows() {
		if s.mayRead(r.caller, &w) {
			panes = append(panes, s.paneHealth(w))
		}
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	r.Room -= len(raw) // an object: the list's braces become its comma and end
	l, err := page(r, "panes", panes)
	if err != nil {
		return nil, err
	}
	tail, err := l.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return json.RawMessage(append(append(raw[:len(raw)-1], ','), tail[1:]...)), nil
}

func (s *Server) storeHealth() *storeHealth {
	h := &storeHealth{State: "ok", Disk: diskUsage(filepath.Join(s.dir, "store"))}
	h.Free, _ = s.store.FreeBytes() // 0 if the system does not say
	if since := s.store.Stats().FullSince; since != 0 {
		at := time.Unix(0, since).UTC()
		h.State, h.FullSince = "full", &at
	}
	if s.readOnly {
		h.State = "read-only"
	}
	if err := s.store.Err(); err != nil {
		h.State, h.Error = "failed", err.Error()
	}
	return h
}

// paneHealth says how a pane is, from its log alone: it hydrates nothing.
func (s *Server) paneHealth(w window) paneHealth {
	h := paneHealth{Pane: formatID(manifest.Pane, w.Pane.ID), State: w.state()}
	var log *store.Log
	var err error
	if w.live != nil {
		log, h.Dropped, err = w.live.Log(), w.live.DroppedReplies(), w.live.Fault()
		if from, ok := w.live.NotRecorded(); ok {
			h.NotRecorded = &from
		}
	} else {
		log, err = s.store.Log(w.Pane.ID)
	}
	if err != nil {
		h.Fault = err.Error()
	}
	if log != nil {
		h.Durable, h.Oldest = log.Durable(), log.Oldest()
		h.Offset = log.End().Offset
	}
	return h
}

// diskUsage adds up the sizes of the files below dir. Files come and go
// meanwhile.
func diskUsage(dir string) (total int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}
