package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxInteger is the largest integer that a result may hold: 2^53-1, the last
// one that every JSON reader represents exactly (seed 000, section 8).
const MaxInteger = 1<<53 - 1

// Marshal is json.Marshal with looptape's text rule: ", \ and the controls
// U+0000-001F are escaped, every other character stands for itself.
func Marshal(v any) ([]byte, error) { return marshal(v, false) }

// marshalResult is Marshal for a result: an integer above MaxInteger in it is an
// internal.result error.
func marshalResult(v any) ([]byte, error) { return marshal(v, true) }

func marshal(v any, bounded bool) ([]byte, error) {
	var buf bytes.Buffer
	if err := encode(&buf, v, bounded); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// encodeFrame is a frame to a client whose body is a result.
func encodeFrame(id int64, name string, v any) ([]byte, error) {
	var buf bytes.Buffer
	buf.Write(frameHead(&id, name))
	if err := encode(&buf, v, true); err != nil {
		return nil, err
	}
	buf.WriteString("}\n")
	return buf.Bytes(), nil
}

// encode appends v.
func encode(buf *bytes.Buffer, v any, bounded bool) error {
	head := buf.Len()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return &Error{Code: "internal.result", Message: "the result cannot be written as JSON: " + err.Error()}
	}
	n, err := plain(buf.Bytes()[head:buf.Len()-1], bounded) // without the encoder's LF
	buf.Truncate(head + n)
	return err
}

// plain rewrites, in place, the escapes that encoding/json makes beyond what
// JSON requires (U+2028, U+2029, U+FFFD), and refuses integers that are too
// large if they are bounded. src is valid JSON; what else is escaped in it comes
// from a json.RawMessage and stays as it is, halves of surrogate pairs among it.
// It returns the length that is
// left.
func plain(src []byte, bounded bool) (int, error) {
	out, from, inString := src[:0], 0, false // src[from:i] is yet to be copied
	for i := 0; i < len(src); {
		n := 1
		switch c := src[i]; {
		case !inString && c >= '0' && c <= '9':
			n = number(src[i:])
			if bounded && tooLarge(src[i:i+n]) {
				return 0, &Error{Code: "internal.result", Message: fmt.Sprintf("the result holds %s, which is above 2^53-1", src[i:i+n])}
			}
		case c == '"':
			inString = !inString
		case c == '\\':
			n = 2
			if r, ok := needless(src[i:]); ok {
				out = utf8.AppendRune(append(out, src[from:i]...), r)
				n = len(`\u0000`)
				from = i + n
			}
		}
		i += n
	}
	return len(append(out, src[from:]...)), nil
}

// needless says whether b begins with an escape of encoding/json's that JSON
// does not require, and for which character it stands.
func needless(b []byte) (rune, bool) {
	if len(b) < len(`\u0000`) || b[1] != 'u' {
		return 0, false
	}
	r, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(r), err == nil && (r == 0x2028 || r == 0x2029 || r == 0xFFFD)
}

// number is the length of the number that b begins with, without its sign.
func number(b []byte) int {
	n := 0
	for n < len(b) && strings.IndexByte("0123456789.eE+-", b[n]) >= 0 {
		n++
	}
	return n
}

// tooLarge says whether a number without its sign is an integer above MaxInteger.
func tooLarge(b []byte) bool {
	if len(b) < len("9007199254740991") || bytes.ContainsAny(b, ".eE") {
		return false
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	return err != nil || n > MaxInteger
}

// StringLen is the number of bytes that Marshal makes of the string s, both
// quotes included. s is valid UTF-8.
func StringLen[T string | []byte](s T) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < 0x20:
			n += len(`\u0000`) - 1
		}
	}
	return n
}
