package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Problem says what is wrong with one parameter of a request.
type Problem struct {
	Reason  string // missing, unknown, type, range or choice
	Param   string
	Message string
}

// Check checks params against v and adds the defaults of those that are absent.
// It returns the first problem: unknown names first, in order of name, then the
// parameters in the manifest's order.
func (v *Verb) Check(params map[string]json.RawMessage) *Problem {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if v.Param(name) == nil {
			return &Problem{"unknown", name, fmt.Sprintf("%s has no parameter %q", v.Name, name)}
		}
	}
	for i := range v.Params {
		p := &v.Params[i]
		raw, given := params[p.Name]
		switch {
		case given:
			if problem := p.check(raw); problem != nil {
				return problem
			}
			if p.Type == Integer && string(raw) == "-0" {
				params[p.Name] = json.RawMessage("0")
			}
		case p.Required:
			return &Problem{"missing", p.Name, fmt.Sprintf("%s needs %s: %s", v.Name, p.Name, p.Summary)}
		case p.Default != nil:
			params[p.Name], _ = json.Marshal(p.Default)
		}
	}
	return nil
}

// CheckString checks that the parameter name is there and a string, as the
// check of a caller's rights needs it before any other check.
func (v *Verb) CheckString(params map[string]json.RawMessage, name string) (string, *Problem) {
	raw, given := params[name]
	if !given {
		return "", &Problem{"missing", name, fmt.Sprintf("%s needs %s", v.Name, name)}
	}
	var s string
	if problem := decode(raw, &s, name, "a string"); problem != nil {
		return "", problem
	}
	return s, nil
}

func (p *Param) check(raw json.RawMessage) *Problem {
	switch p.Type {
	case Integer:
		return p.checkInteger(raw)
	case Boolean:
		var b bool
		return decode(raw, &b, p.Name, "true or false")
	case Array:
		var list []text
		if problem := decode(raw, &list, p.Name, "an array of strings"); problem != nil {
			return problem
		}
		total := 0
		for _, s := range list {
			total += len(s) + 1
		}
		return p.checkBytes(total)
	case Object:
		var object map[string]text
		if problem := decode(raw, &object, p.Name, "an object whose values are strings"); problem != nil {
			return problem
		}
		total := 0
		for name, s := range object {
			total += len(name) + 1 + len(s) + 1
		}
		return p.checkBytes(total)
	case Bytes:
		var data base64Text
		return decode(raw, &data, p.Name, "a string in base64")
	}
	var s string
	if problem := decode(raw, &s, p.Name, "a string"); problem != nil {
		return problem
	}
	if p.Choices != nil && !slices.Contains(p.Choices, s) {
		return &Problem{"choice", p.Name, fmt.Sprintf("%s must be one of %s", p.Name, strings.Join(p.Choices, ", "))}
	}
	return p.checkBytes(len(s))
}

// checkBytes checks the length of a text, or of all texts of a list.
func (p *Param) checkBytes(n int) *Problem {
	if p.MaxBytes == 0 || n <= p.MaxBytes {
		return nil
	}
	return &Problem{"range", p.Name, fmt.Sprintf("%s has %d bytes: it may have at most %d", p.Name, n, p.MaxBytes)}
}

// text decodes a string and, unlike string itself, refuses null.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return errors.New("not a string")
	}
	return json.Unmarshal(b, (*string)(t))
}

// base64Text decodes bytes in base64 and refuses an array of numbers.
type base64Text []byte

func (t *base64Text) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return errors.New("not a string")
	}
	return json.Unmarshal(b, (*[]byte)(t))
}

func decode(raw json.RawMessage, into any, name, want string) *Problem {
	if bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, into) != nil {
		return &Problem{"type", name, fmt.Sprintf("%s must be %s", name, want)}
	}
	return nil
}

// maxDigits is how many bytes an integer may be written in to be one that is out of
// range. The time that reading it takes grows with their square.
const maxDigits = 4096

func (p *Param) checkInteger(raw json.RawMessage) *Problem {
	notInteger := &Problem{"type", p.Name, fmt.Sprintf("%s must be an integer", p.Name)}
	if len(raw) > maxDigits {
		return notInteger
	}
	n, ok := new(big.Int).SetString(string(raw), 10) // of any size: too large is a range error
	if !ok {
		return notInteger
	}
	lowest, highest := int64(-Largest), int64(Largest)
	if p.Min != nil {
		lowest = *p.Min
	}
	if p.Max != nil {
		highest = *p.Max
	}
	if n.Cmp(big.NewInt(lowest)) < 0 || n.Cmp(big.NewInt(highest)) > 0 {
		return &Problem{"range", p.Name, fmt.Sprintf("%s must be from %d to %d", p.Name, lowest, highest)}
	}
	return nil
}
