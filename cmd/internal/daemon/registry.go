package daemon

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
	"looptape/replay"
	"looptape/store"
)

// Records of the store, in JSON, under "session/N" and "window/N". A window and
// its pane are one record, so that neither is ever without the other.
const (
	sessionKey = "session/"
	windowKey  = "window/"
)

// recordKey is the key of the record of an object, or of another one, under prefix.
func recordKey(prefix string, id uint64) string { return fmt.Sprintf("%s%d", prefix, id) }

// session is the record of a session.
type session struct {
	ID      uint64     `json:"id"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Killed  *time.Time `json:"killed,omitempty"`
	// Fleeting says that it was provisional, and goes with the last of its panes.
	Fleeting bool `json:"fleeting,omitempty"`

	turn        turn
	provisional bool // it is not on disk, see provisional.go
	claimed     bool // and somebody makes it so
	coming      int  // windows that are being made in it
}

// window is the record of a window and its pane, and what the pane is now.
type window struct {
	ID      uint64     `json:"id"`
	Session uint64     `json:"session"`
	Created time.Time  `json:"created"`
	Killed  *time.Time `json:"killed,omitempty"`
	Pane    paneRecord `json:"pane"`
	Deleted bool       `json:"deleted,omitempty"` // what is left of it is to go, see delete.go

	turn    turn
	ending  *ending        // set while it is made durable
	live    *recorder.Pane // nil for an archive
	archive *archive       // what is read once nothing is recorded any more
	events  *paneEvents    // what tells of the pane
}

// paneRecord is the lasting part of a pane.
type paneRecord struct {
	ID         uint64     `json:"id"`
	Argv       []string   `json:"argv"`
	Cwd        string     `json:"cwd"`
	Cols       int        `json:"cols"` // when it was made
	Rows       int        `json:"rows"`
	Scrollback int        `json:"scrollback"`
	Retain     uint64     `json:"retain"`
	Started    time.Time  `json:"started"`
	Ended      *time.Time `json:"ended,omitempty"`
	Exit       *exit      `json:"exit,omitempty"`
	Daemon     uint64     `json:"daemon,omitempty"` // number of the one that ran the program
	Next       *program   `json:"next,omitempty"`
	Imported   *imported  `json:"imported,omitempty"` // what another recorder recorded, until something runs here
}

// ending is how and when a program ended.
type ending struct {
	how *exit
	at  *time.Time
}

// record is w as it is to be on disk.
func (w *window) record() window {
	record := *w
	if e := w.ending; e != nil {
		record.Pane.Exit, record.Pane.Ended = e.how, e.at
	}
	return record
}

// imported is what another recorder said of what it recorded.
type imported struct {
	Command string `json:"command,omitempty"` // as a shell takes it
	Title   string `json:"title,omitempty"`
	Term    string `json:"term,omitempty"`
}

// program is what a pane is about to run in place of the program that has ended.
// It does so once the log has a Respawn mark at the position, see settle.
type program struct {
	Argv    []string  `json:"argv"`
	Cwd     string    `json:"cwd"`
	Started time.Time `json:"started"`
	Offset  uint64    `json:"offset"`
	Seq     uint64    `json:"seq"`
	Daemon  uint64    `json:"daemon"` // number of this one
}

// exit is how a program ended, as results show it: exactly one is set.
type exit struct {
	Code   *int   `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"`
}

func newExit(e replay.Exit) *exit {
	if e.Signaled {
		return &exit{Signal: recorder.SignalName(e.Number)}
	}
	return &exit{Code: &e.Number}
}

// registry holds the sessions, windows and panes of a state directory. What it
// hands out are copies, but for live and archive, which look after themselves.
type registry struct {
	store  *store.Store
	hub    *hub
	daemon uint64 // number of this daemon, see archived.go; fixed

	noting  turn      // to put the numbers
	deleted []*window // by an earlier daemon, which did not get to the end

	mu       sync.Mutex
	sessions map[uint64]*session
	windows  map[uint64]*window
	panes    map[uint64]*window // by the number of the pane
	next     struct{ session, window, pane uint64 }
}

// locked runs f while nobody else reads or changes r, whatever becomes of f.
func (r *registry) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// loadRegistry reads all records. One that is damaged costs its session or its
// window, which damaged is told, and nothing else.
func loadRegistry(st *store.Store, hub *hub, damaged func(error)) (*registry, error) {
	r := &registry{
		store:    st,
		hub:      hub,
		noting:   newTurn(),
		daemon:   lastDaemon(st, damaged) + 1,
		sessions: make(map[uint64]*session),
		windows:  make(map[uint64]*window),
		panes:    make(map[uint64]*window),
	}
	if err := r.loadNumbers(damaged); err != nil {
		return nil, err
	}
	err := readRecords(st, sessionKey, damaged, func(s *session) {
		s.turn = newTurn()
		r.sessions[s.ID] = s
		r.next.session = max(r.next.session, s.ID+1)
	})
	if err != nil {
		return nil, err
	}
	logs, err := existing(st)
	if err != nil {
		return nil, err
	}
	for pane := range logs { // also of windows whose record is damaged
		r.next.pane = max(r.next.pane, pane+1)
		r.next.window = max(r.next.window, pane+1)
	}
	return r, readRecords(st, windowKey, damaged, func(w *window) {
		r.next.session = max(r.next.session, w.Session+1)
		r.next.window = max(r.next.window, w.ID+1)
		r.next.pane = max(r.next.pane, w.Pane.ID+1)
		if w.Deleted {
			r.deleted = append(r.deleted, w)
		} else if logs[w.Pane.ID] { // else the daemon ended before the program began
			w.turn, w.events = newTurn(), &paneEvents{hub: hub, pane: w.object(manifest.Pane)}
			r.windows[w.ID], r.panes[w.Pane.ID] = w, w
			if err := r.settle(w); err != nil {
				damaged(err)
			}
		}
	})
}

// readRecords hands the records under a prefix to add.
func readRecords[T any](st *store.Store, prefix string, damaged func(error), add func(*T)) error {
	for record, err := range st.Scan(prefix) {
		into := new(T)
		if err == nil {
			err = json.Unmarshal(record.Value, into)
		}
		var damage *store.DamagedError
		var syntax *json.SyntaxError
		switch {
		case err == nil:
			add(into)
		case errors.As(err, &damage), errors.As(err, &syntax):
			damaged(fmt.Errorf("the record %q: %w", record.Key, err))
		default:
			return err
		}
	}
	return nil
}

// existing is the set of panes that have a log.
func existing(st *store.Store) (map[uint64]bool, error) {
	panes, err := st.Panes()
	logs := make(map[uint64]bool, len(panes))
	for _, pane := range panes {
		logs[pane] = true
	}
	return logs, err
}

// putPatience is how long a record may take to become durable.
const putPatience = 10 * time.Second

// put makes a record durable that nobody else knows yet. On a disk that takes nothing
// it gives up after a while; the record may still get there.
func (r *registry) put(key string, id uint64, record any) error {
	return r.putRecord(recordKey(key, id), record)
}

func (r *registry) putRecord(key string, record any) error {
	return r.putWhen(nil, key, func() any { return record })
}

// putWhen is put of what take returns when its turn comes.
func (r *registry) putWhen(t turn, key string, take func() any) error {
	return patiently(func() error { return r.write(t, key, take) })
}

// patiently runs change, which waits for the disk, and waits for it as long as for a
// record. Behind that the error is errNoStorage, and change goes on by itself: it ends
// when the disk takes it, or with the store.
func patiently(change func() error) error {
	done := make(chan error, 1)
	go func() { done <- change() }()
	patience := time.NewTimer(putPatience)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return errNoStorage
	}
}

// turn holds one, or is nil. Who took it puts the record it belongs to, as that is
// then: so the store never gets an older state behind a newer one.
type turn chan struct{}

func newTurn() turn {
	t := make(turn, 1)
	t <- struct{}{}
	return t
}

var errNoStorage = &wire.Error{Code: "unavailable.storage", Message: "the disk takes nothing: free some space, 'looptape doctor' shows how it is"}

// write ends when the store has taken the record, or is closed or fails.
func (r *registry) write(t turn, key string, take func() any) error {
	if t != nil {
		<-t
		defer func() { t <- struct{}{} }()
	}
	value, err := json.Marshal(take())
	if err == nil {
		err = r.store.Put(key, value)
	}
	return err
}

// newSession numbers a session. It is nobody's until addSession. An empty name is its
// id.
func (r *registry) newSession(name string) session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := session{ID: r.next.session, Name: name, Created: time.Now().UTC(), turn: newTurn()}
	r.next.session++
	if s.Name == "" {
		s.Name = formatID(manifest.Session, s.ID)
	}
	return s
}

// addSession makes a session durable, and known.
func (r *registry) addSession(s session) error {
	if err := r.put(sessionKey, s.ID, s); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions[s.ID] = &s
	return nil
}

// newWindow numbers a window and its pane. It is nobody's until addWindow.
func (r *registry) newWindow(sessionID uint64, pane paneRecord) window {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := window{ID: r.next.window, Session: sessionID, Created: pane.Started, Pane: pane, turn: newTurn()}
	w.Pane.ID, w.Pane.Daemon = r.next.pane, r.daemon
	w.events = &paneEvents{hub: r.hub, pane: w.object(manifest.Pane)}
	r.next.window++
	r.next.pane++
	return w
}

// forget removes the record of a window that came to nothing.
func (r *registry) forget(id uint64) error {
	return r.store.Delete(recordKey(windowKey, id))
}

// addWindow makes a window known, unless its session was killed meanwhile.
func (r *registry) addWindow(w window) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if se := r.sessions[w.Session]; se == nil || se.Killed != nil {
		return false
	}
	r.windows[w.ID], r.panes[w.Pane.ID] = &w, &w
	return true
}

// recordExit notes how the program of a window ended: durably first, so that an
// exit that anybody saw outlives a crash. On a disk that takes nothing it is
// shown all the same.
func (r *registry) recordExit(id uint64, how *exit, at *time.Time) error {
	err := r.updateWindow(id, func(w *window) { w.ending = &ending{how, at} })
	r.locked(func() {
		if w := r.windows[id]; w != nil {
			*w = w.record()
			w.ending = nil
		}
	})
	return err
}

// setArchive says what the pane of a window is read from when it is not live.
func (r *registry) setArchive(id uint64, a *archive) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.windows[id]; w != nil {
		w.archive = a
	}
}

// session returns a session that has not been killed.
func (r *registry) session(id uint64) (session, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[id]
	if !ok || s.Killed != nil {
		return session{}, false
	}
	return *s, true
}

// window returns a window that has not been killed.
func (r *registry) window(id uint64) (window, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.windows[id]
	if !ok || w.Killed != nil {
		return window{}, false
	}
	return *w, true
}

// pane returns the window of a pane, killed or not.
func (r *registry) pane(id uint64) (window, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.panes[id]
	if !ok {
		return window{}, false
	}
	return *w, true
}

// updateSession changes a session and makes the change durable.
func (r *registry) updateSession(id uint64, change func(*session)) error {
	var s *session
	r.locked(func() {
		if s = r.sessions[id]; s != nil {
			change(s)
		}
	})
	if s == nil { // it was provisional: there is nothing to change
		return nil
	}
	return r.persistSession(s)
}

func (r *registry) persistSession(s *session) error {
	return r.putWhen(s.turn, recordKey(sessionKey, s.ID), func() any {
		r.mu.Lock()
		defer r.mu.Unlock()
		return *s
	})
}

// updateWindow changes a window and makes the change durable.
func (r *registry) updateWindow(id uint64, change func(*window)) error {
	var w *window
	var its turn
	r.locked(func() {
		if w = r.windows[id]; w != nil {
			change(w)
			its = w.turn
		}
	})
	if w == nil { // deleted: there is nothing to change
		return nil
	}
	return r.putWhen(its, recordKey(windowKey, id), func() any {
		r.mu.Lock()
		defer r.mu.Unlock()
		return w.record()
	})
}

// allSessions lists the sessions that have not been killed, oldest first.
func (r *registry) allSessions() []session {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []session
	for _, s := range r.sessions {
		if s.Killed == nil && !s.provisional {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b session) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// allWindows lists all windows, killed ones included, oldest first.
func (r *registry) allWindows() []window {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []window
	for _, w := range r.windows {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b window) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
