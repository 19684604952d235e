package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// bearer makes a token and connects with it. Each grant is a right and a scope.
func (s *server) bearer(owner *wire.Client, name string, grants ...string) (c *wire.Client, token string) {
	s.t.Helper()
	token = s.grantTo(owner, name, grants...).token
	c, err := s.bear(token)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c, token
}

// bear connects with a token.
func (s *server) bear(token string) (*wire.Client, error) {
	return wire.Dial(s.ctx, filepath.Join(s.dir, "looptape.sock"), wire.Hello{Client: "test", Token: &token})
}

// refusal calls a verb and returns its error as it came.
func (s *server) refusal(c *wire.Client, verb string, params any) string {
	s.t.Helper()
	result, err := c.Stream(s.ctx, verb, params, func(json.RawMessage) error { return nil })
	var e *wire.Error
	if !errors.As(err, &e) {
		s.t.Fatalf("%s %v: %s, %v, which is no refusal", verb, params, result, err)
	}
	raw, err := wire.Marshal(e)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// record is the line of the audit log that a denial leaves, without its time.
func record(caller, verb, right, resource string) string {
	return fmt.Sprintf(`{"record":"denied","caller":"%s","verb":"%s","right":"%s","resource":"%s"}`+"\n", caller, verb, right, resource)
}

// twoSessions makes s0 with w0 (p0) and w1 (p1), and s1 with w2 (p2).
func (s *server) twoSessions(owner *wire.Client) {
	s.t.Helper()
	type ids struct{ Session, Window, Pane string }
	for i, in := range []string{"s0", "s0", "s1"} {
		if i != 1 {
			call[ids](s, owner, "session.create", obj{})
		}
		got := call[ids](s, owner, "window.create", obj{"session": in, "argv": []string{"cat"}})
		if want := (ids{in, fmt.Sprintf("w%d", i), fmt.Sprintf("p%d", i)}); got != want {
			s.t.Fatalf("%v instead of %v", got, want)
		}
	}
}

// denied is the denial as contract.md, section 4, has it.
func denied(right, resource string) string {
	return fmt.Sprintf(`{"code":"denied.%s","message":"%s on %s is needed: LOOPTAPE_TOKEN says who calls, @owner is the owner","data":{"right":"%s","resource":"%s"}}`, right, right, resource, right, resource)
}

// TestRightsFirst: of every verb of the manifest, a caller who holds every right
// but the one that is needed, and that one on everything but the object, gets one
// and the same denial, whether the object is there and whatever else is wrong.
func TestRightsFirst(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.client()
	s.twoSessions(owner)
	for i := range manifest.Verbs {
		v := &manifest.Verbs[i]
		if v.Right == manifest.None || v.Filter {
			continue
		}
		s.checkRightsFirst(owner, v, v.Right, nil)
		if v.RightIf != nil {
			s.checkRightsFirst(owner, v, v.RightIf.Right, obj{v.RightIf.Param: v.RightIf.Value})
		}
	}
	for _, pane := range []string{"p0", "p1", "p2"} {
		if p := call[paneInfo](s, owner, "pane.get", obj{"pane": pane}); p.State != "running" || p.Offset != 0 || p.Epoch != 1 {
			t.Errorf("%s was touched: %+v", pane, p)
		}
	}
}

func (s *server) checkRightsFirst(owner *wire.Client, v *manifest.Verb, right manifest.Right, with obj) {
	s.t.Helper()
	name := strings.ReplaceAll(v.Name, "_", "-") + "-" + string(right)
	c, _ := s.bearer(owner, name, allBut(right, v.On)...)
	ids := map[manifest.Kind][]string{
		manifest.Any: {""}, manifest.Session: {"s0", "s9", "s00"}, manifest.Window: {"w0", "w9", ""}, manifest.Pane: {"p0", "p9", "p 0"},
	}[v.On]
	for _, id := range ids {
		resource := "*"
		if v.On != manifest.Any {
			resource = string(v.On) + ":" + id
		}
		for _, params := range wrongs(v, id, with) {
			before := len(s.denials(0))
			if got, want := s.refusal(c, v.Name, params), denied(string(right), resource); got != want {
				s.t.Errorf("%s %v:\n%s, not\n%s", v.Name, params, got, want)
			}
			if got, want := s.denials(before), record(name, v.Name, string(right), resource); len(got) != 1 || got[0] != want {
				s.t.Errorf("%s %v: the audit log has %q, not %q", v.Name, params, got, want)
			}
		}
	}
}

// allBut are grants of all rights on everything, but of right only on what does
// not contain the first objects of kind.
func allBut(right manifest.Right, kind manifest.Kind) (grants []string) {
	for _, r := range []manifest.Right{manifest.Read, manifest.Write, manifest.Manage} {
		if r != right {
			grants = append(grants, string(r)+" *")
		}
	}
	for _, k := range []manifest.Kind{manifest.Session, manifest.Window, manifest.Pane} {
		if k != kind {
			grants = append(grants, fmt.Sprintf("%s %s:*", right, k))
		}
	}
	return append(grants, string(right)+" session:s1", string(right)+" window:w1", string(right)+" pane:p9")
}

// wrongs are parameters of v about the object id, each with something else that
// is wrong, and some with nothing.
func wrongs(v *manifest.Verb, id string, with obj) (all []obj) {
	add := func(name string, value any) {
		params := obj{}
		for k, value := range with {
			params[k] = value
		}
		if name != "" {
			params[name] = value
		}
		if v.On != manifest.Any {
			params[string(v.On)] = id
		}
		all = append(all, params)
	}
	add("", nil)
	add("no_such_parameter", 1)
	for _, p := range v.Params {
		if p.Name == string(v.On) || with[p.Name] != nil || v.RightIf != nil && v.RightIf.Param == p.Name {
			continue
		}
		for _, value := range []any{nil, []any{[]any{}}, "x", true, -1, 1 << 60} {
			add(p.Name, value)
		}
	}
	return all
}

// TestOrderOfChecks: behind the right come the parameters, and behind those the
// object (contract.md, section 3).
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.client()
	for i := range manifest.Verbs {
		v := &manifest.Verbs[i]
		if v.Filter || v.On == manifest.Any || v.Right == manifest.None {
			continue
		}
		params := obj{}
		for _, p := range v.Params {
			switch {
			case p.Name == string(v.On):
				params[p.Name] = string(v.On[:1]) + "9"
			case !p.Required:
			case p.Type == manifest.Integer:
				params[p.Name] = *p.Min
			case p.Choices != nil:
				params[p.Name] = p.Choices[0]
			case p.Type == manifest.Array:
				params[p.Name] = []string{}
			default:
				params[p.Name] = "x"
			}
		}
		s.code(owner, v.Name, params, "not_found."+string(v.On))
		params["no_such_parameter"] = 1
		s.code(owner, v.Name, params, "invalid_params.unknown")
		delete(params, "no_such_parameter")
		for _, p := range v.Params {
			if p.Name != string(v.On) {
				kept, had := params[p.Name]
				params[p.Name] = []any{[]any{}}
				s.code(owner, v.Name, params, "invalid_params.type")
				if params[p.Name] = kept; !had {
					delete(params, p.Name)
				}
			}
		}
	}
}

func (s *server) code(c *wire.Client, verb string, params any, want string) {
	s.t.Helper()
	if got := s.refusal(c, verb, params); !strings.HasPrefix(got, `{"code":"`+want+`"`) {
		s.t.Errorf("%s %v: %s, not %s", verb, params, got, want)
	}
}

// TestScopes is contract.md, section 4, read by a person: what lists show, and
// which panes can be read (as in case 19 of seed 000).
func TestScopes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.client()
	s.twoSessions(owner)
	for i, c := range []struct {
		scope            string
		panes, windows   string // that are listed
		sessions, inside string // that are listed, and the windows shown in them
	}{
		{"*", "p0 p1 p2", "w0 w1 w2", "s0 s1", "w0 w1 w2"},
		{"pane:*", "p0 p1 p2", "", "", ""},
		{"window:*", "", "w0 w1 w2", "", ""},
		{"session:*", "", "", "s0 s1", ""},
		{"session:s0", "p0 p1", "w0 w1", "s0", "w0 w1"},
		{"session:s1", "p2", "w2", "s1", "w2"},
		{"session:s9", "", "", "", ""},
		{"window:w1", "p1", "w1", "", ""},
		{"window:w9", "", "", "", ""},
		{"pane:p2", "p2", "", "", ""},
		{"pane:p9", "", "", "", ""},
	} {
		reader, _ := s.bearer(owner, fmt.Sprintf("reader%d", i), "read "+c.scope)
		type lists struct {
			Panes    []struct{ Pane string }
			Windows  []struct{ Window string }
			Sessions []struct {
				Session string
				Windows []string
			}
		}
		var panes, healthy, windows, sessions, inside []string
		for _, p := range call[lists](s, reader, "pane.list", obj{}).Panes {
			panes = append(panes, p.Pane)
		}
		for _, p := range call[lists](s, reader, "doctor", obj{}).Panes {
			healthy = append(healthy, p.Pane)
		}
		for _, w := range call[lists](s, reader, "window.list", obj{}).Windows {
			windows = append(windows, w.Window)
		}
		for _, se := range call[lists](s, reader, "session.list", obj{}).Sessions {
			sessions = append(sessions, se.Session)
			inside = append(inside, se.Windows...)
		}
		got := []string{strings.Join(panes, " "), strings.Join(healthy, " "), strings.Join(windows, " "), strings.Join(sessions, " "), strings.Join(inside, " ")}
		if want := []string{c.panes, c.panes, c.windows, c.sessions, c.inside}; !slices.Equal(got, want) {
			t.Errorf("read %s: panes, panes of doctor, windows, sessions, windows in them are %q, not %q", c.scope, got, want)
		}
		for _, pane := range []string{"p0", "p1", "p2"} {
			if strings.Contains(c.panes, pane) {
				call[obj](s, reader, "pane.capture_rows", obj{"pane": pane})
			} else if got, want := s.refusal(reader, "pane.capture_rows", obj{"pane": pane}), denied("read", "pane:"+pane); got != want {
				t.Errorf("read %s: %s, not %s", c.scope, got, want)
			}
		}
		// A pane that is missing is in * and pane:* only.
		switch c.scope {
		case "*", "pane:*":
			s.code(reader, "pane.capture_rows", obj{"pane": "p9"}, "not_found.pane")
		default:
			s.code(reader, "pane.capture_rows", obj{"pane": "p9"}, "denied.read")
		}
	}
}

// TestCursorRight: a cursor of another pane gives no right to it.
func TestCursorRight(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.client()
	s.twoSessions(owner)
	c, _ := s.bearer(owner, "p1-reader", "read pane:p1")
	type answer struct{ Cursor string }
	foreign := call[answer](s, owner, "pane.capture_since", obj{"pane": "p0"}).Cursor
	own := call[answer](s, owner, "pane.capture_since", obj{"pane": "p1"}).Cursor
	if got, want := s.refusal(c, "pane.capture_since", obj{"cursor": foreign}), denied("read", "pane:p0"); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	s.code(c, "pane.capture_since", obj{"pane": "p0", "cursor": own}, "denied.read")
	s.code(c, "pane.capture_since", obj{"pane": "p1", "cursor": foreign}, "invalid_params.cursor")
	call[obj](s, c, "pane.capture_since", obj{"cursor": own})
}

// TestRevoked: a revoked token ends the call that waits, is refused whatever its
// open connection asks, and opens no other.
func TestRevoked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.client()
	s.twoSessions(owner)
	c, token := s.bearer(owner, "ci", "read *", "write pane:p0")
	other, _ := s.bearer(owner, "other", "read *")
	waits := make(chan error, 2)
	for _, client := range []*wire.Client{c, other} {
		go func() {
			_, err := client.Call(s.ctx, "pane.capture_since", obj{"pane": "p0", "since": 0, "wait_ms": 30000})
			waits <- err
		}()
	}
	call[obj](s, c, "pane.get", obj{"pane": "p0"})
	before := len(s.denials(0))
	call[obj](s, owner, "grant.revoke", obj{"name": "ci"})
	gone := `{"code":"denied.token","message":"this token has been revoked"}`
	var e *wire.Error
	if err := <-waits; !errors.As(err, &e) || e.Code != "denied.token" {
		t.Errorf("the call that waited: %v", err)
	}
	for _, verb := range []string{"pane.get", "pane.list", "doctor"} {
		params := obj{}
		if verb == "pane.get" {
			params["pane"] = "p0"
		}
		if got := s.refusal(c, verb, params); got != gone {
			t.Errorf("%s: %s", verb, got)
		}
	}
	if got := s.refusal(c, "pane.write", obj{"pane": "p9", "text": "x"}); got != gone {
		t.Errorf("of a missing pane: %s", got)
	}
	if _, err := s.bear(token); !errors.As(err, &e) || e.Code != "denied.token" {
		t.Errorf("a new connection: %v", err)
	}
	if got, want := s.denials(before), []string{
		record("ci", "pane.capture_since", "read", "pane:p0"), record("ci", "pane.get", "read", "pane:p0"),
		record("ci", "pane.list", "read", "pane:*"), record("ci", "doctor", "read", "pane:*"),
		record("ci", "pane.write", "write", "pane:p9"),
	}; !slices.Equal(got, want) {
		t.Errorf("the audit log has %q, not %q", got, want)
	}

	// The same name again is another caller; nobody else was disturbed.
	again, _ := s.bearer(owner, "ci", "read *")
	call[obj](s, again, "pane.get", obj{"pane": "p0"})
	if got := s.refusal(c, "pane.get", obj{"pane": "p0"}); got != gone {
		t.Errorf("the old connection under the new token: %s", got)
	}
	call[obj](s, owner, "pane.write", obj{"pane": "p0", "text": "x\n"})
	if err := <-waits; err != nil {
		t.Errorf("the call of somebody else that waited: %v", err)
	}
}

// TestRevokedStream: a stream ends with its caller's token.
func TestRevokedStream(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.client()
	pane := s.run(owner, 80, 24, "sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' x")
	s.until(owner, pane, "exited", exited)
	c, _ := s.bearer(owner, "ci", "read *")
	var got int
	_, err := c.Stream(s.ctx, "pane.export", obj{"pane": pane, "format": "raw"}, func(item json.RawMessage) error {
		if got += len(item); got == len(item) {
			// Far less than is still to come fits what the daemon holds of a connection.
			call[obj](s, owner, "grant.revoke", obj{"name": "ci"})
		}
		return nil
	})
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != "denied.token" {
		t.Errorf("after %d bytes: %v", got, err)
	}
}

// TestLongID: what a request names is not written down at any length, and the
// denial fits the smallest frame.
func TestLongID(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c, err := wire.Dial(s.ctx, filepath.Join(s.dir, "looptape.sock"), wire.Hello{Client: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, id := range []string{strings.Repeat("p", 1000000), strings.Repeat("é", 300000), strings.Repeat("\n", 100000), "p" + strings.Repeat("0", 64)} {
		got := s.refusal(c, "pane.kill", obj{"pane": id})
		if !strings.HasPrefix(got, `{"code":"denied.manage"`) || !strings.Contains(got, `..."}}`) || len(got) > 1024 {
			t.Errorf("%.20q: %.2000s", id, got)
		}
	}
	got := s.denials(0)
	if len(got) != 4 || got[1] != record("unknown", "pane.kill", "manage", "pane:"+strings.Repeat("é", 32)+"...") ||
		got[3] != record("unknown", "pane.kill", "manage", "pane:p"+strings.Repeat("0", 63)+"...") {
		t.Errorf("the audit log has %q", got)
	}
	if info, err := os.Stat(filepath.Join(s.dir, "audit.jsonl")); err != nil || info.Size() > 4*1024 {
		t.Errorf("the audit log has %v bytes, %v", info.Size(), err)
	}
}
