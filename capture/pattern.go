package capture

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// maxPattern bounds a pattern, in bytes.
	maxPattern = 4096
	// maxProgram bounds what a pattern is compiled to, in instructions: about 100 μs for
	// a byte that all of them are tried on.
	maxProgram = 10000
	// longMatch is how many instructions times bytes may be tried before anybody asks
	// whether the answer is still wanted: some 50 ms.
	longMatch = 4 << 20
)

// pattern is a compiled pattern.
type pattern struct {
	re      *regexp.Regexp
	literal []byte // each match contains it
	plain   bool   // and that is a match
	size    int    // in instructions
}

// compile reads a pattern in RE2 syntax. Its error is invalid_params.pattern.
func compile(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, patternError("the pattern is longer than 4096 bytes")
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, patternError("the pattern is no RE2 expression: " + err.Error())
	}
	p := &pattern{size: instructions(parsed)}
	if p.size > maxProgram {
		return nil, patternError("the pattern repeats too much: written out it would have more than 10000 parts")
	}
	if p.re, err = regexp.Compile(text); err != nil {
		return nil, patternError("the pattern is no RE2 expression: " + err.Error())
	}
	parsed = parsed.Simplify()
	p.literal = []byte(required(parsed))
	p.plain = parsed.Op == syntax.OpLiteral && len(p.literal) > 0
	return p, nil
}

func patternError(message string) error {
	return &Error{"invalid_params.pattern", message, struct {
		Param string `json:"param"`
	}{"pattern"}}
}

// match reports whether a line matches. A text that each match has to contain is
// looked for first, since that costs a tenth.
func (p *pattern) match(ctx context.Context, line []byte) (bool, error) {
	if !bytes.Contains(line, p.literal) {
		return false, nil
	}
	if p.plain {
		return true, nil
	}
	if !p.isLong(line) {
		return p.re.Match(line), nil
	}
	found := p.re.MatchReader(&runes{ctx: ctx, rest: line})
	return found, ctx.Err()
}

// find returns where the first match in a line begins and ends, or nil.
func (p *pattern) find(ctx context.Context, line []byte) ([]int, error) {
	if !p.isLong(line) {
		return p.re.FindIndex(line), nil
	}
	at := p.re.FindReaderIndex(&runes{ctx: ctx, rest: line})
	return at, ctx.Err()
}

func (p *pattern) isLong(line []byte) bool { return p.size*len(line) > longMatch }

// cost is what looking for p in bytes costs, in bytes of a usual pattern.
func (p *pattern) cost(bytes uint64) uint64 { return bytes * uint64(1+p.size/32) }

// runes reads a line, up to its end or the context's.
type runes struct {
	ctx  context.Context
	rest []byte
	read int
}

// ReadRune is io.RuneReader's.
func (r *runes) ReadRune() (rune, int, error) {
	if r.read++; len(r.rest) == 0 || r.read%256 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRune(r.rest)
	r.rest = r.rest[n:]
	return c, n, nil
}

// instructions is how many instructions re is compiled to at most; 1<<30 stands for more.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpConcat:
	case syntax.OpAlternate:
		n += len(re.Sub)
	case syntax.OpRepeat:
		most := max(re.Min, re.Max, 1)
		n = n*most + max(most-re.Min, 2)
	case syntax.OpStar, syntax.OpCapture:
		n += 2
	default:
		n++
	}
	return min(n, 1<<30)
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
