package daemon

import (
	"context"
	"errors"

	"looptape/capture"
	"looptape/recorder"
	"looptape/replay"
	"looptape/store"
)

// source is what a pane is read from: the live pane as long as there is one,
// then its archive. It is capture.Pane.
type source struct {
	live    *recorder.Pane // nil for an archive
	archive *archive
	log     *store.Log
}

var _ capture.Pane = source{}

// source makes the pane of w readable.
func (s *Server) source(ctx context.Context, w window) (source, error) {
	if w.live != nil {
		return source{w.live, w.archive, w.live.Log()}, nil
	}
	log, err := w.archive.ready(ctx)
	return source{nil, w.archive, log}, err
}

// View is capture.Pane's.
func (p source) View(ctx context.Context, read func(t *replay.Terminal, closed bool)) error {
	if p.live != nil {
		if err := p.live.View(ctx, read); !errors.Is(err, recorder.ErrStopped) {
			return err
		}
	}
	return p.archive.view(ctx, read)
}

// Await is capture.Pane's: an archive writes no more.
func (p source) Await(ctx context.Context, offset uint64) error {
	if p.live != nil {
		return p.live.Await(ctx, offset)
	}
	return nil
}

// Log is capture.Pane's.
func (p source) Log() *store.Log { return p.log }
