package replay

import (
	"errors"
	"fmt"
	"io"
	"math"

	"looptape/checkpoint"
	"looptape/store"
)

// ErrBeyond is what HydrateAt returns for an offset behind the end of the log.
var ErrBeyond = errors.New("replay: the stream does not reach that far")

// GapError says that an offset lies inside a gap: the bytes (From, To) of the
// stream were never recorded, so nobody knows what the screen was.
type GapError struct{ From, To uint64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("replay: the bytes between offset %d and %d were not recorded", e.From, e.To)
}

// Hydrate returns the Terminal as it was at the position at: the nearest
// checkpoint in front of it, and the frames between the two. What the programs
// asked the terminal then is not answered again, and what it observed is not
// reported again.
//
// The errors are those of the store (evicted, damaged, no checkpoint) and of the
// checkpoint's codec. A damaged checkpoint is no error where an earlier one and
// the frames behind that lead to the same place: it costs time.
func Hydrate(log *store.Log, at store.Pos) (*Terminal, error) {
	var damage error // of the first checkpoint that could not be used
	upTo := at
	for back := uint64(1); ; back *= 2 {
		t, from, err := restore(log, upTo)
		switch {
		case err == nil:
			if err := follow(t, log, from, at, damage); err != nil {
				return nil, err
			}
			return t, nil
		case damage == nil:
			damage = err
		}
		switch {
		case !errors.Is(err, errCheckpoint), from.Offset == 0:
			return nil, damage
		case from.Seq > 0:
			upTo = before(from)
		default: // only an offset is known, and how far it is to a good one is not
			upTo = store.Pos{Offset: from.Offset - min(from.Offset, back), Seq: math.MaxUint64 - 1}
		}
	}
}

// errCheckpoint is in the chain of an error that concerns one checkpoint only.
var errCheckpoint = errors.New("checkpoint cannot be used")

// before is the position from which to look for what is in front of at, which is
// not the first of the log.
func before(at store.Pos) store.Pos { return store.Pos{Offset: at.Offset, Seq: at.Seq - 1} }

// restore returns the Terminal of the last checkpoint at or in front of at, or, if
// that or one that it builds on cannot be used, of the full one of the span; and
// its position, or with an error that of the full one.
func restore(log *store.Log, at store.Pos) (*Terminal, store.Pos, error) {
	t, from, nearest := restoreNearest(log, at)
	if nearest == nil || !errors.Is(nearest, errCheckpoint) {
		return t, from, nearest
	}
	c, state, err := load(log, at)
	if err == nil {
		if t, err = Restore(state); err == nil {
			return t, c.Pos, nil
		}
		err = unusable(log, c, err)
	}
	return nil, c.Pos, err
}

// restoreNearest is restore without the other choice. A checkpoint inside a span
// builds on those before it, for the rows that it leaves out.
func restoreNearest(log *store.Log, at store.Pos) (*Terminal, store.Pos, error) {
	var nearest store.Checkpoint
	var states []*checkpoint.State
	var above rowsAbove
	for c, err := range log.CheckpointsBack(at) {
		as := checkpoint.DecodeBase
		if states == nil {
			nearest, as = c, checkpoint.Decode
		}
		c, s, err := decode(log, c, err, as)
		if err != nil {
			return nil, c.Pos, err
		}
		if states = append(states, s); above.enough(s) {
			break
		}
	}
	err := states[0].Complete(states[1:]...)
	var t *Terminal
	if err == nil {
		t, err = Restore(states[0])
	}
	if err != nil {
		return nil, nearest.Pos, unusable(log, nearest, err)
	}
	return t, nearest.Pos, nil
}

// rowsAbove counts rows of the history as far as they are there.
type rowsAbove struct {
	rows, bytes int
	first       uint64 // number of the oldest one
}

// enough adds the rows that s has above those that were counted before, of a later
// State, and reports whether there are as many as a terminal keeps.
func (a *rowsAbove) enough(s *checkpoint.State) bool {
	h := &s.History
	rows := h.Rows
	if n := a.first - h.First; a.rows > 0 && n < uint64(len(rows)) {
		rows = rows[:n]
	}
	for i := range rows {
		a.bytes += len(rows[i].Text) + loadOf(len(rows[i].Runs)).bytes()
	}
	a.rows, a.first = a.rows+len(rows), h.First
	return h.Hidden > 0 || a.rows >= s.Size.Scrollback || a.bytes > historyBudget(s.Size.Scrollback)
}

// load reads the full checkpoint at or in front of at.
func load(log *store.Log, at store.Pos) (store.Checkpoint, *checkpoint.State, error) {
	c, err := log.FullCheckpoint(at)
	return decode(log, c, err, checkpoint.Decode)
}

// decode decodes the checkpoint c, unless there was the error err.
func decode(log *store.Log, c store.Checkpoint, err error, as func([]byte) (*checkpoint.State, error)) (store.Checkpoint, *checkpoint.State, error) {
	if err != nil {
		var damaged *store.DamagedError
		if errors.As(err, &damaged) {
			c.Pos = store.Pos{Offset: damaged.Offset}
			err = fmt.Errorf("%w: %w", errCheckpoint, err)
		}
		return c, nil, err
	}
	state, err := as(c.Blob)
	if err == nil && state.Clock.Offset != c.Offset {
		err = fmt.Errorf("it holds the state at offset %d", state.Clock.Offset)
	}
	if err != nil {
		err = unusable(log, c, err)
	}
	return c, state, err
}

func unusable(log *store.Log, c store.Checkpoint, err error) error {
	return fmt.Errorf("%w: %w", errCheckpoint, &store.DamagedError{Pane: log.Pane(), Offset: c.Offset, Err: err})
}

// follow applies the frames [from, to) to t. Behind a gap a Terminal is what the
// checkpoint there says and nothing else, so frames behind one are refused with
// the error damage, for which that checkpoint was passed over.
func follow(t *Terminal, log *store.Log, from, to store.Pos, damage error) error {
	if from.Seq >= to.Seq {
		return nil
	}
	r, err := log.Read(from)
	if err != nil {
		return err
	}
	defer r.Close()
	join := joiner{t: t}
	for gap := false; ; {
		f, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && f.Seq >= to.Seq {
			join.flush()
			return nil
		}
		if err == nil {
			if gap && damage != nil {
				return damage
			}
			gap = f.Kind == store.Gap
			err = join.apply(f)
		}
		if err != nil {
			return err
		}
	}
}

// joiner applies frames to t. It feeds what came in small pieces as one: that makes
// no difference but in time, since lines in large pieces are quick.
type joiner struct {
	t   *Terminal
	buf []byte
}

func (j *joiner) apply(f store.Frame) error {
	if f.Kind == store.Output {
		if len(j.buf)+len(f.Data) > batchMax {
			j.flush()
		}
		if j.buf = append(j.buf, f.Data...); len(j.buf) >= batchMax/2 {
			j.flush()
		}
		return nil
	}
	j.flush()
	return Apply(j.t, f)
}

func (j *joiner) flush() {
	if len(j.buf) > 0 {
		j.t.Feed(j.buf)
		j.t.TakeReplies()
		j.buf = j.buf[:0]
	}
}

// HydrateAt returns the Terminal after exactly the bytes [0, offset) of the stream
// and the marks that stand there, up to but not including that of a Restart or a
// Respawn: the last that the program showed (contract.md, section 8). Errors are
// those of Hydrate, ErrBeyond, and *GapError for an offset inside a gap; where a
// gap begins and where it ends there is a screen.
func HydrateAt(log *store.Log, offset uint64) (*Terminal, error) {
	if offset > log.End().Offset {
		return nil, ErrBeyond
	}
	r, err := log.ReadOffset(offset)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.Next()
	if errors.Is(err, io.EOF) {
		return Hydrate(log, log.End())
	}
	if err != nil {
		return nil, err
	}
	if f.Kind == store.Gap && f.Offset < offset {
		return nil, &GapError{From: f.Offset, To: f.End().Offset}
	}
	t, err := Hydrate(log, f.Pos)
	if err != nil {
		return nil, err
	}
	if f.Offset < offset {
		f.Data = f.Data[:offset-f.Offset]
		if err := Apply(t, f); err != nil {
			return nil, err
		}
		f, err = r.Next()
	}
	for err == nil && f.End().Offset == offset && f.Kind != MarkRestart && f.Kind != MarkRespawn {
		if f.Kind == store.Gap { // in which no bytes are missing, but marks
			t, err = Hydrate(log, f.End())
		} else {
			err = Apply(t, f)
		}
		if err == nil {
			f, err = r.Next()
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	t.TakeReplies()
	return t, nil
}

// AppendLexerState appends the place of t in its stream as Lexer.SetState takes
// it: a text filter goes on from there.
func (t *Terminal) AppendLexerState(dst []byte) []byte { return t.lex.AppendState(dst) }
