package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/store"
)

// outcome calls a verb and returns the code of its error, or "".
func (d *subjectDaemon) outcome(c *wire.Client, verb string, params map[string]any, into any) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	raw, err := c.Call(ctx, verb, params)
	var e *wire.Error
	switch {
	case err == nil && into != nil:
		if err := json.Unmarshal(raw, into); err != nil {
			d.t.Fatal(err)
		}
	case errors.As(err, &e):
		return e.Code
	case err != nil:
		d.t.Fatalf("%s: %v\n%s", verb, err, d.log.String())
	}
	return ""
}

// TestLongTexts: what a caller has the daemon keep is taken up to a length that is
// told, and refused above it; however long it is, the daemon goes on.
func TestLongTexts(t *testing.T) {
	d := startSubject(t)
	big := d.dial(&d.token, wire.CeilingMaxFrame)
	defer big.Close()
	d.clients[0].Close()
	d.clients[0] = d.dial(&d.token, wire.CeilingMaxFrame)
	var made, other struct{ Session, Window, Pane string }
	d.must("session.create", nil, &made)
	d.must("window.create", map[string]any{"session": made.Session, "argv": []string{"true"}}, &made)
	d.must("pane.wait", map[string]any{"pane": made.Pane, "exit": true, "since": 0, "timeout_ms": 30000}, nil)

	many := func(n int, of string) []string {
		return append([]string{"true"}, slices.Repeat([]string{strings.Repeat(of, 100<<10)}, n)...)
	}
	for _, c := range []struct {
		what, verb string
		params     map[string]any
		want       []string
	}{
		{"a long name", "session.create", map[string]any{"name": strings.Repeat("é", 2048)}, []string{""}},
		{"a longer one", "session.create", map[string]any{"name": strings.Repeat("é", 2048) + "x"}, []string{"invalid_params.range"}},
		{"one of 3 MiB", "session.create", map[string]any{"name": strings.Repeat("x", 3<<20)}, []string{"invalid_params.range"}},
		{"one of 3 MiB, provisionally", "session.create", map[string]any{"name": strings.Repeat("x", 3<<20), "provisional": true}, []string{"invalid_params.range"}},
		{"arguments of 21 MiB", "window.create", map[string]any{"argv": many(210, "x")}, []string{"invalid_params.range"}},
		{"an environment of 3 MiB", "window.create", map[string]any{"env": map[string]string{"A": strings.Repeat("x", 3<<20)}}, []string{"invalid_params.range"}},
		{"the name of a variable", "window.create", map[string]any{"env": map[string]string{strings.Repeat("x", 3<<20): "a"}}, []string{"invalid_params.range"}},
		{"a directory", "window.create", map[string]any{"cwd": "/" + strings.Repeat("x", 4096)}, []string{"invalid_params.range"}},
		{"a directory that is not there", "window.create", map[string]any{"cwd": "/" + strings.Repeat("x", 4095)}, []string{"invalid_params.cwd"}},
		{"arguments of another program", "pane.respawn", map[string]any{"argv": many(210, "x")}, []string{"invalid_params.range"}},
		{"its environment", "pane.respawn", map[string]any{"env": map[string]string{"A": strings.Repeat("x", 3<<20)}}, []string{"invalid_params.range"}},
		{"its directory", "pane.respawn", map[string]any{"cwd": "/" + strings.Repeat("x", 1<<20)}, []string{"invalid_params.range"}},
	} {
		v := manifest.Find(c.verb)
		if v.Param("session") != nil {
			c.params["session"] = made.Session
		}
		if v.Param("pane") != nil {
			c.params["pane"] = made.Pane
		}
		if got := d.outcome(big, c.verb, c.params, nil); !slices.Contains(c.want, got) {
			t.Errorf("%s, %s: %q, not %q", c.verb, c.what, got, c.want)
		}
		d.must("session.list", nil, nil)
	}

	// In JSON an argument is up to six times as long, and a respawn notes both.
	d.must("window.create", map[string]any{"session": made.Session, "argv": many(15, "\x01")}, &other)
	d.must("pane.wait", map[string]any{"pane": other.Pane, "exit": true, "since": 0, "timeout_ms": 30000}, nil)
	if got := d.outcome(big, "pane.respawn", map[string]any{"pane": other.Pane}, nil); got != "limit.record" {
		t.Errorf("a respawn of 1.5 MiB of controls: %q", got)
	}
	d.must("pane.respawn", map[string]any{"pane": other.Pane, "argv": []string{"true"}}, nil)
}

// TestPutTooLong: a record that is too long for the store is an error for who puts it,
// and for nobody else.
func TestPutTooLong(t *testing.T) {
	_, r := newTestRegistry(t)
	err := r.addSession(r.newSession(strings.Repeat("x", store.MaxRecord)))
	var e *wire.Error
	if !errors.As(wireError(err), &e) || e.Code != "limit.record" {
		t.Errorf("a session with a name of 16 MiB: %v", err)
	}
	if err := r.addSession(r.newSession("short")); err != nil || len(r.allSessions()) != 1 {
		t.Errorf("%v, %d sessions", err, len(r.allSessions()))
	}
}
