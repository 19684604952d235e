package daemon

import "time"

// A provisional session is in no list, on no disk and in no event. It becomes a session
// when the first window comes into it; until then it goes with the connection that made
// it. So whoever makes a session for something that may come to nothing, or may be
// killed meanwhile, leaves no empty one; nor does whoever deletes the last of its panes.

// addProvisional makes a session known to whoever has its id, which is not given out
// again, whatever becomes of the session: that is durable first.
func (r *registry) addProvisional(s session) error {
	if err := r.noteNumbers(); err != nil {
		return err
	}
	s.provisional, s.Fleeting = true, true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[s.ID] = &s
	return nil
}

func (r *registry) isProvisional(id uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[id]
	return s != nil && s.provisional
}

// dropProvisional removes a session if it is provisional, and says whether it was.
func (r *registry) dropProvisional(id uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[id]
	if s == nil || !s.provisional || s.claimed {
		return false
	}
	delete(r.sessions, id)
	return true
}

// keepProvisional makes a provisional session a durable one, and says whether it did.
// Of a session that is none, or is gone, it does nothing.
func (r *registry) keepProvisional(id uint64) (kept bool, err error) {
	var s *session
	r.locked(func() {
		if found := r.sessions[id]; found != nil && found.provisional {
			s, found.claimed = found, true // its connection may go now
		}
	})
	if s == nil {
		return false, nil
	}
	err = r.persistSession(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		s.claimed = false
		return false, err
	}
	kept, s.provisional = s.provisional, false
	return kept, nil
}

// enter says that a window is being made in a session, until leave is called.
func (r *registry) enter(id uint64) (leave func()) {
	add := func(n int) {
		r.locked(func() {
			if s := r.sessions[id]; s != nil {
				s.coming += n
			}
		})
	}
	add(1)
	return func() { add(-1) }
}

// dropEmpty removes a session that has no window and gets none, and says whether it
// did; its record stays.
func (r *registry) dropEmpty(id uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropEmptyLocked(id)
}

func (r *registry) dropEmptyLocked(id uint64) bool {
	if s := r.sessions[id]; s != nil && s.coming > 0 {
		return false
	}
	for _, w := range r.windows {
		if w.Session == id {
			return false
		}
	}
	delete(r.sessions, id)
	return true
}

// dropFleeting removes a session that was provisional, if it has no window any more and
// gets none, and says whether it did; its record stays.
func (r *registry) dropFleeting(id uint64) bool {
	var gone *session
	r.locked(func() {
		if s := r.sessions[id]; s != nil && s.Fleeting && !s.provisional && r.dropEmptyLocked(id) {
			gone = s
		}
	})
	if gone != nil && gone.Killed == nil {
		r.hub.publish(newEvent(gone.object(), evClosed, time.Now(), eventData{}))
	}
	return gone != nil
}
