package daemon

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"looptape/cmd/internal/wire"
	"looptape/recorder"
)

// TestRelativeCwd: a directory that depends on where the daemon runs is refused.
func TestRelativeCwd(t *testing.T) {
	for cwd, ok := range map[string]bool{"": true, "/": true, "/no/such": true, "docs": false, "./docs": false, "~": false, "..": false} {
		err := (&windowParams{Cwd: cwd}).check()
		if e := new(wire.Error); ok != (err == nil) || !ok && (!errors.As(err, &e) || e.Code != "invalid_params.cwd" || !strings.Contains(e.Message, "must be an absolute path")) {
			t.Errorf("%q: %v", cwd, err)
		}
	}
}

// TestLaunchIsBounded: starts that hang end with timeout.start, and others wait for their
// turns, not for their ends.
func TestLaunchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{starts: make(chan struct{}, maxStarts)}
		hang := func(ctx context.Context) (*recorder.Pane, error) {
			<-ctx.Done()
			return nil, &recorder.LateError{Err: context.Cause(ctx)}
		}
		began := time.Now()
		var hung sync.WaitGroup
		for range maxStarts {
			hung.Go(func() {
				_, err := s.launch(t.Context(), hang)
				if e := new(wire.Error); !errors.As(wireError(err), &e) || e.Code != "timeout.start" || time.Since(began) != startPatience {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		}
		synctest.Wait()
		if _, err := s.launch(t.Context(), func(context.Context) (*recorder.Pane, error) { return nil, nil }); err != nil || time.Since(began) != startTurn {
			t.Errorf("a start behind them: %v, after %v", err, time.Since(began))
		}
		hung.Wait()
		if len(s.starts) != 0 {
			t.Error("a turn is nobody's")
		}
	})
}
