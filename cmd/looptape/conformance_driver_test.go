package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"looptape/cmd/internal/wire"
)

// driver is one of the ways to call a verb.
type driver interface {
	fmt.Stringer
	// call runs a verb for a caller. What the way itself promises is checked here:
	// exit codes, and that an answer is one; what is none fails the test, and comes
	// back as an error of its own.
	call(r *rig, who caller, verb string, params obj) answer
}

// caller is who calls.
type caller struct {
	token    string // as LOOPTAPE_TOKEN has it; "" is nobody in particular
	maxFrame int    // 0 is what the way asks for by itself
}

var (
	nobody = caller{}
	owner  = caller{token: "@owner"}
)

// answer is what came of a call: the result or {"error":{...}}, as JSON, and in
// the second case the error.
type answer struct {
	text string
	err  *wire.Error
}

// exitCodes are those of seed 000, section 8, and of contract.md, section 3.
var exitCodes = map[string]int{
	"internal": 1, "invalid_params": 2, "not_found": 3, "denied": 4, "conflict": 5,
	"timeout": 6, "unavailable": 7, "protocol": 8, "limit": 9, "unsupported": 10,
}

// cliDriver runs the looptape command once for each call.
type cliDriver struct{}

func (cliDriver) String() string { return "cli" }

func (cliDriver) call(r *rig, who caller, verb string, params obj) answer {
	r.Helper()
	args := strings.Split(strings.ReplaceAll(verb, "_", "-"), ".")
	for _, name := range slices.Sorted(maps.Keys(params)) {
		args = append(args, "--"+strings.ReplaceAll(name, "_", "-"), flagText(params[name]))
	}
	if who.maxFrame != 0 {
		args = append(args, "--max-frame", fmt.Sprint(who.maxFrame))
	}
	cmd := exec.CommandContext(r.s.ctx, "looptape", append(args, "--json")...)
	cmd.Env = r.env(who)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return broken(r, "looptape %v: %v", args, err)
	}
	text, ok := strings.CutSuffix(stdout.String(), "\n")
	if !ok || strings.Contains(text, "\n") || stderr.Len() > 0 {
		return broken(r, "looptape %v does not print one line: %q, and on stderr %q", args, stdout.String(), stderr.String())
	}
	a := newAnswer(r, text)
	want := 0
	if a.err != nil {
		family, _, _ := strings.Cut(a.err.Code, ".")
		want = exitCodes[family]
	}
	if got := cmd.ProcessState.ExitCode(); got != want || a.err != nil && want == 0 {
		r.Errorf("looptape %v exits with %d, not %d: %s", args, got, want, text)
	}
	return a
}

// mcpDriver calls the tools of "looptape mcp", by the SDK's own client: one server
// process for each caller of a rig.
type mcpDriver struct{}

func (mcpDriver) String() string { return "mcp" }

func (mcpDriver) call(r *rig, who caller, verb string, params obj) answer {
	r.Helper()
	tool := strings.NewReplacer("_", "__", ".", "_d").Replace(verb) // seed 000, section 2
	result, err := r.session(who).CallTool(r.s.ctx, &mcp.CallToolParams{Name: tool, Arguments: params})
	if err != nil {
		return broken(r, "%s %v: an error of the protocol: %v", tool, params, err)
	}
	content, ok := result.Content[0].(*mcp.TextContent)
	if !ok || len(result.Content) != 1 {
		return broken(r, "%s %v: contents of other kinds than one text", tool, params)
	}
	var text any
	if err := json.Unmarshal([]byte(content.Text), &text); err != nil || !reflect.DeepEqual(text, result.StructuredContent) {
		return broken(r, "%s %v: text and structured content differ: %.300s, %.300v", tool, params, content.Text, result.StructuredContent)
	}
	a := newAnswer(r, content.Text)
	if result.IsError != (a.err != nil) {
		r.Errorf("%s %v: isError is %v of %.300s", tool, params, result.IsError, a.text)
	}
	return a
}

// session is the MCP session of a caller.
func (r *rig) session(who caller) *mcp.ClientSession {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.sessions[who]; c != nil {
		return c
	}
	args := []string{"mcp", "--start=false"}
	if who.maxFrame != 0 {
		args = append(args, "--max-frame", fmt.Sprint(who.maxFrame))
	}
	cmd := exec.Command("looptape", args...)
	cmd.Env = r.env(who)
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, nil)
	c, err := client.Connect(r.s.ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: patience}, nil)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { c.Close() })
	r.sessions[who] = c
	return c
}

// env is the environment of a process that calls for who.
func (r *rig) env(who caller) []string {
	return append(os.Environ(), "LOOPTAPE_DIR="+r.s.dir, "LOOPTAPE_TOKEN="+who.token, "XDG_CONFIG_HOME="+r.config)
}

func flagText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []string, map[string]string:
		raw, _ := json.Marshal(v) // of strings only
		return string(raw)
	}
	return fmt.Sprint(value)
}

func newAnswer(r *rig, text string) answer {
	r.Helper()
	var failed struct{ Error *wire.Error }
	if err := json.Unmarshal([]byte(text), &failed); err != nil {
		return broken(r, "not an answer: %.200q: %v", text, err)
	}
	return answer{text, failed.Error}
}

func broken(r *rig, format string, args ...any) answer {
	r.Helper()
	r.Errorf(format, args...)
	return answer{"", &wire.Error{Code: "test.broken"}}
}
