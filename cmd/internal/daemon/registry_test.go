package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"looptape/store"
)

// newTestRegistry is an empty registry on a store in memory.
func newTestRegistry(t *testing.T) (*store.Store, *registry) {
	t.Helper()
	st, err := store.Open("s", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	r, err := loadRegistry(st, nil, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return st, r
}

// onDisk reads a record.
func onDisk[T any](t *testing.T, st *store.Store, prefix string, id uint64) (into T) {
	t.Helper()
	raw, err := st.Get(fmt.Sprintf("%s%d", prefix, id))
	if err == nil {
		err = json.Unmarshal(raw, &into)
	}
	if err != nil {
		t.Error(err)
	}
	return into
}

// TestGone: what is to change something that is gone changes nothing, and a change that
// fails leaves the registry as usable as it was.
func TestGone(t *testing.T) {
	_, r := newTestRegistry(t)
	s := r.newSession("")
	if err := r.addProvisional(s); err != nil {
		t.Fatal(err)
	}
	w := r.newWindow(s.ID, paneRecord{})
	if !r.addWindow(w) {
		t.Fatal("the window is refused")
	}
	code := 0
	for what, do := range map[string]func(){
		"session":      func() { r.updateSession(99, func(s *session) { s.Name = "x" }) },
		"window":       func() { r.updateWindow(99, func(w *window) { w.Session = 1 }) },
		"exit":         func() { r.recordExit(99, &exit{Code: &code}, &time.Time{}) },
		"archive":      func() { r.setArchive(99, nil) },
		"provisional":  func() { r.keepProvisional(99); r.dropProvisional(99); r.enter(99)() },
		"deletion":     func() { r.markDeleted(99) },
		"proposal":     func() { r.propose(99, &program{}) },
		"a panic":      func() { r.updateWindow(w.ID, func(*window) { panic("test") }) },
		"another":      func() { r.updateSession(s.ID, func(*session) { panic("test") }) },
		"a respawn":    func() { r.respawned(99, nil, nil) },
		"not proposed": func() { r.respawned(w.ID, nil, nil) },
	} {
		func() {
			defer func() { recover() }()
			do()
		}()
		if !r.mu.TryLock() {
			t.Fatalf("%s: the registry stays locked", what)
		}
		r.mu.Unlock()
	}
}

// TestLatestOnDisk: of changes at once, each is on disk when it is done, whichever
// came first, and stays there.
func TestLatestOnDisk(t *testing.T) {
	st, r := newTestRegistry(t)
	now, code := time.Unix(1, 0).UTC(), 7
	for range 200 {
		s := r.newSession("")
		if err := r.addProvisional(s); err != nil {
			t.Fatal(err)
		}
		w := r.newWindow(s.ID, paneRecord{Argv: []string{"x"}})
		if !r.addWindow(w) {
			t.Fatal("the window is refused")
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := r.keepProvisional(s.ID); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if err := r.recordExit(w.ID, &exit{Code: &code}, &now); err != nil {
				t.Error(err)
			}
			if p := onDisk[window](t, st, windowKey, w.ID).Pane; p.Exit == nil || *p.Exit.Code != 7 || p.Ended == nil {
				t.Errorf("an exit that is known is not on disk: %+v", p)
			}
		})
		all.Go(func() {
			if err := r.updateSession(s.ID, func(s *session) { s.Killed = &now }); err != nil {
				t.Error(err)
			}
			if onDisk[session](t, st, sessionKey, s.ID).Killed == nil {
				t.Error("a killed session is not so on disk")
			}
		})
		all.Go(func() {
			if err := r.updateWindow(w.ID, func(w *window) { w.Killed = &now }); err != nil {
				t.Error(err)
			}
			for range 3 {
				if onDisk[window](t, st, windowKey, w.ID).Killed == nil {
					t.Error("a killed window is not so on disk")
				}
			}
		})
		all.Wait()
		if onDisk[session](t, st, sessionKey, s.ID).Killed == nil {
			t.Error("a killed session comes back")
		}
		w, _ = r.pane(w.Pane.ID)
		if disk := onDisk[window](t, st, windowKey, w.ID); w.Pane.Exit == nil || disk.Killed == nil || disk.Pane.Exit == nil {
			t.Errorf("%+v, on disk %+v", w, disk)
		}
		if t.Failed() {
			return
		}
	}
}

// TestProposals: what becomes of a proposal does not touch the one behind it, which
// whoever saw the program end may have made already.
func TestProposals(t *testing.T) {
	st, r := newTestRegistry(t)
	s := r.newSession("")
	if err := r.addProvisional(s); err != nil {
		t.Fatal(err)
	}
	w := r.newWindow(s.ID, paneRecord{Argv: []string{"first"}})
	if !r.addWindow(w) {
		t.Fatal("the window is refused")
	}
	second, third := &program{Argv: []string{"second"}}, &program{Argv: []string{"third"}}
	check := func(at, runs string, next *program) {
		t.Helper()
		known, _ := r.pane(w.Pane.ID)
		for where, p := range map[string]paneRecord{"known": known.Pane, "on disk": onDisk[window](t, st, windowKey, w.ID).Pane} {
			if p.Argv[0] != runs || (p.Next == nil) != (next == nil) || next != nil && p.Next.Argv[0] != next.Argv[0] {
				t.Errorf("%s, %s: %+v", at, where, p)
			}
		}
	}
	if err := r.propose(w.ID, second); err != nil {
		t.Fatal(err)
	}
	r.respawned(w.ID, nil, nil)
	if err := r.propose(w.ID, third); err != nil {
		t.Fatal(err)
	}
	if err := r.concluded(w.ID, second); err != nil {
		t.Fatal(err)
	}
	check("the second runs", "second", third)
	if got := r.respawned(w.ID, nil, nil); got.Pane.Argv[0] != "third" {
		t.Errorf("shown: %+v", got.Pane)
	}
	if err := r.concluded(w.ID, third); err != nil {
		t.Fatal(err)
	}
	check("the third runs", "third", nil)
	if err := r.propose(w.ID, second); err != nil { // it cannot be started
		t.Fatal(err)
	}
	if err := r.concluded(w.ID, second); err != nil {
		t.Fatal(err)
	}
	check("behind a failure", "third", nil)
}

// TestDropEmpty: a session in which a window is being made is not empty.
func TestDropEmpty(t *testing.T) {
	_, r := newTestRegistry(t)
	s := r.newSession("")
	if err := r.addProvisional(s); err != nil {
		t.Fatal(err)
	}
	leave := r.enter(s.ID)
	if r.dropEmpty(s.ID) {
		t.Error("a session goes in which a window is made")
	}
	leave()
	if !r.dropEmpty(s.ID) {
		t.Error("an empty one stays")
	}
}

// TestKillsAtOnce: whoever else kills a session, kills of it end, and so does what
// comes behind them.
func TestKillsAtOnce(t *testing.T) {
	d := startSubject(t)
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		var s struct{ Session string }
		d.must("session.create", map[string]any{"provisional": round%4 != 0}, &s)
		var kills sync.WaitGroup
		for range 16 {
			kills.Go(func() {
				if code := d.outcome(d.clients[0], "session.kill", map[string]any{"session": s.Session}, nil); code != "" && code != "not_found.session" {
					t.Error(code)
				}
			})
		}
		kills.Wait()
		d.must("session.list", nil, nil)
		if code := d.outcome(d.clients[0], "session.kill", map[string]any{"session": s.Session}, nil); code != "not_found.session" {
			t.Errorf("a kill of %s, which was killed: %q", s.Session, code)
		}
	}
}

// TestNumbersStay: no id that somebody was told comes again in a state directory, even
// that of a session that never was on disk, or that went, with the daemon killed at any
// point behind the answer.
func TestNumbersStay(t *testing.T) {
	fs := store.MemFS()
	open := func() (*store.Store, *registry) {
		st, err := store.Open("s", store.Options{FS: fs, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := loadRegistry(st, nil, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		return st, r
	}
	told := map[uint64]string{}
	for name, live := range map[string]func(*store.Store, *registry, session) error{
		"durable":     func(_ *store.Store, r *registry, s session) error { return r.addSession(s) },
		"provisional": func(_ *store.Store, r *registry, s session) error { return r.addProvisional(s) },
		"dropped": func(_ *store.Store, r *registry, s session) error {
			err := r.addProvisional(s)
			r.dropProvisional(s.ID)
			return err
		},
		"kept, and an import dropped it": func(st *store.Store, r *registry, s session) error {
			err := r.addProvisional(s)
			if err == nil {
				_, err = r.keepProvisional(s.ID)
			}
			if err == nil && r.dropEmpty(s.ID) {
				err = st.Delete(fmt.Sprintf("%s%d", sessionKey, s.ID))
			}
			return err
		},
		"beside a deletion": func(st *store.Store, r *registry, s session) error {
			err := r.addProvisional(s)
			w := r.newWindow(s.ID, paneRecord{})
			if err == nil && r.addWindow(w) {
				err = r.markDeleted(w.ID)
			}
			return err
		},
	} {
		for range 2 {
			st, r := open()
			s := r.newSession("")
			if before, ok := told[s.ID]; ok {
				t.Errorf("%s: s%d comes again, which was %s", name, s.ID, before)
			}
			told[s.ID] = name
			if err := live(st, r, s); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
