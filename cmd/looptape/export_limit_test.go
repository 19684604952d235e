package main_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// TestExportsAtOnce: a client that reads nothing of its exports keeps a bounded number of
// them, and others are told so until it has gone.
func TestExportsAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c, greedy := s.client(), s.client()
	pane := s.run(c, 80, 24, "/bin/sh", "-c", "seq 1 300000")
	s.until(c, pane, "exited", exited)
	stuck := make(chan struct{})
	var all sync.WaitGroup
	for range 40 { // some of them are refused
		all.Go(func() {
			greedy.Stream(t.Context(), "pane.export", obj{"pane": pane}, func(json.RawMessage) error {
				<-stuck
				return nil
			})
		})
	}
	export := func() error {
		_, err := c.Stream(t.Context(), "pane.export", obj{"pane": pane}, func(json.RawMessage) error { return nil })
		var e *wire.Error
		if err != nil && (!errors.As(err, &e) || e.Code != "limit.exports") {
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
	greedy.Close()
	close(stuck)
	all.Wait()
	until("admitted", func(err error) bool { return err == nil })
}
