package capture

import (
	"errors"
	"math"
	"unicode/utf8"

	"looptape/replay"
)

// filter makes text of a stream: printable characters, LF and TAB stay,
// everything else that a terminal obeys goes (contract.md, section 7). The zero
// filter stands at the beginning of a stream.
//
// A run of CR before LF gives one LF. A lone CR becomes LF before the next
// printable character or TAB, and nothing if none comes. The terminal's own
// lexer decides what is text.
type filter struct {
	lexer replay.Lexer
	cr    bool // a CR waits for what follows it

	// Limits of what is still to be given; a character is given whole.
	bytes, lines int
	// given says that there was a character: the first one is given even if it
	// is larger than the limit.
	given bool
}

// unlimited is a limit that is never reached.
const unlimited = math.MaxInt

// feed appends the text of p to dst until a limit is reached, and returns how
// many bytes of p it took: len(p), unless there is text that the limits refuse.
func (f *filter) feed(dst, p []byte) (text []byte, taken int) {
	var before [8]byte
	for taken < len(p) {
		state := f.lexer.AppendState(before[:0])
		tok, n := f.lexer.Next(p[taken:])
		rest := 0 // bytes at the end of this token's n that are not taken
		switch {
		case tok.Kind == replay.Control && tok.Code == '\r':
			f.cr = true
		case tok.Kind == replay.Control && tok.Code == '\n':
			if !f.admit(1) {
				f.lexer.SetState(state) // that AppendState made: it cannot fail
				return dst, taken
			}
			f.cr = false
			dst = f.newline(dst)
		case tok.Kind == replay.Control && tok.Code == '\t':
			dst, rest = f.text(dst, []byte{'\t'})
		case tok.Kind == replay.Text:
			dst, rest = f.text(dst, tok.Text)
		}
		if rest > 0 {
			if rest == len(tok.Text) || tok.Kind == replay.Control {
				f.lexer.SetState(state)
				return dst, taken
			}
			return dst, taken + n - rest // within a run: the lexer is in the ground state
		}
		taken += n
	}
	return dst, taken
}

// replacement stands for a character that is none.
const replacement = "\uFFFD"

// finish appends what an unfinished character leaves when nothing can follow.
func (f *filter) finish(dst []byte) []byte {
	if len(f.lexer.Held()) == 0 {
		return dst
	}
	held := f.lexer.AppendState(nil)
	f.lexer.Reset()
	text, rest := f.text(dst, []byte(replacement))
	if rest > 0 {
		f.lexer.SetState(held)
	}
	return text
}

// admit says whether n more bytes may be given.
func (f *filter) admit(n int) bool {
	return f.lines > 0 && (n <= f.bytes || !f.given)
}

func (f *filter) newline(dst []byte) []byte {
	f.lines--
	f.bytes--
	f.given = true
	return append(dst, '\n')
}

// text appends the run s, with the LF that a CR in front of it becomes. It
// returns how many bytes of s the limits left out.
func (f *filter) text(dst, s []byte) ([]byte, int) {
	if f.cr {
		if !f.admit(1) {
			return dst, len(s)
		}
		dst, f.cr = f.newline(dst), false
	}
	n := len(s)
	if f.lines <= 0 {
		n = 0
	} else if n > f.bytes {
		n = max(f.bytes, 0)
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		if n == 0 && !f.given {
			_, n = utf8.DecodeRune(s)
		}
	}
	if n > 0 {
		f.bytes -= n
		f.given = true
	}
	return append(dst, s[:n]...), len(s) - n
}

// appendState appends the place of f in the stream, at most 5 bytes:
//
//	0  flags  u8         bit 0: a CR waits
//	1  lexer  1..4 bytes replay.Lexer.AppendState
func (f *filter) appendState(dst []byte) []byte {
	flags := byte(0)
	if f.cr {
		flags = 1
	}
	return f.lexer.AppendState(append(dst, flags))
}

// setState undoes appendState; the limits stay.
func (f *filter) setState(b []byte) error {
	if len(b) < 2 || b[0] > 1 {
		return errors.New("malformed filter state")
	}
	f.cr = b[0] == 1
	return f.lexer.SetState(b[1:])
}
