package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// sinceParams are what capture_since takes besides the parameters of
// pane.capture_since (seed 001).
var sinceParams = []manifest.Param{
	{Name: "pane_id", Summary: "The same as pane; %0 is p0", Type: manifest.String},
	{Name: "session_id", Summary: "Read the one pane of this session", Type: manifest.String},
	{Name: "session_name", Summary: "Read the one pane of the session of this name", Type: manifest.String},
	{Name: "window_id", Summary: "Read the pane of this window", Type: manifest.String},
}

// sinceFields are what it answers besides.
var sinceFields = []manifest.Field{
	{Name: "pane_id", Type: manifest.String, Summary: "The same as pane"},
	{Name: "lines", Type: manifest.Array, Elem: manifest.String, Summary: "The lines of text; the last one may go on in the next answer"},
	{Name: "lines_missed", Type: manifest.Boolean, Summary: "The same as missed"},
}

// captureSince is the tool of that name: pane.capture_since for agents that know
// the tools which others offer under this name (contract.md, section 7).
func captureSince() tool {
	v := manifest.Find("pane.capture_since")
	t := tool{
		verb: v, name: "capture_since", nulls: true,
		notes:  "Null stands for what is not given, and of max_lines and max_bytes for no limit.",
		params: append(append([]manifest.Param{}, v.Params...), sinceParams...),
		result: append(append([]manifest.Field{}, v.Result...), sinceFields...),
	}
	t.run = func(ctx context.Context, l *link, args arguments) (json.RawMessage, error) {
		params, err := sinceArguments(ctx, l, v, args)
		if err != nil {
			return nil, err
		}
		result, err := l.call(ctx, v, params)
		if err != nil {
			return nil, err
		}
		return sinceResult(result)
	}
	return t
}

// sinceArguments are the parameters of pane.capture_since for those of
// capture_since. What is wrong with them is left for the daemon to say.
func sinceArguments(ctx context.Context, l *link, v *manifest.Verb, args arguments) (arguments, error) {
	params, where := arguments{}, arguments{}
	for name, raw := range args {
		null := string(raw) == "null"
		switch name {
		case "max_lines", "max_bytes":
			if null {
				raw, _ = json.Marshal(v.Param(name).Max)
			}
			params[name] = raw
		case "session_id", "session_name", "window_id":
			if !null {
				where[name] = raw
			}
		default:
			if !null {
				params[name] = raw
			}
		}
	}
	if id, given := params["pane_id"]; given {
		delete(params, "pane_id")
		id = ownID(id, "%", "p")
		if pane, both := params["pane"]; both && !bytes.Equal(ownID(pane, "%", "p"), id) {
			return nil, invalid("pane", "pane_id", "pane and pane_id name two panes")
		}
		params["pane"] = id
	} else if pane, given := params["pane"]; given {
		params["pane"] = ownID(pane, "%", "p")
	}
	if len(where) > 0 {
		found, err := findPane(ctx, l, where)
		if err != nil {
			return nil, err
		}
		if pane, both := params["pane"]; both && !bytes.Equal(pane, found) {
			return nil, invalid("pane", "pane", fmt.Sprintf("the pane asked for is not %s, which is the one there", found))
		}
		params["pane"] = found
	}
	return params, nil
}

// ownID makes looptape's id of one that tmux would give: %0 is p0.
func ownID(raw json.RawMessage, sigil, kind string) json.RawMessage {
	if digits, ok := bytes.CutPrefix(raw, []byte(`"`+sigil)); ok {
		return append([]byte(`"`+kind), digits...)
	}
	return raw
}

// findPane finds the one pane, among those that the caller may read, that is in
// the session or window asked for.
func findPane(ctx context.Context, l *link, where arguments) (json.RawMessage, error) {
	var asked struct {
		Session *string `json:"session_id"`
		Name    *string `json:"session_name"`
		Window  *string `json:"window_id"`
	}
	for name, raw := range where {
		if raw[0] != '"' {
			return nil, invalid("type", name, name+" must be a string")
		}
		kind, sigil := name[:1], map[string]string{"session_id": "$", "window_id": "@"}[name]
		if sigil != "" {
			where[name] = ownID(raw, sigil, kind)
		}
	}
	if err := decode(where, &asked); err != nil {
		return nil, err
	}
	named := map[string]bool{}
	if asked.Name != nil {
		var all struct {
			Sessions []struct{ Session, Name string } `json:"sessions"`
			More     bool                             `json:"more"`
		}
		if err := list(ctx, l, "session.list", &all, &all.More); err != nil {
			return nil, err
		}
		for _, s := range all.Sessions {
			named[s.Session] = s.Name == *asked.Name
		}
	}
	var all struct {
		Panes []struct{ Pane, Window, Session string } `json:"panes"`
		More  bool                                     `json:"more"`
	}
	if err := list(ctx, l, "pane.list", &all, &all.More); err != nil {
		return nil, err
	}
	var found []string
	for _, p := range all.Panes {
		if (asked.Session == nil || p.Session == *asked.Session) && (asked.Name == nil || named[p.Session]) && (asked.Window == nil || p.Window == *asked.Window) {
			found = append(found, p.Pane)
		}
	}
	switch len(found) {
	case 0:
		return nil, &wire.Error{Code: "not_found.pane", Message: "no pane there that you may read: pane.list shows those there are"}
	case 1:
		return wire.Marshal(found[0])
	}
	return nil, &wire.Error{
		Code: "invalid_params.pane", Message: "there are several panes there: name one by pane_id",
		Data: map[string]any{"param": "pane_id", "reason": "ambiguous", "panes": found},
	}
}

// list calls a verb that lists. A list that does not fit the frame finds nothing
// for certain.
func list(ctx context.Context, l *link, verb string, into any, more *bool) error {
	raw, err := l.call(ctx, manifest.Find(verb), arguments{})
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err == nil && *more {
		err = &wire.Error{Code: "unsupported.result_size", Message: "there are more panes than a list holds: name one by pane_id"}
	}
	return err
}

// sinceResult adds the fields of capture_since to a result of
// pane.capture_since.
func sinceResult(result json.RawMessage) (json.RawMessage, error) {
	var r struct {
		Pane   string  `json:"pane"`
		Missed bool    `json:"missed"`
		Text   *string `json:"text"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return nil, err
	}
	added := struct {
		Pane   string   `json:"pane_id"`
		Lines  []string `json:"lines"`
		Missed bool     `json:"lines_missed"`
	}{r.Pane, []string{}, r.Missed}
	if r.Text != nil && *r.Text != "" {
		added.Lines = strings.Split(strings.TrimSuffix(*r.Text, "\n"), "\n")
	}
	more, err := wire.Marshal(added)
	if err != nil {
		return nil, err
	}
	whole := append(json.RawMessage{}, result[:len(result)-1]...)
	return append(append(whole, ','), more[1:]...), nil
}
