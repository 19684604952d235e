package daemon

import (
	"encoding/json"
	"errors"
	"time"

	"looptape/store"
)

// daemonKey is the record that numbers the daemons of a state directory: the number
// of the newest. The record of a pane has the number of the daemon that ran its
// program. So a daemon knows which panes are archives since it started, and tells
// of each once: those that the daemons ran which have not been numbered here yet.
const daemonKey = "daemon"

// lastDaemon is the number of the newest daemon; 0 of a new state directory.
func lastDaemon(st *store.Store, damaged func(error)) (n uint64) {
	raw, err := st.Get(daemonKey)
	if err == nil {
		err = json.Unmarshal(raw, &n)
	}
	if err != nil && !errors.Is(err, store.ErrNoRecord) {
		damaged(err)
	}
	return n
}

// announceArchives tells of the panes that earlier daemons ran and have not been
// told of.
func (s *Server) announceArchives() {
	now := time.Now()
	for _, w := range s.registry.allWindows() {
		if w.Pane.Daemon >= s.registry.daemon-1 {
			w.events.tell(evArchived, now, eventData{})
		}
	}
	if !s.readOnly {
		go s.noteDaemon()
	}
}

// noteDaemon makes the number of this daemon durable. It ends with the disk's
// answer, or the store's end; nobody waits for it: without the record the next
// daemon tells of the same panes again.
func (s *Server) noteDaemon() {
	raw, err := json.Marshal(s.registry.daemon)
	if err == nil {
		err = s.store.Put(daemonKey, raw)
	}
	if err != nil {
		s.logger.Error("the number of this daemon is not on disk", "err", err)
	}
}

// lost counts a gap that a crash left in the log of a pane.
func (s *Server) lost(pane, bytes uint64) {
	if w, ok := s.registry.pane(pane); ok {
		w.events.lost(bytes)
	}
}

// evicted is told by the store that the oldest bytes of a pane went.
func (s *Server) evicted(pane, from, to uint64) {
	if w, ok := s.registry.pane(pane); ok {
		bytes := to - from
		w.events.evicted.Add(bytes)
		w.events.tell(evEvicted, time.Now(), eventData{Oldest: &to, Bytes: &bytes})
	}
}
