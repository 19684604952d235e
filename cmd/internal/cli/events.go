package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// printEvent prints an event in one line: when, what, to what, and its data.
func printEvent(w io.Writer, item json.RawMessage) error {
	var e struct {
		TS       time.Time       `json:"ts"`
		Event    string          `json:"event"`
		Resource string          `json:"resource"`
		Data     json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(item, &e); err != nil {
		return err
	}
	data, err := plain(e.Data)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s  %-10s  %-9s  %s", e.TS.Local().Format("2006-01-02T15:04:05.000Z07:00"), e.Resource, e.Event, data)
	_, err = fmt.Fprintln(w, strings.TrimRight(line, " "))
	return err
}

// plain writes the members of a JSON object, in their order, as name=value. Strings
// are quoted unless they are words, so that what a program says stays in its place.
func plain(object json.RawMessage) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.UseNumber()
	var parts []string
	if _, err := dec.Token(); err != nil { // its brace
		return "", err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return "", err
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return "", err
		}
		parts = append(parts, fmt.Sprintf("%v=%s", name, word(value)))
	}
	return strings.Join(parts, " "), nil
}

func word(value any) string {
	switch v := value.(type) {
	case string:
		if quoted := strconv.Quote(v); v == "" || strings.ContainsAny(v, " =") || quoted != `"`+v+`"` {
			return quoted
		}
		return v
	case map[string]any: // how a program ended: one member
		for name, v := range v {
			return fmt.Sprintf("%s:%v", name, v)
		}
	}
	return fmt.Sprint(value)
}
