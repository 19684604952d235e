package main_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"looptape/cmd/internal/manifest"
)

// mcp starts "looptape mcp" on the daemon's directory, as the owner unless args
// say otherwise, and connects to it by the SDK's own client.
func (s *server) mcp(args ...string) *mcp.ClientSession {
	s.t.Helper()
	return startMCP(s.t, s.dir, args...)
}

func startMCP(t testing.TB, dir string, args ...string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command("looptape", append([]string{"mcp", "--dir", dir}, args...)...)
	cmd.Env = append(os.Environ(), "LOOPTAPE_TOKEN=@owner")
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// tool calls a tool and decodes its structured content into a T. The text must
// say the same.
func tool[T any](t testing.TB, c *mcp.ClientSession, name string, args obj) T {
	t.Helper()
	result, err := tryTool[T](t, c, name, args)
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return result
}

// toolError is the error object of a tool call.
type toolError struct {
	Code    string
	Message string
	Data    map[string]any
}

func (e *toolError) Error() string { return e.Code + ": " + e.Message }

// tryTool is tool, with a failure as a *toolError.
func tryTool[T any](t testing.TB, c *mcp.ClientSession, name string, args obj) (result T, err error) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: an error of the protocol: %v", name, args, err)
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Content) != 1 {
		t.Fatalf("%s: %d contents", name, len(r.Content))
	}
	var text, structured any
	if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &text); err != nil {
		t.Fatalf("%s: the text is no JSON: %v", name, err)
	}
	json.Unmarshal(raw, &structured)
	if fmt.Sprint(text) != fmt.Sprint(structured) {
		t.Fatalf("%s: the text says %v, the content %v", name, text, structured)
	}
	if r.IsError {
		var e struct{ Error *toolError }
		if err := json.Unmarshal(raw, &e); err != nil || e.Error == nil {
			t.Fatalf("%s failed with %s", name, raw)
		}
		return result, e.Error
	}
	return result, json.Unmarshal(raw, &result)
}

// wantTool expects a call to fail with a code.
func wantTool(t *testing.T, c *mcp.ClientSession, code, name string, args obj) *toolError {
	t.Helper()
	_, err := tryTool[any](t, c, name, args)
	e, ok := err.(*toolError)
	if !ok || e.Code != code {
		t.Fatalf("%s %v: %v, not %s", name, args, err, code)
	}
	return e
}

// TestMCPTools: one tool for each verb of the manifest, described in full.
func TestMCPTools(t *testing.T) {
	c := newServer(t).mcp()
	tools := map[string]*mcp.Tool{}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools[tool.Name] = tool
	}
	want := map[string]*manifest.Verb{"capture_since": manifest.Find("pane.capture_since")}
	for i := range manifest.Verbs {
		if v := &manifest.Verbs[i]; !v.Binary {
			want[v.Tool()] = v
		}
	}
	for name, v := range want {
		tool := tools[name]
		if tool == nil {
			t.Errorf("there is no tool %s", name)
			continue
		}
		a := tool.Annotations
		if reads := v.Right != manifest.Write && v.Right != manifest.Manage; reads {
			if !a.ReadOnlyHint || !a.IdempotentHint || !*a.OpenWorldHint || *a.DestructiveHint {
				t.Errorf("%s: %+v", name, a)
			}
		} else if v.Effect == "" {
			t.Errorf("%s: the manifest does not say its effect", v.Name)
		}
		if v.Right == manifest.Read && v.On == manifest.Pane && !strings.Contains(tool.Description, "sensitive") {
			t.Errorf("%s does not warn of what it returns", name)
		}
		input, output := parseSchema(t, tool.InputSchema), parseSchema(t, tool.OutputSchema)
		if resolve(t, input).Validate(obj{"no such parameter": 1}) == nil {
			t.Errorf("%s takes any argument", name)
		}
		for _, p := range v.Params {
			summary := p.Summary
			if p.MaxBytes > 0 {
				summary += fmt.Sprintf(" (at most %d bytes)", p.MaxBytes)
			}
			if said := input.Properties[p.Name].Description; said == "" || said != summary && name != "events" {
				t.Errorf("%s: the parameter %s is not described", name, p.Name)
			}
		}
		if resolve(t, output).Validate(obj{"error": obj{"code": "a.b", "message": "c"}}) != nil {
			t.Errorf("%s has no error", name)
		}
	}
	if len(tools) != len(want) {
		t.Errorf("%d tools for %d", len(tools), len(want))
	}
	for name, effect := range map[string]string{
		"session_dkill": "destroys, again the same", "pane_dwrite": "destroys", "session_dcreate": "", "pane_dresize": "again the same",
	} {
		a, got := tools[name].Annotations, []string{}
		if *a.DestructiveHint {
			got = append(got, "destroys")
		}
		if a.IdempotentHint {
			got = append(got, "again the same")
		}
		if strings.Join(got, ", ") != effect || a.ReadOnlyHint {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// parseSchema reads the schema of a tool's description.
func parseSchema(t *testing.T, described any) *jsonschema.Schema {
	t.Helper()
	s := &jsonschema.Schema{}
	raw, err := json.Marshal(described)
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil || s.Schema != "https://json-schema.org/draft/2020-12/schema" || s.Type != "object" {
		t.Fatalf("the schema %s: %v", raw, err)
	}
	return s
}

func resolve(t *testing.T, s *jsonschema.Schema) *jsonschema.Resolved {
	t.Helper()
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mcpRows is what the tests read of capture_rows.
type mcpRows struct {
	Epoch, Start, End uint64
	Next              *uint64
	Lines             []string
}

// TestMCPCalls: tools do what their verbs do, and fail as they fail.
func TestMCPCalls(t *testing.T) {
	s := newServer(t)
	c := s.mcp()
	type ids struct{ Session, Window, Pane string }
	session := tool[ids](t, c, "session_dcreate", obj{"name": "build"}).Session
	pane := tool[ids](t, c, "window_dcreate", obj{"session": session, "cols": 20, "rows": 4, "argv": []string{"/bin/sh", "-c", "seq 1 100; read x"}}).Pane
	s.until(s.client(), pane, "written", func(p paneInfo) bool { return p.Offset == 9*3+90*4+5 })

	r := tool[mcpRows](t, c, "pane_dcapture__rows", obj{"pane": pane, "tail": 3})
	if want := []string{fmt.Sprintf("%-20d", 99), fmt.Sprintf("%-20d", 100), fmt.Sprintf("%-20s", "")}; strings.Join(r.Lines, "|") != strings.Join(want, "|") {
		t.Errorf("rows %q", r.Lines)
	}
	if e := wantTool(t, c, "invalid_params.range", "pane_dcapture__rows", obj{"pane": pane, "max_rows": 0}); e.Data["param"] != "max_rows" {
		t.Errorf("data %v", e.Data)
	}
	for _, bad := range []obj{{"pane": pane, "max_rows": 10001}, {"pane": pane, "max_bytes": 0}, {"pane": pane, "tail": 0}, {"pane": pane, "start": -1}} {
		wantTool(t, c, "invalid_params.range", "pane_dcapture__rows", bad)
	}
	wantTool(t, c, "invalid_params.type", "pane_dcapture__rows", obj{"pane": pane, "max_rows": "1"})
	wantTool(t, c, "invalid_params.unknown", "pane_dcapture__rows", obj{"pane": pane, "rows": 1})
	wantTool(t, c, "invalid_params.missing", "pane_dcapture__rows", obj{})
	wantTool(t, c, "invalid_params.rows", "pane_dcapture__rows", obj{"pane": pane, "tail": 1, "epoch": 1})
	if e := wantTool(t, c, "conflict.epoch", "pane_dcapture__rows", obj{"pane": pane, "epoch": 0}); e.Data["end"] != 101.0 {
		t.Errorf("data %v", e.Data)
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "no_such_tool"}); err == nil {
		t.Error("a tool that does not exist answers")
	}
	for _, bad := range []any{[]int{1}, "x", 1} {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "pane_dget", Arguments: bad})
		if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "invalid_params.type") {
			t.Errorf("arguments %v: %v, %v", bad, r, err)
		}
	}
	tool[obj](t, c, "pane_dwrite", obj{"pane": pane, "text": "\n"})
	s.until(s.client(), pane, "exited", func(p paneInfo) bool { return p.State == "exited" })
	wantTool(t, c, "conflict.state", "pane_dwrite", obj{"pane": pane, "text": "\n"})
}

// TestMCPRights: without a token the tools read and change nothing.
func TestMCPRights(t *testing.T) {
	s := newServer(t)
	pane := s.run(s.client(), 20, 4, "/bin/cat")
	c := s.mcp("--token", "")
	tool[obj](t, c, "pane_dcapture", obj{"pane": pane})
	e := wantTool(t, c, "denied.write", "pane_dwrite", obj{"pane": pane, "text": "x"})
	if e.Data["right"] != "write" || e.Data["resource"] != "pane:"+pane {
		t.Errorf("data %v", e.Data)
	}
	wantTool(t, s.mcp("--token", "nobody's"), "denied.token", "pane_dget", obj{"pane": pane})
}

// TestMCPCaptureSince: the tool under its plain name, with the names of the
// tools that agents know.
func TestMCPCaptureSince(t *testing.T) {
	s := newServer(t)
	owner := s.client()
	session := call[struct{ Session string }](s, owner, "session.create", obj{"name": "web"}).Session
	made := call[struct{ Window, Pane string }](s, owner, "window.create", obj{"session": session, "cols": 30, "rows": 4, "argv": []string{"/bin/sh", "-c", "stty -echo; echo ready; while read x; do seq 1 $x; done"}})
	s.until(owner, made.Pane, "ready", func(p paneInfo) bool { return p.Offset == 7 })
	other := s.run(owner, 30, 4, "/bin/cat")
	c := s.mcp("--token", "")
	type since struct {
		Pane           string `json:"pane"`
		PaneID         string `json:"pane_id"`
		Cursor         string `json:"cursor"`
		Text           string `json:"text"`
		Lines          []string
		LinesMissed    *bool `json:"lines_missed"`
		Truncated      bool
		TruncatedLines *int `json:"truncated_lines"`
		First, More    bool
	}
	var first since
	for _, by := range []obj{
		{"pane_id": "%0"}, {"pane": "p0"}, {"pane": "%0"}, {"pane_id": "p0", "pane": "%0"}, {"session_id": "s0"}, {"session_id": "$0"},
		{"session_name": "web"}, {"window_id": "@0"}, {"window_id": made.Window, "session_name": "web", "pane": nil},
		{"pane_id": "%0", "cursor": nil, "max_lines": nil, "max_bytes": nil, "session_name": nil},
	} {
		first = tool[since](t, c, "capture_since", by)
		if first.Pane != "p0" || first.PaneID != "p0" || !first.First || first.Text != "ready" || strings.Join(first.Lines, "|") != "ready" || *first.LinesMissed || *first.TruncatedLines != 0 {
			t.Errorf("by %v: %+v", by, first)
		}
	}
	call[any](s, owner, "pane.write", obj{"pane": made.Pane, "text": "3000\n"})
	s.until(owner, made.Pane, "counted", func(p paneInfo) bool { return p.Offset == 7+9*3+90*4+900*5+2001*6 })
	all := tool[since](t, c, "capture_since", obj{"cursor": first.Cursor, "max_lines": nil, "max_bytes": nil})
	if len(all.Lines) != 3000 || all.Lines[2999] != "3000" || all.More {
		t.Errorf("%d lines, more: %v", len(all.Lines), all.More)
	}
	some := tool[since](t, c, "capture_since", obj{"cursor": first.Cursor})
	if len(some.Lines) != 500 || some.Lines[499] != "500" || !some.More || some.Truncated {
		t.Errorf("%d lines, more: %v", len(some.Lines), some.More)
	}
	tail := tool[since](t, c, "capture_since", obj{"cursor": first.Cursor, "keep": "tail"})
	if len(tail.Lines) != 500 || tail.Lines[0] != "2501" || !tail.Truncated || *tail.TruncatedLines != 2500 {
		t.Errorf("%d lines from %q, truncated: %v %d", len(tail.Lines), tail.Lines[0], tail.Truncated, *tail.TruncatedLines)
	}
	if none := tool[since](t, c, "capture_since", obj{"cursor": tail.Cursor}); none.Text != "" || len(none.Lines) != 0 {
		t.Errorf("nothing new: %+v", none)
	}
	raw := tool[struct{ Data string }](t, c, "capture_since", obj{"pane_id": "%0", "since": 0, "format": "raw", "max_bytes": 7})
	if data, err := base64.StdEncoding.DecodeString(raw.Data); err != nil || string(data) != "ready\r\n" {
		t.Errorf("raw %q", data)
	}

	if e := wantTool(t, c, "invalid_params.cursor", "capture_since", obj{"cursor": first.Cursor, "pane_id": other}); e.Data["reason"] != "pane" {
		t.Errorf("data %v", e.Data)
	}
	wantTool(t, c, "invalid_params.missing", "capture_since", obj{})
	wantTool(t, c, "invalid_params.type", "capture_since", obj{"pane_id": 0})
	wantTool(t, c, "invalid_params.type", "capture_since", obj{"session_name": 0})
	wantTool(t, c, "invalid_params.range", "capture_since", obj{"pane_id": "%0", "max_lines": 0})
	wantTool(t, c, "invalid_params.unknown", "capture_since", obj{"pane_id": "%0", "socket_name": "x"})
	wantTool(t, c, "invalid_params.pane", "capture_since", obj{"pane_id": "%0", "pane": "p1"})
	wantTool(t, c, "not_found.pane", "capture_since", obj{"session_name": "no such"})
	wantTool(t, c, "not_found.pane", "capture_since", obj{"pane_id": "%77"})
	call[any](s, owner, "window.create", obj{"session": session, "argv": []string{"/bin/cat"}})
	if e := wantTool(t, c, "invalid_params.pane", "capture_since", obj{"session_name": "web"}); e.Data["reason"] != "ambiguous" {
		t.Errorf("data %v", e.Data)
	}
}

// TestMCPRestart: the server starts without a daemon and starts one when it
// needs it, if it may; it finds the next one by itself.
func TestMCPRestart(t *testing.T) {
	s := newServer(t)
	pane := s.run(s.client(), 20, 4, "/bin/echo", "hello")
	s.until(s.client(), pane, "exited", func(p paneInfo) bool { return p.State == "exited" })
	starts, waits := s.mcp(), s.mcp("--start=false")
	for _, c := range []*mcp.ClientSession{starts, waits} {
		tool[obj](t, c, "pane_dget", obj{"pane": pane})
	}
	for range 3 {
		s.end(syscall.SIGKILL)
		if e := wantTool(t, waits, "unavailable.daemon", "pane_dget", obj{"pane": pane}); !strings.Contains(e.Message, "looptape serve") {
			t.Errorf("message %q", e.Message)
		}
		s.start()
		for _, c := range []*mcp.ClientSession{waits, starts} {
			tool[obj](t, c, "pane_dget", obj{"pane": pane})
		}
	}
	s.end(syscall.SIGTERM)
	if r := tool[mcpRows](t, starts, "pane_dcapture__rows", obj{"pane": pane}); strings.TrimSpace(r.Lines[0]) != "hello" {
		t.Errorf("rows %q", r.Lines)
	}
	t.Cleanup(func() { endDaemon(s.dir, syscall.SIGKILL) })
	tool[obj](t, waits, "pane_dget", obj{"pane": pane})
}

// TestMCPConcurrent: many calls at once, on one session; one that waits holds up
// no other.
func TestMCPConcurrent(t *testing.T) {
	s := newServer(t)
	pane := s.run(s.client(), 20, 4, "/bin/cat")
	c := s.mcp()
	first := tool[struct{ Cursor string }](t, c, "capture_since", obj{"pane": pane})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "capture_since", Arguments: obj{"cursor": first.Cursor, "wait_ms": 30000}})
		waiting <- err
	}()
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			args := obj{"pane": pane}
			if i%2 == 0 {
				args["pane"] = fmt.Sprintf("p%d", i+7) // which there is not
			}
			r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "pane_dget", Arguments: args})
			if err != nil || r.IsError != (i%2 == 0) {
				t.Errorf("%v: %v, %v", args, r, err)
			}
		})
	}
	calls.Wait()
	select {
	case err := <-waiting:
		t.Errorf("the call that waits ended: %v", err)
	default:
	}
	cancel()
	if err := <-waiting; err == nil {
		t.Error("a cancelled call has a result")
	}
	tool[obj](t, c, "pane_dget", obj{"pane": pane})
}

// TestMCPStdin: what was asked before stdin ends is answered, nothing else is
// written to stdout, and then the process ends.
func TestMCPStdin(t *testing.T) {
	s := newServer(t)
	cmd := exec.Command("looptape", "mcp", "--dir", s.dir)
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	}
	for id := 2; id < 50; id++ {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pane_dlist"}}`, id))
	}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	done := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	out, err := cmd.Output()
	if done.Stop(); err != nil {
		t.Fatal(err)
	}
	answered := map[int]bool{}
	for line := range strings.Lines(string(out)) {
		var m struct {
			ID     int
			Result *json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result == nil {
			t.Fatalf("stdout has %q", line)
		}
		answered[m.ID] = true
	}
	if len(answered) != 49 {
		t.Errorf("%d of 49 requests were answered", len(answered))
	}
}
