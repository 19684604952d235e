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
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, &Error{Code: "internal.result", Message: "the result cannot be written as JSON: " + err.Error()}
	}
	return plain(bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), bounded)
}

// plain rewrites, in place, the escapes that encoding/json makes beyond what
// JSON requires (U+2028, U+2029, U+FFFD), and refuses integers that are too
// large if they are bounded. It relies on src being encoding/json's own output.
func plain(src []byte, bounded bool) ([]byte, error) {
	out, inString := src[:0], false
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case !inString && c >= '0' && c <= '9':
			n := number(src[i:])
			if bounded && tooLarge(src[i:i+n]) {
				return nil, &Error{Code: "internal.result", Message: fmt.Sprintf("the result holds %s, which is above 2^53-1", src[i:i+n])}
			}
			out = append(out, src[i:i+n]...)
			i += n
			continue
		case c == '"':
			inString = !inString
		case c == '\\' && i+5 < len(src) && src[i+1] == 'u':
			if r, err := strconv.ParseUint(string(src[i+2:i+6]), 16, 32); err == nil && r >= 0x80 {
				out = utf8.AppendRune(out, rune(r))
				i += 6
				continue
			}
			fallthrough
		case c == '\\':
			out = append(out, c, src[i+1])
			i += 2
			continue
		}
		out = append(out, c)
		i++
	}
	return out, nil
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
