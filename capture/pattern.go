package capture

import (
	"bytes"
	"regexp"
	"regexp/syntax"
)

// maxPattern bounds a pattern, in bytes.
const maxPattern = 4096

// compile reads a pattern in RE2 syntax. Its error is invalid_params.pattern.
func compile(pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err == nil && len(pattern) <= maxPattern {
		return re, nil
	}
	message := "the pattern is longer than 4096 bytes"
	if err != nil {
		message = "the pattern is no RE2 expression: " + err.Error()
	}
	return nil, &Error{"invalid_params.pattern", message, struct {
		Param string `json:"param"`
	}{"pattern"}}
}

// matcher makes a test of a pattern. A text that each match has to contain is
// looked for first, since that costs a tenth.
func matcher(pattern string) (func([]byte) bool, error) {
	re, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	parsed = parsed.Simplify()
	literal := []byte(required(parsed))
	if parsed.Op == syntax.OpLiteral && len(literal) > 0 {
		return func(line []byte) bool { return bytes.Contains(line, literal) }, nil
	}
	return func(line []byte) bool { return bytes.Contains(line, literal) && re.Match(line) }, nil
}

// required is the longest text that it finds which every match of re contains; "" is
// in everything.
func required(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if text := required(sub); len(text) > len(longest) {
				longest = text
			}
		}
		return longest
	}
	return ""
}
