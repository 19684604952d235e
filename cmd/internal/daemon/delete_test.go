package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"looptape/checkpoint"
	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/wire"
	"looptape/replay"
	"looptape/store"
)

// openTestStore opens a store on a file system of a test.
func openTestStore(t *testing.T, faults *store.Faults) *store.Store {
	t.Helper()
	st, err := store.Open("s", store.Options{FS: faults.FS(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// recordPane makes an archive of a window, a pane and a session of the same number, and
// of nothing else.
func recordPane(t *testing.T, st *store.Store, n uint64, deleted bool) *store.Log {
	t.Helper()
	r := registry{store: st}
	err := r.put(sessionKey, n, session{ID: n, Name: formatID("session", n), Fleeting: true})
	if err == nil {
		err = r.put(windowKey, n, window{ID: n, Session: n, Deleted: deleted, Pane: paneRecord{ID: n, Argv: []string{"x"}, Cols: 80, Rows: 24}})
	}
	if err != nil {
		t.Fatal(err)
	}
	log, err := st.Create(n)
	if err != nil {
		t.Fatal(err)
	}
	log.AppendCheckpoint(checkpoint.Encode(nil, replay.New(80, 24, 0).State()), true)
	log.Append(replay.MarkRestart, store.Time{Wall: 1}, replay.AppendRestart(nil, 0))
	return log
}

// TestStartOnFullDisk: a daemon that is to remove what is left of a deleted pane, and whose
// disk becomes full before, serves, and shows nothing of it; it goes once there is space,
// and does not hold up a stop.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	for name, frees := range map[string]bool{"freed": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startOnFullDisk(t, frees)
		})
	}
}

func startOnFullDisk(t *testing.T, frees bool) {
	faults := store.NewFaults(store.MemFS())
	st := openTestStore(t, faults)
	recordPane(t, st, 0, true)
	recordPane(t, st, 1, false)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = openTestStore(t, faults)
	faults.Add(store.Fault{Op: store.FaultFull})

	dir, err := os.MkdirTemp("", "lt") // short, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c := Config{Dir: dir, Socket: filepath.Join(dir, "looptape.sock"), Logger: slog.New(slog.DiscardHandler)}
	limits, err := findLimits()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := newServer(c, limits, st, false).serve(ctx, c, func() { close(ready) })
		ended <- errors.Join(err, st.Close())
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("the daemon does not listen")
	}
	token, err := grant.ReadOwnerToken(dir)
	if err != nil {
		t.Fatal(err)
	}
	client, err := wire.Dial(ctx, c.Socket, wire.Hello{Client: "test", Token: &token})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for verb, want := range map[string]string{
		"session.list": `{"sessions":[{"session":"s1",`, "window.list": `{"windows":[{"window":"w1",`, "pane.list": `{"panes":[{"pane":"p1",`,
	} {
		if got, err := client.Call(ctx, verb, map[string]any{}); err != nil || len(got) < len(want) || string(got[:len(want)]) != want {
			t.Errorf("%s: %s, %v", verb, got, err)
		}
	}
	if frees {
		faults.Clear()
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			_, session := st.Get(recordKey(sessionKey, 0))
			_, window := st.Get(recordKey(windowKey, 0))
			_, log := st.Log(0)
			_, ballast := faults.FS().Stat("s/ballast") // the store has recovered
			if ballast == nil && errors.Is(session, store.ErrNoRecord) && errors.Is(window, store.ErrNoRecord) && errors.Is(log, store.ErrNoLog) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("there is still something: %v, %v, %v, %v", session, window, log, ballast)
			}
		}
	}
	stop()
	select {
	case err := <-ended:
		if frees && err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the daemon does not stop")
	}
}

// TestDeleteWaits: a deletion that waits for its turn leaves what is kept for a full disk
// alone, and uses it when its turn comes.
func TestDeleteWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := store.NewFaults(store.MemFS())
		st := openTestStore(t, faults)
		defer st.Close()
		recordPane(t, st, 0, false)
		other := recordPane(t, st, 1, false)
		c := Config{Logger: slog.New(slog.DiscardHandler)}
		s := newServer(c, limits{}, st, false)
		var err error
		if s.registry, err = loadRegistry(st, s.hub, func(err error) { t.Error(err) }); err != nil {
			t.Fatal(err)
		}
		w, _ := s.registry.pane(0)
		a := s.archives.open(w.Pane, true)
		s.registry.setArchive(0, a)
		<-a.turn
		deleted := make(chan error, 1)
		go func() {
			_, err := s.paneDelete(t.Context(), &request{id: "p0"})
			deleted <- err
		}()
		synctest.Wait() // it waits for its turn
		faults.Add(store.Fault{Op: store.FaultWrite, Path: "*.log"})
		other.Append(store.Output, store.Time{Wall: 2}, []byte("x"))
		time.Sleep(time.Second)
		if _, err := faults.FS().Stat("s/ballast"); err != nil {
			t.Errorf("what is kept for a full disk: %v", err)
		}
		if faults.Failed() == 0 {
			t.Error("nothing was written")
		}
		a.turn <- struct{}{}
		faults.Clear()
		if err := <-deleted; err != nil {
			t.Error(err)
		}
	})
}
