package daemon

import (
	"encoding/json"
	"errors"

	"looptape/store"
)

// A pane is deleted in four steps, each durable before the next: its numbers are
// noted, so that they are not given out again; its record is marked, after which it is
// there for nobody; its log goes, and its session if that goes with it; its record goes.
// A daemon that finds a marked record takes the last two.

// numbersKey is the record of the numbers that come next, as far as no record or log
// shows them any more.
const numbersKey = "numbers"

// numbers is that record.
type numbers struct {
	Session uint64 `json:"session,omitempty"`
	Window  uint64 `json:"window"`
	Pane    uint64 `json:"pane"`
}

func (r *registry) loadNumbers(damaged func(error)) error {
	var n numbers
	raw, err := r.store.Get(numbersKey)
	if err == nil {
		err = json.Unmarshal(raw, &n)
	}
	r.next.session, r.next.window, r.next.pane = n.Session, n.Window, n.Pane
	var damage *store.DamagedError
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, store.ErrNoRecord):
		return nil
	case errors.As(err, &damage), errors.As(err, &syntax):
		damaged(err)
		return nil
	}
	return err
}

// noteNumbers makes it lasting which numbers have been given out, those of provisional
// sessions and of what is being deleted among them.
func (r *registry) noteNumbers() error {
	return r.putWhen(r.noting, numbersKey, func() any {
		r.mu.Lock()
		defer r.mu.Unlock()
		return numbers{r.next.session, r.next.window, r.next.pane}
	})
}

// markDeleted makes it lasting that a window and its pane are deleted. Then nobody
// finds them any more. On a full disk there is space for that.
func (r *registry) markDeleted(id uint64) error {
	defer r.store.Relieve()()
	if err := r.noteNumbers(); err != nil {
		return err
	}
	if err := r.updateWindow(id, func(w *window) { w.Deleted = true }); err != nil {
		r.updateWindow(id, func(w *window) { w.Deleted = false })
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.windows[id]; w != nil {
		delete(r.panes, w.Pane.ID)
		delete(r.windows, id)
	}
	return nil
}

// remove takes away the log of a pane, if there is one, and then records. On a full disk
// it uses what is kept for that. It ends with the disk's answer, or the store's end.
func (r *registry) remove(pane uint64, keys ...string) error {
	defer r.store.Relieve()()
	err := r.store.Remove(pane)
	if errors.Is(err, store.ErrNoLog) {
		err = nil
	}
	for _, key := range keys {
		if err == nil {
			err = r.store.Delete(key)
		}
	}
	return err
}

// leave takes a deleted window, which nobody finds any more, out of its session, and that
// away if it goes with it. It returns the keys of the records that are left.
func (r *registry) leave(w window) (keys []string) {
	if r.dropFleeting(w.Session) {
		keys = append(keys, recordKey(sessionKey, w.Session))
	}
	return append(keys, recordKey(windowKey, w.ID))
}

// sweep removes what is left of a pane that nobody sees. Nobody waits for it: what it does
// not get done, the next daemon does.
func (s *Server) sweep(pane uint64, keys ...string) {
	if err := s.registry.remove(pane, keys...); err != nil && !errors.Is(err, store.ErrClosed) {
		s.logger.Error("what is left of a deleted pane, or of an import, stays for now", "pane", pane, "err", err)
	}
}

// sweepDeleted has what earlier daemons left of deleted panes removed, of which nobody
// sees anything.
func (s *Server) sweepDeleted() {
	if s.readOnly {
		return
	}
	for _, w := range s.registry.deleted {
		go s.sweep(w.Pane.ID, s.registry.leave(*w)...)
	}
	s.registry.deleted = nil
}
