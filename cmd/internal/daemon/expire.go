package daemon

import (
	"bytes"
	"context"
	"errors"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// expirePace is the longest time between two looks for archives that are too old.
const expirePace = 10 * time.Second

// The store lets go of spans that are older than Config.KeepFor, but keeps the last
// one of each log. That of an archive begins with the screen and the history at its
// end. So once all of an archive is too old, an empty screen is put behind it: and
// an import, whose times are those of its file, has been here for so long.

// expire empties archives in which everything is older than keep. It ends with the
// daemon's life; stop waits for it.
func (s *Server) expire(keep time.Duration) {
	defer s.watches.Done()
	t := time.NewTicker(min(expirePace, keep/4))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-s.life.Done():
			return
		}
		for _, w := range s.registry.allWindows() {
			old := time.Now().Add(-keep)
			if !w.expires(old) {
				continue
			}
			err := w.archive.expire(s.life, old.UnixNano())
			if err != nil && !errors.Is(err, errRetired) && s.life.Err() == nil {
				s.logger.Warn("an old recording keeps its last screen", "pane", w.Pane.ID, "err", err)
			}
		}
	}
}

// expires says whether the pane of w is an archive that has been here since before old.
func (w *window) expires(old time.Time) bool { return !w.recorded() && w.Created.Before(old) }

// recorded says whether the pane of w may still be appended to.
func (w *window) recorded() bool {
	if w.live == nil {
		return false
	}
	select {
	case <-w.live.Stopped():
		_, missing := w.live.NotRecorded()
		return missing
	default:
		return true
	}
}

// expire puts an empty screen behind an archive, if everything in it is older than
// cutoff (ns since the epoch) and that has not been done. What it appends is dated
// as what is there, so that the store lets that go. An archive that cannot be read
// stays as it is, and gives an error once.
func (a *archive) expire(ctx context.Context, cutoff int64) error {
	return a.with(ctx, func() error {
		if a.empty || a.all.readOnly {
			return nil
		}
		log, err := a.all.store.Log(a.pane.ID)
		if err != nil {
			a.empty = true
			return err
		}
		newest := log.Newest()
		if newest >= cutoff {
			return nil
		}
		if err := a.openLog(ctx); err != nil {
			return err
		}
		if !a.found {
			if err := a.finish(ctx, log, newest); err != nil {
				return err
			}
		}
		if err := a.hydrate(ctx, log); err != nil {
			a.empty = ctx.Err() == nil
			return err
		}
		if err := a.clear(log, newest); err != nil {
			return err
		}
		a.empty, a.term = true, nil
		a.all.drop(a)
		return nil
	})
}

// clear appends an empty screen to the log, whose end a.term is at, unless it ends
// with one.
func (a *archive) clear(log *store.Log, wall int64) error {
	last, err := log.FullCheckpoint(log.End())
	if err == nil && last.Offset == log.End().Offset && isBlank(a.term) {
		return nil
	}
	frame, err := lastFrame(log)
	if err != nil {
		return err
	}
	at := store.Time{Wall: wall, Mono: frame.Time.Mono}
	clock := a.term.State().Clock
	clock.Epoch++
	state := replay.New(a.term.Bounds().Cols, a.term.Bounds().Rows, a.pane.Scrollback).State()
	state.Clock = clock
	// The frames in front do not lead to it.
	log.AppendGap(at, 0, []byte("age"))
	log.AppendCheckpoint(checkpoint.Encode(nil, state), true)
	log.Append(replay.MarkRestart, at, replay.AppendRestart(nil, 0))
	return nil
}

// isBlank reports whether a Terminal shows and remembers nothing.
func isBlank(t *replay.Terminal) bool {
	b := t.Bounds()
	if b.Oldest != b.Active || t.Title() != "" || t.Cwd() != "" {
		return false
	}
	for row := range t.Rows(b.Active, b.End) {
		if len(bytes.TrimRight(row.Text, " ")) > 0 {
			return false
		}
	}
	return true
}
