package daemon

import (
	"context"
	"errors"

	"looptape/capture"
	"looptape/cmd/internal/manifest"
	"looptape/recorder"
	"looptape/replay"
	"looptape/store"
)

// source is what a pane is read from: the live pane as long as there is one,
// then its archive, and after a respawn the live pane that it has become. It is
// capture.Pane.
type source struct {
	registry *registry
	pane     uint64
	log      *store.Log
}

var _ capture.Pane = source{}

// source makes the pane of w readable.
func (s *Server) source(ctx context.Context, w window) (source, error) {
	p := source{registry: s.registry, pane: w.Pane.ID}
	err := p.now(ctx, func(w window) (err error) {
		if w.live != nil {
			p.log = w.live.Log()
			return nil
		}
		p.log, err = w.archive.ready(ctx)
		return err
	})
	return p, err
}

// sourceFor is source for a request, whose memory serves others while a program is
// about to start in an archive.
func (s *Server) sourceFor(ctx context.Context, r *request, w window) (p source, err error) {
	if w.live != nil {
		return s.source(ctx, w)
	}
	err = r.Wait(ctx, func() (err error) {
		p, err = s.source(ctx, w)
		return err
	})
	return p, err
}

// now calls f with the pane as it is now, and again if a respawn came between.
func (p source) now(ctx context.Context, f func(window) error) error {
	for {
		w, ok := p.registry.pane(p.pane)
		if !ok {
			return notFound(manifest.Pane, formatID(manifest.Pane, p.pane))
		}
		if err := f(w); !errors.Is(err, errRetired) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// View is capture.Pane's.
func (p source) View(ctx context.Context, read func(t *replay.Terminal, closed bool)) error {
	return p.now(ctx, func(w window) error {
		if w.live != nil {
			if err := w.live.View(ctx, read); !errors.Is(err, recorder.ErrStopped) {
				return err
			}
		}
		return w.archive.view(ctx, read)
	})
}

// Await is capture.Pane's: an archive writes no more.
func (p source) Await(ctx context.Context, at store.Pos) error {
	return p.now(ctx, func(w window) error {
		if w.live != nil {
			return w.live.AwaitFrame(ctx, at)
		}
		return nil
	})
}

// Reached is capture.Pane's. Of an archive, and of a pane that is not followed any more,
// it is the end of the log.
func (p source) Reached(ctx context.Context) (offset uint64) {
	p.now(ctx, func(w window) error {
		if w.live != nil {
			w.live.View(ctx, func(t *replay.Terminal, _ bool) { offset = t.Offset() })
		}
		return nil
	})
	return max(offset, p.log.End().Offset)
}

// Log is capture.Pane's: a respawned pane goes on in the same one.
func (p source) Log() *store.Log { return p.log }
