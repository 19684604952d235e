package replay

import (
	"errors"
	"unicode/utf8"

	"looptape/checkpoint"
)

// AppendState appends the lexer's place in the state diagram and the bytes of an
// unfinished character: all that deciding what is text takes, at most 4 bytes.
// The parameters and payload of an unfinished sequence are not in it.
//
//	0  phase  u8
//	1  held   0..3 bytes
func (l *Lexer) AppendState(dst []byte) []byte {
	dst = append(dst, byte(l.phase))
	return append(dst, l.held[:l.nheld]...)
}

// SetState undoes AppendState. It fails on bytes that AppendState cannot have made.
func (l *Lexer) SetState(b []byte) error {
	if len(b) == 0 || len(b) > 4 || phase(b[0]) >= phases {
		return errors.New("replay: malformed lexer state")
	}
	held := b[1:]
	if len(held) > 0 && (phase(b[0]) != ground || subpart(held) != len(held) || utf8.FullRune(held)) {
		return errors.New("replay: malformed lexer state")
	}
	l.Reset()
	l.phase = phase(b[0])
	l.nheld = uint8(copy(l.held[:], held))
	if l.phase == dcsPass || l.phase == dcsEnd {
		l.data = append(l.data, 0)
	}
	return nil
}

// Ground says that no sequence and no string is under way; an unfinished character
// may be.
func (l *Lexer) Ground() bool { return l.phase == ground }

func (l *Lexer) export() checkpoint.Lexer {
	s := checkpoint.Lexer{Phase: uint8(l.phase)}
	s.Held = append(s.Held, l.Held()...)
	if l.phase == ground || l.phase == escape {
		return s
	}
	s.Prefix, s.Colons, s.Dropped = l.prefix, l.colons, l.dropped
	s.Inter = append(s.Inter, l.Inter()...)
	s.Params = append(s.Params, l.params[:l.Params()]...)
	if l.nparams > MaxParams {
		s.Params = append(s.Params, -1)
	}
	s.Data = append(s.Data, l.data...)
	return s
}

func (l *Lexer) restore(s *checkpoint.Lexer) error {
	if err := l.SetState(append([]byte{s.Phase}, s.Held...)); err != nil {
		return err
	}
	if len(s.Inter) > len(l.inter) || len(s.Params) > MaxParams+1 || len(s.Data) > MaxOSC {
		return errors.New("replay: unfinished sequence beyond its limits")
	}
	l.prefix, l.colons, l.dropped = s.Prefix, s.Colons, s.Dropped
	l.ninter = uint8(copy(l.inter[:], s.Inter))
	l.nparams = len(s.Params)
	copy(l.params[:], s.Params)
	l.data = append(l.data[:0], s.Data...)
	if (l.phase == dcsPass && !l.dropped || l.phase == dcsEnd) && len(l.data) == 0 {
		return errors.New("replay: device control string without its final byte")
	}
	return nil
}
