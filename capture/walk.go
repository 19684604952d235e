package capture

import (
	"context"
	"errors"
	"io"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// Slots bounds how many replays are under way: it runs f, with a context of its own,
// as soon as few enough others do. In it f reads logs and no Pane, whose View may be
// a replay too. Nil runs f at once.
type Slots func(ctx context.Context, f func(ctx context.Context) error) error

func (s Slots) hold(ctx context.Context, f func(ctx context.Context) error) error {
	if s == nil {
		return f(ctx)
	}
	return s(ctx, f)
}

// walk replays a stretch of a pane's log for who reads the lines that were shown,
// each once (contract.md, section 9). Behind a gap it goes on from the checkpoint
// that follows: with the lines that were shown in the gap, as far as the terminal
// still had them.
type walk struct {
	log  *store.Log
	t    *replay.Terminal // nil in a walk that only reads
	r    *store.Reader
	sink func(replay.Line) // nil is none

	styled bool // the lines have their styles

	lost bool              // retention has taken what next is to read
	onto *store.Checkpoint // where the walk goes on behind the gap that comes
}

// walkFrom is a walk from the frame at a position on; first at the beginning of
// the log, whose history comes at once. Its user closes it.
func walkFrom(log *store.Log, at store.Pos, sink func(replay.Line)) (*walk, error) {
	w := &walk{log: log, sink: sink}
	t, err := replay.Hydrate(log, at)
	if err == nil {
		w.r, err = log.Read(at)
	}
	if err != nil {
		return nil, err
	}
	w.follow(t)
	return w, nil
}

// walkAll is a walk from the beginning of the log: the lines of its history whose
// Offset is since or more come first.
func walkAll(log *store.Log, since uint64, sink func(replay.Line)) (*walk, error) {
	c, err := firstCheckpoint(log)
	if err != nil {
		return nil, err
	}
	w, err := walkFrom(log, c.Pos, sink)
	if err == nil {
		w.t.ReportFrom(since)
	}
	return w, err
}

func (w *walk) follow(t *replay.Terminal) {
	w.t = t
	t.StyleLines(w.styled)
	t.SetLineSink(w.sink)
}

func (w *walk) close() { w.r.Close() }

// next returns the next frame, which apply is to have; io.EOF at the log's end.
func (w *walk) next() (store.Frame, error) {
	if w.lost {
		return store.Frame{}, store.ErrEvicted
	}
	return w.r.Next()
}

// apply shows the walk's terminal a frame, or the first part of one: behind a gap
// that is cut nothing follows.
func (w *walk) apply(f store.Frame) error {
	if err := replay.Apply(w.t, f); err != nil {
		return err
	}
	w.t.TakeReplies()
	if f.Kind != store.Gap || f.End().Offset < w.r.At().Offset {
		return nil
	}
	c, err := w.behind(f)
	if err != nil {
		w.lost = errors.Is(err, store.ErrEvicted)
		return err
	}
	t, err := restored(w.log, c)
	if err == nil {
		w.follow(t)
		t.ReportFrom(f.Offset + 1)
	}
	return err
}

// behind is the checkpoint that follows a gap.
func (w *walk) behind(gap store.Frame) (store.Checkpoint, error) {
	if w.onto != nil {
		c := *w.onto
		w.onto = nil
		return c, nil
	}
	c, err := w.log.Checkpoint(gap.End())
	if err == nil && c.Pos != gap.End() {
		err = &store.DamagedError{Pane: w.log.Pane(), Offset: gap.End().Offset, Err: errors.New("no checkpoint follows a gap")}
	}
	return c, err
}

// overtaken takes the walk to where the log begins by now, since retention has taken
// what was next. It returns the gap that stands for that, which apply is to have.
func (w *walk) overtaken() (store.Frame, error) {
	at := w.r.At()
	for {
		c, err := firstCheckpoint(w.log)
		var r *store.Reader
		if err == nil {
			r, err = w.log.Read(c.Pos)
		}
		if errors.Is(err, store.ErrEvicted) {
			continue
		}
		if err != nil {
			return store.Frame{}, err
		}
		w.r.Close()
		w.r, w.onto, w.lost = r, &c, false
		return store.Frame{Pos: at, Kind: store.Gap, Lost: c.Offset - min(at.Offset, c.Offset)}, nil
	}
}

// restored is the Terminal of a full checkpoint.
func restored(log *store.Log, c store.Checkpoint) (t *replay.Terminal, err error) {
	state, err := checkpoint.Decode(c.Blob)
	if err == nil {
		t, err = replay.Restore(state)
	}
	if err != nil {
		err = &store.DamagedError{Pane: log.Pane(), Offset: c.Offset, Err: err}
	}
	return t, err
}

// frameAt returns the position of the frame that holds the byte at an offset, or
// the first behind it.
func frameAt(log *store.Log, offset uint64) (store.Pos, error) {
	r, err := log.ReadOffset(offset)
	if err != nil {
		return store.Pos{}, err
	}
	defer r.Close()
	f, err := r.Next()
	if errors.Is(err, io.EOF) {
		return log.End(), nil
	}
	return f.Pos, err
}

// lexerAt is the lexer as it was at a checkpoint, as far as a text filter goes.
func lexerAt(log *store.Log, c store.Checkpoint) (l replay.Lexer, err error) {
	state, err := checkpoint.Decode(c.Blob)
	if err == nil {
		err = l.SetState(append([]byte{state.Lexer.Phase}, state.Lexer.Held...))
	}
	if err != nil {
		err = &store.DamagedError{Pane: log.Pane(), Offset: c.Offset, Err: err}
	}
	return l, err
}
