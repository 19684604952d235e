package replay

import (
	"errors"
	"fmt"
	"io"

	"looptape/checkpoint"
	"looptape/store"
)

// Hydrate returns the Terminal as it was at the position at: the nearest full
// checkpoint in front of it, and the frames between the two. What the programs
// asked the terminal then is not answered again, and what it observed is not
// reported again.
//
// The errors are those of the store (evicted, damaged, no checkpoint) and of
// the checkpoint's codec.
func Hydrate(log *store.Log, at store.Pos) (*Terminal, error) {
	c, err := log.FullCheckpoint(at)
	if err != nil {
		return nil, err
	}
	state, err := checkpoint.Decode(c.Blob)
	if err != nil {
		return nil, fmt.Errorf("checkpoint at offset %d: %w", c.Offset, err)
	}
	t, err := Restore(state)
	if err != nil {
		return nil, fmt.Errorf("checkpoint at offset %d: %w", c.Offset, err)
	}
	if t.Offset() != c.Offset {
		return nil, fmt.Errorf("checkpoint at offset %d holds the state at %d", c.Offset, t.Offset())
	}
	return t, follow(t, log, c.Pos, at)
}

// follow applies the frames [from, to) to t.
func follow(t *Terminal, log *store.Log, from, to store.Pos) error {
	r, err := log.Read(from)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && f.Seq >= to.Seq {
			return nil
		}
		if err == nil {
			err = Apply(t, f)
		}
		if err != nil {
			return err
		}
		t.TakeReplies()
		t.TakeEvents()
	}
}

// AppendLexerState appends the place of t in its stream as Lexer.SetState takes
// it: a text filter goes on from there.
func (t *Terminal) AppendLexerState(dst []byte) []byte { return t.lex.AppendState(dst) }
