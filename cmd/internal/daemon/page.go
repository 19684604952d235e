package daemon

import (
	"bytes"
	"encoding/json"

	"looptape/cmd/internal/wire"
)

// list is the result of a verb that lists: {name: [...]}, with "more": true if
// the rest does not fit the frame.
type list struct {
	name  string
	items []json.RawMessage
	more  bool
}

// page makes the largest list of items, from the first on, that fits the answer
// to r.
func page[T any](r *request, name string, items []T) (list, error) {
	l := list{name: name}
	room := r.Room - len(`{"":[],"more":true}`) - len(name)
	for _, item := range items {
		raw, err := wire.Marshal(item)
		if err != nil {
			return l, err
		}
		if room -= len(raw) + 1; room < 0 {
			l.more = true
			break
		}
		l.items = append(l.items, raw)
	}
	return l, nil
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
