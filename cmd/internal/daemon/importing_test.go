package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/wire"
	"looptape/store"
)

// TestImportPanics: an import in which looptape fails is over, whether it says an error
// or panics, and makes room for others.
func TestImportPanics(t *testing.T) {
	broken := errors.New("broken")
	for name, fail := range map[string]func() error{
		"error": func() error { return broken },
		"panic": func() error { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{imports: newImports()}
			i := &importing{server: s, gone: t.Context()}
			i.reader = capture.CastReader{
				Head:  func(capture.CastHead) error { return nil },
				Event: func(capture.CastEvent) error { return fail() },
			}
			s.imports.begin(i, t.Context())
			feed := func(data string) (err error) {
				defer func() {
					if recover() != nil {
						err = broken
					}
				}()
				return i.with(t.Context(), func() error { return i.take(t.Context(), []byte(data), false) })
			}
			if err := feed(castHead); err != nil {
				t.Fatal(err)
			}
			if _, err := s.imports.find(i.id, 0, t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := feed("[0.1, \"o\", \"x\"]\n"); err == nil {
				t.Fatal("the event was taken")
			}
			if err := feed("[0.2, \"o\", \"y\"]\n"); !errors.Is(err, noImport) {
				t.Errorf("behind that: %v, want %v", err, noImport)
			}
			if s.imports.underWay != 0 {
				t.Error("it holds a place still")
			}
		})
	}
}

// TestImportFullDisk: an import whose log cannot be made, or whose record cannot be taken
// back, is answered all the same, and nothing of it stays.
func TestImportFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		before, then string // pieces of the file; the disk is full in the middle of the last
		code         string
	}{
		"no log":     {"", castHead, "unavailable.storage"},
		"no session": {castHead, "[0.1, \"o\", \"x\"]\n", "not_found.session"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := store.NewFaults(store.MemFS())
				st := openTestStore(t, faults)
				defer st.Close()
				s := newServer(Config{Logger: slog.New(slog.DiscardHandler)}, limits{}, st, false)
				var err error
				if s.registry, err = loadRegistry(st, s.hub, func(err error) { t.Error(err) }); err != nil {
					t.Fatal(err)
				}
				i := &importing{server: s, session: 7, gone: t.Context(), retain: 4 << 20} // which is not there
				i.reader = capture.CastReader{Head: i.head, Event: i.event}
				s.imports.begin(i, t.Context())
				feed := func(data string, end bool) error {
					return i.with(t.Context(), func() error { return i.take(t.Context(), []byte(data), end) })
				}
				if err := feed(c.before, false); err != nil {
					t.Fatal(err)
				}
				// One record gets there, in its two files.
				faults.Add(store.Fault{Op: store.FaultWrite, Path: "records.*", Skip: 2})
				answer := make(chan error, 1)
				go func() { answer <- feed(c.then, true) }()
				select {
				case err := <-answer:
					if e := wire.AsError(err); e.Code != c.code {
						t.Errorf("%v, want %s", err, c.code)
					}
				case <-time.After(time.Hour):
					t.Error("no answer")
				}
				if faults.Failed() == 0 {
					t.Error("the disk took everything")
				}
				faults.Clear()
				time.Sleep(time.Minute)
				if panes, err := st.Panes(); err != nil || len(panes) != 0 {
					t.Errorf("the store has the logs of %v, %v", panes, err)
				}
				for r := range st.Scan("") {
					if r.Key != numbersKey {
						t.Errorf("a record is left: %s %s", r.Key, r.Value)
					}
				}
			})
		})
	}
}

const castHead = "{\"version\": 2, \"width\": 80, \"height\": 24}\n"

// TestImportPause: an import for which nothing comes for ten minutes gives its place up,
// and its client is told so; one that goes on in time does not.
func TestImportPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, hangUp := context.WithCancel(t.Context())
		s := &Server{imports: newImports()}
		begin := func() (i *importing) {
			i = &importing{server: s, gone: gone}
			i.reader = capture.CastReader{
				Head:  func(capture.CastHead) error { return nil },
				Event: func(capture.CastEvent) error { return nil },
			}
			if !s.imports.begin(i, t.Context()) {
				return nil
			}
			return i
		}
		feed := func(i *importing, data string) error {
			i, err := s.imports.find(i.id, 0, gone)
			if err == nil {
				err = i.with(gone, func() error { return i.take(gone, []byte(data), false) })
			}
			return err
		}
		slow, silent := begin(), begin()
		for begin() != nil {
		}
		if err := feed(slow, castHead); err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			time.Sleep(9 * time.Minute)
			if err := feed(slow, "[0.1, \"o\", \"x\"]\n"); err != nil {
				t.Fatalf("piece %d: %v", n, err)
			}
		}
		if e := new(wire.Error); !errors.As(feed(silent, "x"), &e) || e.Code != "timeout.import" {
			t.Errorf("the one that paused: %v", e)
		}
		again := begin()
		if again == nil {
			t.Fatal("those that paused hold their places")
		}
		time.Sleep(9 * time.Minute)
		if err := feed(slow, "[0.1, \"o\", \"x\"]\n"); err != nil {
			t.Error(err)
		}
		hangUp()
		synctest.Wait()
		if s.imports.underWay != 0 || len(s.imports.all) != 0 {
			t.Errorf("of a client that has gone %d are under way, %d known", s.imports.underWay, len(s.imports.all))
		}
	})
}
