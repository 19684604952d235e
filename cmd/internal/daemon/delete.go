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
// finds them any more.
func (r *registry) markDeleted(id uint64) error {
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

// erase takes away what is left of a deleted window.
func (r *registry) erase(w window) error {
	err := r.store.Remove(w.Pane.ID)
	if err == nil || errors.Is(err, store.ErrNoLog) {
		err = r.dropFleeting(w.Session)
	}
	if err == nil {
		err = r.forget(w.ID)
	}
	return err
}

// eraseDeleted does so for those that an earlier daemon did not get to.
func (r *registry) eraseDeleted() (err error) {
	for _, w := range r.deleted {
		err = errors.Join(err, r.erase(*w))
	}
	r.deleted = nil
	return err
}
