package capture

import (
	"errors"
	"io"

	"looptape/checkpoint"
	"looptape/store"
)

// What is no longer in the log, or never was: an answer goes on behind it, and counts
// it.

// skipEvicted goes on at the oldest byte of the log, with the lexer's state
// there.
func (s *since) skipEvicted(oldest uint64) error {
	for c, err := range s.pane.Log().Checkpoints(store.Pos{Offset: oldest}) {
		if err != nil {
			return err
		}
		if c.Offset > s.r.End { // it was written since the pane was looked at
			return store.ErrEvicted
		}
		s.miss(c.Offset)
		return s.enter(c)
	}
	return store.ErrNoCheckpoint
}

// enter puts the filter in the state that it has at a checkpoint.
func (s *since) enter(c store.Checkpoint) error {
	state, err := checkpoint.Decode(c.Blob)
	if err != nil {
		return &store.DamagedError{Pane: s.pane.Log().Pane(), Offset: c.Offset, Err: err}
	}
	s.filter.cr = false
	return s.filter.lexer.SetState(append([]byte{state.Lexer.Phase}, state.Lexer.Held...))
}

// miss goes on at to, and counts what lies between as missed.
func (s *since) miss(to uint64) {
	s.filter.cr = false
	s.filter.lexer.Reset()
	s.r.Missed = true
	s.r.MissedBytes += to - s.r.From
	s.r.From = to
}

// skipGap goes on behind a gap in the log that r.From stands in or in front of.
// Behind the log's end is one that is still open: the pane goes on, the log
// does not.
func (s *since) skipGap() error {
	for s.r.From < s.until {
		if s.r.From >= s.pane.Log().End().Offset {
			if s.miss(s.until); s.until < s.r.End {
				return nil
			}
			return s.filter.lexer.SetState(s.lexer)
		}
		gap, err := s.firstGap()
		if err == nil && gap.Offset > 0 {
			err = s.passGap(gap)
		}
		if err != nil || gap.Offset == 0 {
			return err
		}
	}
	return nil
}

// passGap goes on behind the gap that ends at end. What was lost may have ended
// within a sequence: the checkpoint there knows.
func (s *since) passGap(end store.Pos) error {
	s.miss(min(end.Offset, s.until))
	if s.r.From < end.Offset {
		return nil
	}
	c, err := s.pane.Log().Checkpoint(end)
	if damaged := new(store.DamagedError); errors.As(err, &damaged) || err == nil && c.Pos != end {
		return nil
	}
	if err == nil {
		err = s.enter(c)
	}
	return err
}

// firstGap returns the end of the gap that covers r.From, or the zero Pos if bytes
// follow or another program.
func (s *since) firstGap() (end store.Pos, err error) {
	if err := s.seek(s.r.From); err != nil {
		return end, err
	}
	for {
		f, err := s.reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return end, nil
		case err != nil:
			return end, err
		case f.Kind == store.Gap && f.End().Offset > s.r.From:
			return f.End(), nil
		case f.Kind == store.Output, s.respawn(f):
			return end, nil
		}
	}
}
