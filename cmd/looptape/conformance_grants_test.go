package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"looptape/cmd/internal/wire"
)

// grantTo makes a caller that holds rights, each "read pane:p1".
func (s *server) grantTo(c *wire.Client, name string, rights ...string) caller {
	s.t.Helper()
	right, scope, _ := strings.Cut(rights[0], " ")
	made := call[struct{ Token string }](s, c, "grant.create", obj{"name": name, "right": right, "scope": []string{scope}, "also": rights[1:]})
	return caller{token: made.Token}
}

// denials are the lines of the audit log from the nth on, without their time.
func (s *server) denials(n int) (lines []string) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, "audit.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		head, rest, ok := strings.Cut(line, `","`) // {"ts":"...
		if !ok || !strings.HasPrefix(head, `{"ts":"20`) {
			s.t.Fatalf("the audit log: %q", line)
		}
		lines = append(lines, `{"`+rest)
	}
	return lines[n:]
}

// caseDenied is case 18.
func caseDenied(r *rig) {
	p0, p1 := r.feed(20, 4, nil), r.feed(20, 4, nil)
	p0.write(r.canary)
	p1.write(r.canary + " too")
	reader := r.s.grantTo(r.c, "reader", "read pane:p1")
	r.equal("the one that may be read", r.rowsAs(reader, obj{"pane": "p1"}).Lines[:1], padded(20, r.canary+" too"))
	p0.untouched(func() {
		known := len(r.s.denials(0))
		for i, params := range []obj{
			{}, {"tail": 3, "start": 0}, {"start": 5, "end": 4, "epoch": 1}, {"epoch": 77}, {"epoch": 1, "start": 900},
			{"tail": 0}, {"max_rows": 10001}, {"tail": "many"},
		} {
			texts := map[string]string{}
			for _, pane := range []string{"p0", "p9"} {
				params["pane"] = pane
				e := r.failsAs(reader, "denied.read", fmt.Sprintf(`{"right":"read","resource":"pane:%s"}`, pane), "pane.capture_rows", params)
				texts[pane] = e.Message
				want := fmt.Sprintf(`{"record":"denied","caller":"reader","verb":"pane.capture_rows","right":"read","resource":"pane:%s"}`+"\n", pane)
				got := r.s.denials(known)
				if known++; len(got) != 1 || got[0] != want {
					r.Fatalf("call %d of %s on record as %q", i, pane, got)
				}
			}
			if alike := strings.ReplaceAll(texts["p9"], "p9", "p0"); alike != texts["p0"] {
				r.Errorf("%v: a pane that exists %q, and one that does not %q", params, texts["p0"], texts["p9"])
			}
		}
	})
}

// caseScopes is case 19, with the other scopes of contract.md, section 4.
func caseScopes(r *rig) {
	p0, p1 := r.feed(20, 4, nil), r.feed(20, 4, nil) // in sessions of their own
	p0.write(r.canary)
	p1.write(r.canary)
	for i, c := range []struct {
		scope   string
		allowed string // of p0 p1 p9
	}{
		{"session:s0", "p0"}, {"window:*", ""}, {"session:*", ""}, {"window:w1", "p1"}, {"pane:p0", "p0"},
		{"pane:*", "p0 p1 p9"}, {"*", "p0 p1 p9"}, {"session:s9", ""}, {"pane:p9", ""},
	} {
		who := r.s.grantTo(r.c, fmt.Sprintf("caller%d", i), "read "+c.scope)
		for _, pane := range []string{"p0", "p1", "p9"} {
			a := r.d.call(r, who, "pane.capture_rows", obj{"pane": pane})
			want := "denied.read"
			switch {
			case !strings.Contains(c.allowed, pane):
			case pane == "p9":
				want = "not_found.pane"
			default:
				want = ""
			}
			if a.err == nil && want != "" || a.err != nil && a.err.Code != want {
				r.Errorf("read on %s, reading %s: %.200s", c.scope, pane, a.text)
			}
		}
	}
}
