package daemon

import (
	"errors"
	"testing"

	"looptape/capture"
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
			i := &importing{server: s, gone: t.Context(), turn: make(chan struct{}, 1)}
			i.turn <- struct{}{}
			i.reader = capture.CastReader{
				Head:  func(capture.CastHead) error { return nil },
				Event: func(capture.CastEvent) error { return fail() },
			}
			if !s.imports.add(i) {
				t.Fatal("there are imports already")
			}
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
			if _, err := s.imports.find(i.id, 0, t.Context()); !errors.Is(err, noImport) || len(s.imports.all) > 0 {
				t.Errorf("it holds a place still: %v", err)
			}
		})
	}
}
