package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// patience bounds every wait of these tests; a verb that takes longer is stuck.
const patience = 60 * time.Second

// generalErrors are the codes that any verb may answer beside those it declares:
// contract.md, sections 2 to 4, and package wire.
var generalErrors = []string{
	"invalid_params.missing", "invalid_params.unknown", "invalid_params.type", "invalid_params.range", "invalid_params.choice",
	"denied.read", "denied.write", "denied.manage", "unsupported.result_size", "timeout.cancelled", "limit.requests",
}

// subjectDaemon is a daemon in this process that is called at random, and what
// the calls have learned.
type subjectDaemon struct {
	t       testing.TB
	log     lockedBuffer
	socket  string
	token   string
	clients []*wire.Client // of the owner, of nobody, and of the owner with the smallest frames
	calls   int

	ids     map[string][]string // by the name of a parameter
	numbers []int64             // offsets, rows, epochs
	texts   []string            // cursors
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startSubject runs a daemon until the test ends.
func startSubject(t testing.TB) *subjectDaemon {
	t.Helper()
	t.Setenv("SHELL", "/bin/cat")
	dir, err := os.MkdirTemp("", "lt") // short, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	d := &subjectDaemon{t: t, socket: filepath.Join(dir, "looptape.sock"), ids: map[string][]string{}}
	c := Config{Dir: filepath.Join(dir, "s"), Socket: d.socket, DiskCap: 4 << 30, Logger: slog.New(slog.NewTextHandler(&d.log, nil))}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- Serve(ctx, c, func() { close(ready) }) }()
	t.Cleanup(func() {
		for _, c := range d.clients {
			c.Close()
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
		if strings.Contains(d.log.String(), "panic") {
			t.Errorf("the daemon's log:\n%s", d.log.String())
		}
		os.RemoveAll(dir)
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	if d.token, err = grant.ReadOwnerToken(c.Dir); err != nil {
		t.Fatal(err)
	}
	d.clients = []*wire.Client{d.dial(&d.token, wire.DefaultMaxFrame), d.dial(nil, wire.DefaultMaxFrame), d.dial(&d.token, wire.LowestMaxFrame)}
	return d
}

func (d *subjectDaemon) dial(token *string, maxFrame int) *wire.Client {
	d.t.Helper()
	c, err := wire.Dial(d.t.Context(), d.socket, wire.Hello{Client: "test", Token: token, MaxFrame: &maxFrame})
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// settle makes sure that there is something to call verbs on: a few programs,
// not many.
func (d *subjectDaemon) settle() {
	d.t.Helper()
	var running struct{ Panes []struct{ Pane string } }
	d.must("pane.list", map[string]any{"state": "running"}, &running)
	var sessions struct{ Sessions []struct{ Session string } }
	d.must("session.list", nil, &sessions)
	if len(running.Panes) > 12 || len(sessions.Sessions) > 50 {
		for _, s := range sessions.Sessions {
			d.must("session.kill", map[string]any{"session": s.Session}, nil)
		}
		running.Panes = nil
	}
	if len(running.Panes) > 1 {
		return
	}
	var made struct{ Session, Window, Pane string }
	d.must("session.create", nil, &made)
	for _, argv := range [][]string{{"cat"}, {"cat"}, {"sh", "-c", "seq 1 200; printf '\\033[?1049hx'"}} {
		d.must("window.create", map[string]any{"session": made.Session, "cols": 20, "rows": 4, "argv": argv}, &made)
		d.ids["pane"] = append(d.ids["pane"], made.Pane)
		d.ids["window"] = append(d.ids["window"], made.Window)
	}
	d.ids["session"] = append(d.ids["session"], made.Session)
	for _, ids := range d.ids {
		slices.Sort(ids[max(0, len(ids)-8):]) // the order of calls does not matter
	}
}

// must runs a verb that is to succeed.
func (d *subjectDaemon) must(verb string, params map[string]any, into any) {
	d.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	raw, err := d.clients[0].Call(ctx, verb, params)
	if err == nil && into != nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		d.t.Fatalf("%s %v: %v\n%s", verb, params, err, d.log.String())
	}
}

// call runs a verb and checks that its outcome is one that the manifest has.
func (d *subjectDaemon) call(c *wire.Client, v *manifest.Verb, params map[string]json.RawMessage) {
	d.t.Helper()
	if d.calls++; d.calls%20 == 1 {
		d.settle()
	}
	tame(v, params)
	if v.Binary { // behind its answer the connection is another one
		var token *string
		if c != d.clients[1] {
			token = &d.token
		}
		c = d.dial(token, wire.DefaultMaxFrame)
		defer c.Close()
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	items := 0
	raw, err := c.Stream(ctx, v.Name, params, func(item json.RawMessage) error {
		if err := fits(v.Item, item); err != nil {
			d.t.Errorf("%s %v: an item %.300s: %v", v.Name, show(params), item, err)
		}
		if items++; items > 20 {
			return errEnough
		}
		return nil
	})
	var e *wire.Error
	switch {
	case err == nil:
		if err := fits(v.Result, raw); err != nil {
			d.t.Errorf("%s %s: a result %.300s: %v", v.Name, show(params), raw, err)
		}
		d.learn(raw)
	case errors.As(err, &e) && (e.Message == errEnough.Error() || e.Code == "protocol.frame_size" && c == d.clients[2]): // it sends nothing then
	case !errors.As(err, &e):
		d.t.Fatalf("%s %s is stuck: %v\n%s", v.Name, show(params), err, d.log.String())
	case e.Message == "" || !slices.Contains(generalErrors, e.Code) && !slices.ContainsFunc(v.Failures, func(f manifest.Failure) bool { return f.Code == e.Code }):
		d.t.Errorf("%s %s fails with %s, which it does not declare: %s", v.Name, show(params), e.Code, e.Message)
	}
}

var errEnough = errors.New("enough")

func show(params map[string]json.RawMessage) string {
	raw, err := json.Marshal(params)
	return fmt.Sprintf("%.500s %v", raw, err)
}

// tame takes the edge off parameters that would run any program, wait for long,
// or take a lot of memory.
func tame(v *manifest.Verb, params map[string]json.RawMessage) {
	var argv []string
	if json.Unmarshal(params["argv"], &argv) == nil && len(argv) > 0 {
		argv[0] = []string{"true", "cat", "/no/such/program"}[len(argv[0])%3]
		if argv[0] == "cat" {
			argv = argv[:1]
		}
		params["argv"], _ = json.Marshal(argv)
	}
	if _, given := params["wait_ms"]; v.Name == "events" && !given {
		params["wait_ms"] = json.RawMessage("0") // else it goes on for ever
	}
	if _, given := params["timeout_ms"]; v.Name == "pane.wait" && !given {
		params["timeout_ms"] = json.RawMessage("20")
	}
	for name, raw := range params {
		var n int64
		if strings.HasSuffix(name, "_ms") && json.Unmarshal(raw, &n) == nil && n > 50 && n <= 600000 {
			params[name] = json.RawMessage("50")
		}
	}
	var cols, rows int64
	if json.Unmarshal(params["cols"], &cols) == nil && json.Unmarshal(params["rows"], &rows) == nil {
		if cells := cols * rows; cells > 1<<16 && cells <= 1<<22 {
			params["rows"] = json.RawMessage("1")
		}
	}
}

// learn keeps what a result tells, for later calls to use.
func (d *subjectDaemon) learn(raw json.RawMessage) {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return
	}
	for name, value := range fields {
		switch v := value.(type) {
		case float64:
			d.numbers = append(d.numbers, int64(v))
		case string:
			switch name {
			case "pane", "window", "session":
				d.ids[name] = append(d.ids[name], v)
			case "cursor":
				d.texts = append(d.texts, v)
			}
		}
	}
	d.numbers, d.texts = last(d.numbers, 50), last(d.texts, 20)
	for name, ids := range d.ids {
		d.ids[name] = last(ids, 30)
	}
}

func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// fits says what keeps a result from being one of the declared fields.
func fits(fields []manifest.Field, raw json.RawMessage) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return err
	}
	for i := range fields {
		f := &fields[i]
		value, given := object[f.Name]
		delete(object, f.Name)
		if !given {
			if !f.Optional {
				return fmt.Errorf("there is no %s", f.Name)
			}
			continue
		}
		if err := fitsType(f, f.Type, value); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	for name := range object {
		return fmt.Errorf("%s is not declared", name)
	}
	return nil
}

func fitsType(f *manifest.Field, kind manifest.Type, raw json.RawMessage) error {
	if string(raw) == "null" {
		return errors.New("is null")
	}
	switch kind {
	case manifest.Integer:
		var n int64
		if err := json.Unmarshal(raw, &n); err != nil || n < -manifest.Largest || n > manifest.Largest {
			return fmt.Errorf("%s is no integer: %v", raw, err)
		}
	case manifest.Number:
		return json.Unmarshal(raw, new(float64))
	case manifest.Boolean:
		return json.Unmarshal(raw, new(bool))
	case manifest.Time:
		return json.Unmarshal(raw, new(time.Time))
	case manifest.Value:
	case manifest.Bytes:
		if raw[0] != '"' {
			return fmt.Errorf("%.20s is no text", raw)
		}
		return json.Unmarshal(raw, new([]byte))
	case manifest.Array:
		var elems []json.RawMessage
		if err := json.Unmarshal(raw, &elems); err != nil {
			return err
		}
		elem := f.Elem
		if elem == "" {
			elem = manifest.Object
		}
		for _, e := range elems {
			if err := fitsType(f, elem, e); err != nil {
				return err
			}
		}
	case manifest.Object:
		if len(f.Fields) == 0 {
			return json.Unmarshal(raw, new(map[string]json.RawMessage))
		}
		return fits(f.Fields, raw)
	default:
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		if f.Choices != nil && !slices.Contains(f.Choices, s) {
			return fmt.Errorf("%q is none of %v", s, f.Choices)
		}
	}
	return nil
}

// TestRandomCalls calls every verb with parameters that are right, nearly right
// and wrong: each time a result as declared or an error as declared, in a
// bounded time, and a daemon that goes on.
func TestRandomCalls(t *testing.T) {
	d := startSubject(t)
	r := rand.New(rand.NewPCG(5, 7))
	n := 6000
	if testing.Short() {
		n = 600
	}
	for range n {
		v := &manifest.Verbs[r.IntN(len(manifest.Verbs))]
		d.call(d.clients[r.IntN(len(d.clients))], v, d.params(r, v))
		if t.Failed() {
			return
		}
	}
}

// params makes parameters for v, most of them right.
func (d *subjectDaemon) params(r *rand.Rand, v *manifest.Verb) map[string]json.RawMessage {
	params := map[string]json.RawMessage{}
	for i := range v.Params {
		p := &v.Params[i]
		if p.Required && r.IntN(20) > 0 || !p.Required && r.IntN(4) == 0 {
			params[p.Name] = d.value(r, p)
		}
	}
	if r.IntN(40) == 0 {
		params[[]string{"", "x", "Pane", "pane "}[r.IntN(4)]] = junk(r)
	}
	return params
}

// value makes a value for p.
func (d *subjectDaemon) value(r *rand.Rand, p *manifest.Param) json.RawMessage {
	if r.IntN(25) == 0 {
		return junk(r)
	}
	quoted := func(s string) json.RawMessage {
		raw, _ := json.Marshal(s) // a string can always be written
		return raw
	}
	texts := []string{"", "x", "a\u2028\x00é", strings.Repeat("long ", 300)}
	switch {
	case p.Type == manifest.Integer:
		list := append([]int64{0, 1, 2, 5, 1000}, d.numbers...)
		for _, bound := range []*int64{p.Min, p.Max} {
			if bound != nil {
				list = append(list, *bound-1, *bound, *bound+1)
			}
		}
		return json.RawMessage(fmt.Sprint(list[r.IntN(len(list))] + int64(r.IntN(3)-1)))
	case p.Choices != nil:
		return quoted(p.Choices[r.IntN(len(p.Choices))])
	case p.Type == manifest.Boolean:
		return json.RawMessage([]string{"true", "false"}[r.IntN(2)])
	case p.Type == manifest.Array:
		lists := []string{`[]`, `["cat"]`, `["true","x"]`, `["Enter"]`, `["C-c","a","Up"]`, `["\u0000"]`, `["",""]`, `["read:pane:p0"]`}
		return json.RawMessage(lists[r.IntN(len(lists))])
	case p.Type == manifest.Object:
		objects := []string{`{}`, `{"A":"b"}`, `{"":""}`, `{"A=B":"c"}`, `{"PATH":""}`, `{"A":"\u0000"}`}
		return json.RawMessage(objects[r.IntN(len(objects))])
	case p.Type == manifest.Bytes:
		data := []string{``, `AA==`, `aGVsbG8K`, `////`, `GxtbBA==`, strings.Repeat("AAAA", 500)}
		return quoted(data[r.IntN(len(data))])
	case p.Type == manifest.Time:
		times := []string{"2026-11-30T20:00:00Z", time.Now().Format(time.RFC3339Nano), "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "-30s", "yesterday"}
		return quoted(times[r.IntN(len(times))])
	}
	switch p.Name {
	case "pane", "window", "session":
		texts = append(d.ids[p.Name], p.Name[:1]+"999", p.Name[:1], "%0", p.Name[:1]+"18446744073709551616")
		if ids := d.ids[p.Name]; len(ids) > 0 && r.IntN(4) > 0 {
			texts = last(ids, 10)
		}
	case "cursor":
		for _, c := range d.texts {
			at := r.IntN(len(c))
			texts = append(texts, c, c, c[:at]+"A"+c[at:], c[:at])
		}
	case "signal":
		texts = append(texts, "TERM", "INT", "SIGKILL", "KILL", "NOPE")
	case "mouse":
		texts = append(texts, "press left 1 1", "release none 0 0", "press left -1 99999999999", "move x")
	case "cwd":
		texts = append(texts, "/", "/no/such", "relative")
	case "pattern":
		texts = append(texts, "1.*", "(", "x{1000}{1000}", "(?i)é")
	}
	return quoted(texts[r.IntN(len(texts))])
}

// junk is any JSON.
func junk(r *rand.Rand) json.RawMessage {
	all := []string{`null`, `true`, `{}`, `[]`, `""`, `"p0"`, `-1`, `1.5`, `1e400`, `99999999999999999999999`, `[[[[]]]]`, `{"a":{"b":[null]}}`, `"\ud800"`, `-0`, `[null]`, `{"x":1}`}
	return json.RawMessage(all[r.IntN(len(all))])
}

// FuzzCalls is TestRandomCalls with any JSON object for parameters.
func FuzzCalls(f *testing.F) {
	for i, v := range manifest.Verbs {
		f.Add(uint8(i), uint64(i), `{}`)
		f.Add(uint8(i), uint64(i), `{"pane":"p0","session":"s0","window":"w0"}`)
		for range v.Params {
			f.Add(uint8(i), uint64(i)*1000, "")
		}
	}
	f.Add(uint8(slices.IndexFunc(manifest.Verbs, func(v manifest.Verb) bool { return v.Name == "pane.capture_rows" })), uint64(0), `{"pane":"p1","epoch":1,"start":3,"end":9,"max_rows":2}`)
	d := startSubject(f)
	f.Fuzz(func(t *testing.T, verb uint8, seed uint64, text string) {
		d.t = t
		defer func() { d.t = f }()
		r := rand.New(rand.NewPCG(seed, 1))
		v := &manifest.Verbs[int(verb)%len(manifest.Verbs)]
		var params map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &params) != nil || params == nil {
			params = d.params(r, v)
		}
		d.call(d.clients[seed%uint64(len(d.clients))], v, params)
	})
}
