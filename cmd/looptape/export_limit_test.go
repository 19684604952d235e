package main_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// TestExportsAtOnce: clients that read nothing of their exports keep a bounded number of
// them, and others are told so until these have gone.
func TestExportsAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	pane := s.run(c, 80, 24, "/bin/sh", "-c", "seq 1 2000000")
	s.until(c, pane, "exited", exited) // 15 MB, of which the daemon keeps 8 for a client that reads nothing
	limited := func(err error) bool {
		var e *wire.Error
		return errors.As(err, &e) && e.Code == "limit.exports"
	}
	stuck := make(chan struct{})
	var all sync.WaitGroup
	for range 32 {
		greedy := s.client()
		all.Go(func() {
			for open := true; open; { // while c takes the last place, it is refused
				_, err := greedy.Stream(t.Context(), "pane.export", obj{"pane": pane}, func(json.RawMessage) error {
					<-stuck
					return errors.New("enough")
				})
				open = limited(err)
			}
		})
	}
	export := func() error {
		_, err := c.Stream(t.Context(), "pane.export", obj{"pane": pane, "to": 100}, func(json.RawMessage) error { return nil })
		if err != nil && !limited(err) {
			t.Fatal(err)
		}
		return err
	}
	until := func(what string, there func(error) bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !there(export()); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("not " + what)
			}
		}
	}
	until("refused", func(err error) bool { return err != nil })
	close(stuck)
	all.Wait()
	until("admitted", func(err error) bool { return err == nil })
}
