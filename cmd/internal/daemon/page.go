package daemon

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"looptape/cmd/internal/wire"
)

// list is the result of a verb that lists: {name: [...]}, with "more": true if
// something does not fit the frame.
type list struct {
	name  string
	items []json.RawMessage
	more  bool
}

// page makes the largest list of items, from the first on, that fits the answer
// to r. An item that would not fit alone is left out, and hides no other.
func page[T any](r *request, name string, items []T) (list, error) {
	l := list{name: name}
	whole := r.Room - len(`{"":[],"more":true}`) - len(name)
	room := whole
	for _, item := range items {
		raw, err := wire.Marshal(item)
		if err != nil {
			return l, err
		}
		size := len(raw) + 1
		l.more = l.more || size > room
		if size > whole {
			continue
		} else if size > room {
			break
		}
		room -= size
		l.items = append(l.items, raw)
	}
	return l, nil
}

// brief is s, or its beginning and an ellipsis if s takes more than n bytes in JSON,
// without its quotes.
func brief(s string, n int) string {
	if len(s) <= n && wire.StringLen(s)-2 <= n {
		return s
	}
	n -= len("…")
	at := 0
	for at < len(s) {
		_, size := utf8.DecodeRuneInString(s[at:])
		if n -= wire.StringLen(s[at:at+size]) - 2; n < 0 {
			break
		}
		at += size
	}
	return s[:at] + "…"
}

// briefList is texts, or if they take more than n bytes in JSON, as many of them as
// do not, and of the next one what brief leaves.
func briefList(texts []string, n int) []string {
	for i, s := range texts {
		short := brief(s, n-len(`"",`))
		if short != s {
			return append(slices.Clone(texts[:i]), short)
		}
		n -= wire.StringLen(s) + 1
	}
	return texts
}

// MarshalJSON is json.Marshaler's.
func (l list) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"` + l.name + `":[`)
	for i, item := range l.items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(item)
	}
	b.WriteByte(']')
	if l.more {
		b.WriteString(`,"more":true`)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
