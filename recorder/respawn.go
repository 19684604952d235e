package recorder

import (
	"context"
	"errors"
	"time"

	"looptape/replay"
	"looptape/store"
)

// The errors of Release.
var (
	// ErrRunning says that the program of the pane has not exited.
	ErrRunning = errors.New("the program has not exited")
	// ErrNotRecorded says that the log takes nothing, see Pane.NotRecorded.
	ErrNotRecorded = errors.New("the disk takes nothing: free some space, 'looptape doctor' shows how it is")
)

// Respawn runs a program in a pane whose recording has ended, and goes on
// recording in its log. t is the Terminal at the log's end, whose size the program
// gets, and last the time of the log's last frame. A Respawn mark and a full
// checkpoint come first in the log. When the program cannot be started, the error
// is one of Start's and nothing has changed; else t belongs to the pane.
func Respawn(ctx context.Context, log *store.Log, t *replay.Terminal, last store.Time, c Config) (*Pane, error) {
	b := t.Bounds()
	c.Cols, c.Rows = b.Cols, b.Rows
	l, err := launch(ctx, log, t, c)
	if err != nil {
		return nil, err
	}
	// The log's monotonic clock stood still since: it goes on by the wall's.
	l.mono = last.Mono + max(0, time.Now().UnixNano()-last.Wall)
	l.append(replay.MarkRespawn, nil)
	l.observe(Observation{Kind: Respawned})
	l.checkpoint()
	l.begin()
	return l.pane, nil
}

// Release ends the recording of a pane whose program has exited: it hangs up the
// terminal, if helpers of the program still hold it, and returns when the loop has
// ended. What they had written is recorded. Errors: ErrRunning, ErrNotRecorded if
// the log cannot take the end now.
func (p *Pane) Release(ctx context.Context) error {
	err := p.do(ctx, func(l *loop) error {
		if !l.exited {
			return ErrRunning
		}
		l.drain(drainBytes)
		if l.gap.open {
			return ErrNotRecorded
		}
		if !l.closed {
			l.close()
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrStopped) {
		return err
	}
	select {
	case <-p.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
