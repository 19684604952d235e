package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/wire"
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
			if err := feed("{\"version\": 2, \"width\": 80, \"height\": 24}\n"); err != nil {
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
		if err := feed(slow, "{\"version\": 2, \"width\": 80, \"height\": 24}\n"); err != nil {
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
