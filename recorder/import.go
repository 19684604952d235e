package recorder

import (
	"context"
	"time"

	"looptape/replay"
	"looptape/store"
)

// importFrame is the longest frame of an imported stream, in bytes: as the first
// batches of a program, and as the longest event that an export writes.
const importFrame = batchBytes / 4

// importPoll is how often an import that waits for the log asks whether the store has
// failed.
const importPoll = 100 * time.Millisecond

// Import writes what another recorder recorded into a log, with checkpoints as a pane
// has them. It is for one goroutine.
type Import struct {
	log      *store.Log
	term     *replay.Terminal
	schedule schedule
}

// NewImport begins the import of a stream that began at a time, into log, which is new
// and empty. Error: ErrCells.
func NewImport(log *store.Log, cols, rows, scrollback int, retain uint64, at store.Time) (*Import, error) {
	if cols*rows > MaxCells {
		return nil, ErrCells
	}
	log.SetRetain(retain)
	i := &Import{log: log, term: replay.New(cols, rows, scrollback), schedule: schedule{distance: distances, spanBytes: retain / 4}}
	log.AppendCheckpoint(i.schedule.full(i.term), true)
	log.Append(replay.MarkImported, at, nil)
	return i, nil
}

// Offset is how long the stream is so far.
func (i *Import) Offset() uint64 { return i.term.Offset() }

// Output appends output. Like the other methods it waits for room in the log; its
// errors are ErrNotRecorded, those of the store, and that of ctx.
func (i *Import) Output(ctx context.Context, at store.Time, data []byte) error {
	for len(data) > 0 {
		n := frameBytes(data[:min(len(data), importFrame)], i.term)
		if err := i.append(ctx, store.Output, at, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Resize appends a resize. Error, beside the others: ErrCells.
func (i *Import) Resize(ctx context.Context, at store.Time, cols, rows int) error {
	if cols*rows > MaxCells {
		return ErrCells
	}
	return i.append(ctx, replay.MarkResize, at, replay.AppendResize(nil, cols, rows))
}

// Marker appends a marker, whose label is UTF-8 of at most 64 KiB.
func (i *Import) Marker(ctx context.Context, at store.Time, label string) error {
	return i.append(ctx, replay.MarkMarker, at, []byte(label))
}

// Exit appends how a program ended.
func (i *Import) Exit(ctx context.Context, at store.Time, e replay.Exit) error {
	return i.append(ctx, replay.MarkExit, at, replay.AppendExit(nil, e))
}

// End ends the log, as that of a pane that is no longer recorded, and returns when all
// of it is durable.
func (i *Import) End(ctx context.Context, at store.Time) error {
	if err := i.append(ctx, replay.MarkClosed, at, nil); err != nil {
		return err
	}
	i.log.AppendCheckpoint(i.schedule.full(i.term), true)
	if err := i.append(ctx, replay.MarkRestart, at, replay.AppendRestart(nil, 0)); err != nil {
		return err
	}
	return i.log.Sync(ctx)
}

// append adds a frame to the log and to the Terminal, and the checkpoint that is due.
func (i *Import) append(ctx context.Context, kind store.Kind, at store.Time, data []byte) error {
	if err := i.await(ctx); err != nil {
		return err
	}
	f := store.Frame{Kind: kind, Time: at, Data: data}
	i.log.Append(f.Kind, f.Time, f.Data)
	if err := replay.Apply(i.term, f); err != nil {
		return err
	}
	i.term.TakeReplies()
	if kind == replay.MarkRestart { // the last frame
		return nil
	}
	if blob, full, ok := i.schedule.next(i.term); ok {
		i.log.AppendCheckpoint(blob, full)
	}
	return nil
}

// await waits until the log has room, at most for stallTime.
func (i *Import) await(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for deadline := time.Now().Add(stallTime); i.log.Room() <= 0; {
		switch {
		case i.log.Err() != nil:
			return i.log.Err()
		case time.Now().After(deadline):
			return ErrNotRecorded
		}
		select {
		case <-i.log.RoomC():
		case <-time.After(importPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
