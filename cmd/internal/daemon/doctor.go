package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/store"
)

// doctorResult is the result of doctor, but for its lists.
type doctorResult struct {
	Server  string            `json:"server"`
	PID     int               `json:"pid"`
	Started time.Time         `json:"started"`
	Advice  []string          `json:"advice"`
	Store   *storeHealth      `json:"store,omitempty"`
	Verbs   []json.RawMessage `json:"verbs,omitempty"`
	Panes   []json.RawMessage `json:"panes"`
	More    bool              `json:"more,omitempty"`
}

// storeHealth is the store's part of doctor.
type storeHealth struct {
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	Disk  int64  `json:"disk_bytes"`
	Cap   uint64 `json:"cap_bytes"`
	Free  uint64 `json:"free_bytes"`
	// Damaged is how many tables of the database are damaged.
	Damaged int `json:"damaged_tables,omitempty"`
	// FullSince is since when the disk takes nothing.
	FullSince  *time.Time `json:"full_since,omitempty"`
	LastCommit *time.Time `json:"last_commit,omitempty"`
	// SyncSeconds is how long syncs are put off.
	SyncSeconds float64 `json:"sync_interval_seconds,omitempty"`
	// KeepSeconds is how old recordings may become.
	KeepSeconds float64 `json:"keep_for_seconds,omitempty"`

	dir      string
	measured bool   // else nobody knows what Free is
	needs    uint64 // bytes that have to be free on a full disk, 0 if any will do
}

// paneHealth is one pane's part of doctor.
type paneHealth struct {
	Pane    string `json:"pane"`
	State   string `json:"state"`
	Offset  uint64 `json:"offset"`
	Durable uint64 `json:"durable"`
	// Synced is set if syncs are put off.
	Synced *uint64 `json:"synced,omitempty"`
	Lag    uint64  `json:"lag_bytes"`
	// LagSeconds is how long the first of these has waited.
	LagSeconds float64 `json:"lag_seconds"`
	Oldest     uint64  `json:"oldest"`
	Retain     uint64  `json:"retain"`
	Evicted    uint64  `json:"evicted_bytes"`
	Gaps       uint64  `json:"gaps"`
	GapBytes   uint64  `json:"gap_bytes"`
	Dropped    int     `json:"dropped_replies"`
	// NotRecorded is the offset since which nothing is recorded.
	NotRecorded *uint64 `json:"not_recorded_since,omitempty"`
	Fault       string  `json:"fault,omitempty"`

	damaged bool
}

func (s *Server) doctor(_ context.Context, r *request) (any, error) {
	name, _ := s.Server()
	d := doctorResult{Server: name, PID: os.Getpid(), Started: s.born}
	if s.grants.Allows(r.caller, manifest.Manage, grant.Everything) {
		d.Store = s.storeHealth()
	}
	var verbs []verbHealth
	if s.grants.Allows(r.caller, manifest.Read, grant.Everything) {
		verbs = s.verbsHealth()
	}
	panes := []paneHealth{}
	for _, w := range s.registry.allWindows() {
		if s.mayRead(r.caller, &w) {
			panes = append(panes, s.paneHealth(w))
		}
	}
	d.Advice = advise(d.Store, panes, verbs, time.Now())
	raw, err := wire.Marshal(d)
	if err != nil {
		return nil, err
	}
	r.Room -= len(raw) + len(`,"verbs":[]`)
	v, err := page(r, "verbs", verbs)
	if err != nil {
		return nil, err
	}
	for _, item := range v.items {
		r.Room -= len(item) + 1
	}
	p, err := page(r, "panes", panes)
	d.Verbs, d.Panes, d.More = v.items, append([]json.RawMessage{}, p.items...), v.more || p.more
	return d, err
}

func (s *Server) storeHealth() *storeHealth {
	h := &storeHealth{
		State: "ok", Disk: diskUsage(filepath.Join(s.dir, "store")), Cap: s.config.DiskCap, dir: s.dir,
		SyncSeconds: s.config.SyncEvery.Seconds(), KeepSeconds: s.config.KeepFor.Seconds(),
	}
	free, err := s.store.FreeBytes()
	h.Free, h.measured = free, err == nil
	stats := s.store.Stats()
	h.Damaged = stats.Damaged
	if since := stats.FullSince; since != 0 {
		at := time.Unix(0, since).UTC()
		h.State, h.FullSince, h.needs = "full", &at, stats.FullNeeds
	}
	if last := stats.LastCommit; last != 0 {
		at := time.Unix(0, last).UTC()
		h.LastCommit = &at
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
	h := paneHealth{
		Pane: formatID(manifest.Pane, w.Pane.ID), State: w.state(), Retain: w.Pane.Retain,
		Evicted: w.events.evicted.Load(), Gaps: w.events.gaps.Load(), GapBytes: w.events.gapBytes.Load(),
	}
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
		h.damaged = errors.As(err, new(*store.DamagedError))
	}
	if log != nil {
		h.Durable, h.Oldest = log.Durable(), log.Oldest()
		if synced := log.Synced(); s.config.SyncEvery > 0 {
			h.Synced = &synced
		}
		h.Offset = log.End().Offset
		h.Lag = h.Offset - min(h.Durable, h.Offset)
		if since := log.Waiting(); since != 0 {
			h.LagSeconds = max(time.Since(time.Unix(0, since)), 0).Seconds()
		}
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
