package daemon

import (
	"context"
	"errors"
	"testing"
)

// TestPlaceAside: whoever waits for its client leaves its place to others meanwhile.
func TestPlaceAside(t *testing.T) {
	in := make(chan struct{}, 1)
	one, other := place{in: in}, place{in: in}
	if err := one.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := one.aside(t.Context(), func() error { // the client does not read before another was served
		defer other.leave()
		return other.enter(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.enter(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("beside the one that came back: %v", err)
	}
	gone := errors.New("gone")
	if err := one.aside(t.Context(), func() error { return gone }); !errors.Is(err, gone) {
		t.Errorf("without a client: %v", err)
	}
	if err := other.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.leave() // which has none
	other.leave()
	if len(in) != 0 {
		t.Errorf("%d places are held", len(in))
	}
}
