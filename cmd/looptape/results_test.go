package main_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"looptape/cmd/internal/manifest"
)

// verbCall is one call of TestResults.
type verbCall struct {
	verb   string
	params obj
}

// verbCalls call every verb, on a running pane p0, on p1 that has exited, and
// on what they make themselves.
var verbCalls = []verbCall{
	{"session.create", obj{}},
	{"session.create", obj{"name": "named"}},
	{"session.create", obj{"provisional": true}},
	{"session.list", obj{}},
	{"window.create", obj{"session": "s2", "argv": []string{"/bin/cat"}}},
	{"window.list", obj{}},
	{"pane.list", obj{}},
	{"pane.get", obj{"pane": "p0"}},
	{"pane.get", obj{"pane": "p1"}},
	{"pane.write", obj{"pane": "p0", "text": "a\n"}},
	{"pane.send_keys", obj{"pane": "p0", "keys": []string{"b", "Enter"}}},
	{"pane.resize", obj{"pane": "p0", "cols": 30, "rows": 5}},
	{"pane.capture", obj{"pane": "p0"}},
	{"pane.capture", obj{"pane": "p1"}},
	{"pane.capture_at", obj{"pane": "p1", "offset": 3}},
	{"pane.capture_rows", obj{"pane": "p1"}},
	{"pane.capture_rows", obj{"pane": "p1", "max_rows": 1}},
	{"pane.capture_since", obj{"pane": "p1"}},
	{"pane.capture_since", obj{"pane": "p1", "since": 0}},
	{"pane.capture_since", obj{"pane": "p1", "since": 0, "format": "raw"}},
	{"pane.capture_since", obj{"pane": "p1", "format": "rows"}},
	{"pane.search", obj{"pane": "p1", "pattern": "[0-9]"}},
	{"pane.wait", obj{"pane": "p1", "since": 0, "pattern": "[0-9]"}},
	{"pane.wait", obj{"pane": "p1", "exit": true}},
	{"pane.commands", obj{"pane": "p1"}},
	{"pane.export", obj{"pane": "p1"}},
	{"pane.export", obj{"pane": "p1", "format": "raw"}},
	{"pane.export", obj{"pane": "p1", "format": "html", "from": 1}},
	{"pane.verify", obj{"pane": "p1"}},
	{"pane.import", obj{"session": "s0", "data": []byte("{\"version\":2,\"width\":20,\"height\":4}\n[1,\"o\",\"a\"]\n")}},
	{"pane.import", obj{"session": "s0", "data": []byte("{\"version\":2,\"width\":20,\"height\":4}\n[1,\"o\",\"a\"]\n"), "end": true}},
	{"pane.respawn", obj{"pane": "p1", "argv": []string{"/bin/cat"}}},
	{"doctor", obj{}},
	{"events", obj{"after": 0, "limit": 8}},
	{"grant.create", obj{"name": "reader", "right": "read", "scope": []string{"pane:p0"}}},
	{"grant.list", obj{}},
	{"grant.revoke", obj{"name": "reader"}},
	{"manifest", obj{}},
	{"skill", obj{}},
	{"pane.kill", obj{"pane": "p0"}},
	{"pane.delete", obj{"pane": "p0"}},
	{"window.kill", obj{"window": "w2"}},
	{"session.kill", obj{"session": "s0"}},
}

// TestResults: what each verb answers is what the manifest says that it
// answers, on the wire and over MCP, and nothing else.
func TestResults(t *testing.T) {
	var called []string
	for _, over := range []string{"wire", "MCP"} {
		s := newServer(t)
		c := s.client()
		s.run(c, 20, 4, "/bin/cat")
		s.run(c, 20, 4, "/bin/sh", "-c", "seq 1 9; exit 3")
		s.until(c, "p1", "exited", func(p paneInfo) bool { return p.State == "exited" })
		session := s.mcp()
		schemas := map[string]*mcp.Tool{}
		for tool, err := range session.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			schemas[tool.Name] = tool
		}
		for _, call := range verbCalls {
			v := manifest.Find(call.verb)
			called = append(called, call.verb)
			if over == "MCP" {
				result := tool[any](t, session, v.Tool(), call.params)
				if err := resolve(t, parseSchema(t, schemas[v.Tool()].OutputSchema)).Validate(result); err != nil {
					t.Errorf("%s %v: %v", v.Tool(), call.params, err)
				}
				if v.Name != "pane.export" && v.Name != "events" { // which are paged
					conform(t, v.Name, v.Result, result)
				}
				continue
			}
			raw, err := c.Stream(s.ctx, v.Name, call.params, func(item json.RawMessage) error {
				conform(t, v.Name+" item", v.Item, decodeAny(t, item))
				return nil
			})
			if err != nil {
				t.Errorf("%s %v: %v", v.Name, call.params, err)
				continue
			}
			conform(t, v.Name, v.Result, decodeAny(t, raw))
		}
	}
	for _, v := range manifest.Verbs {
		if !v.Binary && !slices.Contains(called, v.Name) {
			t.Errorf("nothing calls %s here", v.Name)
		}
	}
}

func decodeAny(t *testing.T, raw json.RawMessage) (value any) {
	t.Helper()
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// conform checks that value is an object of exactly these fields.
func conform(t *testing.T, where string, fields []manifest.Field, value any) {
	t.Helper()
	object, ok := value.(map[string]any)
	if !ok {
		t.Errorf("%s is %T, no object", where, value)
		return
	}
	left := map[string]bool{}
	for name := range object {
		left[name] = true
	}
	for _, f := range fields {
		value, given := object[f.Name]
		delete(left, f.Name)
		switch {
		case !given && !f.Optional:
			t.Errorf("%s has no %s", where, f.Name)
		case given:
			conformField(t, where+"."+f.Name, f, value)
		}
	}
	for name := range left {
		t.Errorf("%s has %s, which the manifest does not know", where, name)
	}
}

func conformField(t *testing.T, where string, f manifest.Field, value any) {
	t.Helper()
	right := false
	switch f.Type {
	case manifest.String:
		text, ok := value.(string)
		right = ok && (f.Choices == nil || slices.Contains(f.Choices, text))
	case manifest.Bytes:
		_, right = value.(string)
	case manifest.Time:
		text, _ := value.(string)
		_, err := time.Parse(time.RFC3339Nano, text)
		right = err == nil && strings.HasSuffix(text, "Z")
	case manifest.Integer:
		n, ok := value.(float64)
		right = ok && n == float64(int64(n))
	case manifest.Number:
		_, right = value.(float64)
	case manifest.Boolean:
		_, right = value.(bool)
	case manifest.Value:
		right = true
	case manifest.Object:
		right = true
		conform(t, where, f.Fields, value)
	case manifest.Array:
		var list []any
		list, right = value.([]any)
		for i, elem := range list {
			where := fmt.Sprintf("%s[%d]", where, i)
			if f.Fields != nil {
				conform(t, where, f.Fields, elem)
			} else if f.Elem != manifest.Object {
				conformField(t, where, manifest.Field{Type: f.Elem}, elem)
			}
		}
	}
	if !right {
		t.Errorf("%s is %v, no %s %v", where, value, f.Type, f.Choices)
	}
}
