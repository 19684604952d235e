package capture

import (
	"context"
	"errors"
	"io"

	"looptape/replay"
	"looptape/store"
)

// Where a wait stands in the stream: where it begins, and where it goes on behind what
// is missing.

// place finds where to begin.
func (w *wait) place(ctx context.Context) error {
	var cursor *Cursor
	switch {
	case w.q.Cursor != nil && w.q.Since != nil:
		return errTwoPlaces
	case w.q.Cursor != nil:
		c, err := ParseCursor(*w.q.Cursor)
		if err == nil && c.Pane != w.p.Log().Pane() {
			err = errOtherPane
		}
		if err != nil {
			return err
		}
		cursor = &c
	}
	var end uint64
	if err := w.p.View(ctx, func(t *replay.Terminal, _ bool) { end, w.generation = t.Offset(), t.Generation() }); err != nil {
		return err
	}
	from := end
	switch {
	case cursor != nil && cursor.Store != w.q.Store:
		w.r.Missed = true
	case cursor != nil && cursor.Generation != w.generation:
		return errRespawned
	case cursor != nil:
		from = cursor.Offset
		if err := w.filter.setState(cursor.Filter); err != nil {
			return err
		}
	case w.q.Since != nil:
		from = *w.q.Since
	}
	if from > end { // a place that this stream has not reached
		w.r.Missed, from = true, end
	}
	return w.enter(from)
}

// enter goes on at an offset: behind the marks of a respawn that stand there, at the
// oldest byte if it is no longer retained.
func (w *wait) enter(offset uint64) error {
	w.at, w.blind, w.ended = offset, false, nil
	for {
		err := w.skipEvicted()
		if err == nil {
			err = w.lookBack()
		}
		if err == nil {
			err = w.skipRespawns()
		}
		if !errors.Is(err, store.ErrEvicted) {
			w.placed = w.at
			w.restart()
			return err
		}
	}
}

// skipEvicted goes on at the oldest byte of the log, with the lexer's state there.
func (w *wait) skipEvicted() error {
	oldest := w.p.Log().Oldest()
	if w.at >= oldest {
		return nil
	}
	c, err := firstCheckpoint(w.p.Log())
	if err != nil {
		return err
	}
	oldest = max(oldest, c.Offset)
	w.miss(oldest - w.at)
	w.at = oldest
	w.filter.lexer, err = lexerAt(w.p.Log(), c)
	return err
}

// lookBack looks for a mark of a shell that has begun in front of the place where the
// wait begins, and ends behind it.
func (w *wait) lookBack() error {
	scan := markScan{found: func(mark) {}}
	from := max(w.p.Log().Oldest(), w.at-min(w.at, 2*replay.MaxOSC))
	r, err := w.p.Log().ReadOffset(from)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && f.Offset >= w.at {
			w.marks = scan
			w.marks.found = w.mark
			return nil
		}
		if err != nil {
			return err
		}
		f.Data = f.Data[:min(uint64(len(f.Data)), w.at-f.Offset)]
		scan.frame(f, from)
	}
}

// skipRespawns finds the frame to look at next: behind the last respawn at the place
// where the wait is, whose program stands in the middle of nothing.
func (w *wait) skipRespawns() error {
	r, err := w.p.Log().ReadOffset(w.at)
	if err != nil {
		return err
	}
	defer r.Close()
	w.next = r.At()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && f.End().Offset > w.at {
			return nil
		}
		if err != nil {
			return err
		}
		if f.Kind == replay.MarkRespawn {
			w.next = f.End()
			w.forget()
		}
	}
}

// miss notes that bytes in front of what comes next are lost.
func (w *wait) miss(bytes uint64) {
	w.r.Missed = true
	w.r.MissedBytes += bytes
	w.forget()
}

// forget says that what comes next goes on with nothing that was before.
func (w *wait) forget() {
	w.filter.cr = false
	w.filter.lexer.Reset()
	w.marks.lexer.Reset()
	w.ran, w.blind = nil, true
}

// lookForBegin looks in front of the place where the wait began, as far as Commands
// would, for the beginning of the command that has ended, unless it is known.
func (w *wait) lookForBegin() error {
	log := w.p.Log()
	window := uint64(64 << 10) // mostly it is near
	for hi := w.placed; w.ran == nil && !w.blind && hi > log.Oldest() && w.placed-hi < commandsScan; {
		lo := max(log.Oldest(), hi-min(hi, window))
		var last *mark // that says what runs
		err := marksIn(log, lo, hi, func(m mark) {
			if m.end <= w.placed && m.kind != directory && m.kind != inputStart {
				last = &m
			}
		})
		if errors.Is(err, store.ErrEvicted) { // again, in what is left
			continue
		}
		if damaged := new(store.DamagedError); errors.As(err, &damaged) {
			return nil
		}
		if err != nil {
			return err
		}
		if last != nil {
			if last.kind == outputStart {
				w.ran = last
			}
			return nil
		}
		hi, window = lo, min(4*window, commandsWindow)
	}
	return nil
}

// passGap goes on behind a gap. What was lost may have ended within a sequence: the
// checkpoint there knows.
func (w *wait) passGap(end store.Pos) error {
	w.miss(end.Offset - w.at)
	w.at = end.Offset
	c, err := w.p.Log().Checkpoint(end)
	if err == nil && c.Pos == end {
		w.filter.lexer, err = lexerAt(w.p.Log(), c)
	}
	if damaged := new(store.DamagedError); errors.As(err, &damaged) {
		err = nil
	}
	w.restart()
	return err
}

// restart begins a line at the place where the wait is.
func (w *wait) restart() {
	w.line = w.line[:0]
	w.begin = anchor{offset: w.at, filter: w.filter.appendState(nil)}
}
