package grant

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"looptape/cmd/internal/manifest"
)

// The world of the table: s0 holds w0 (p0) and w1 (p1), s1 holds w2 (p2). Nothing
// with a 9 is there.
var world = map[string]Object{
	"*":          Everything,
	"session:s0": {Kind: manifest.Session, Session: "s0"},
	"session:s1": {Kind: manifest.Session, Session: "s1"},
	"session:s9": {Kind: manifest.Session},
	"window:w0":  {Kind: manifest.Window, Session: "s0", Window: "w0"},
	"window:w1":  {Kind: manifest.Window, Session: "s0", Window: "w1"},
	"window:w2":  {Kind: manifest.Window, Session: "s1", Window: "w2"},
	"window:w9":  {Kind: manifest.Window},
	"pane:p0":    {Kind: manifest.Pane, Session: "s0", Window: "w0", Pane: "p0"},
	"pane:p1":    {Kind: manifest.Pane, Session: "s0", Window: "w1", Pane: "p1"},
	"pane:p2":    {Kind: manifest.Pane, Session: "s1", Window: "w2", Pane: "p2"},
	"pane:p9":    {Kind: manifest.Pane},
}

// TestContains is contract.md, section 4, read by a person.
func TestContains(t *testing.T) {
	for scope, contained := range map[string]string{
		"*":          "* session:s0 session:s1 session:s9 window:w0 window:w1 window:w2 window:w9 pane:p0 pane:p1 pane:p2 pane:p9",
		"session:*":  "session:s0 session:s1 session:s9",
		"window:*":   "window:w0 window:w1 window:w2 window:w9",
		"pane:*":     "pane:p0 pane:p1 pane:p2 pane:p9",
		"session:s0": "session:s0 window:w0 window:w1 pane:p0 pane:p1",
		"session:s1": "session:s1 window:w2 pane:p2",
		"session:s9": "",
		"window:w1":  "window:w1 pane:p1",
		"window:w9":  "",
		"pane:p2":    "pane:p2",
		"pane:p9":    "",
	} {
		s, err := ParseScope(scope)
		if err != nil {
			t.Fatal(err)
		}
		if s.String() != scope {
			t.Errorf("%s is written as %s", scope, s)
		}
		for name, o := range world {
			if want := slices.Contains(strings.Fields(contained), name); s.Contains(o) != want {
				t.Errorf("%s contains %s: %t", scope, name, !want)
			}
		}
	}
	for name, o := range world {
		if (Scope{}).Contains(o) {
			t.Errorf("the zero Scope contains %s", name)
		}
	}
}

func TestParseScope(t *testing.T) {
	for _, bad := range []string{
		"", "**", "*:*", "pane", "pane:", "pane:p", "pane:0", "pane:p00", "pane:p01", "pane:p-1", "pane:p+1", "pane:w0",
		"pane:P0", "Pane:p0", "pane:p0 ", " pane:p0", "pane:p0:p1", "pane:**", "panes:*", "session:p0", "window:s0",
		"pane:p18446744073709551616", "p0", "\x00", "pane:p0\n", "owner", strings.Repeat("é", 1<<16),
	} {
		if s, err := ParseScope(bad); err == nil {
			t.Errorf("%q is read as %s", bad, s)
		} else if len(err.Error()) > 300 {
			t.Errorf("the error of a long scope takes %d bytes", len(err.Error()))
		}
	}
	if _, err := ParseScope("pane:p18446744073709551615"); err != nil {
		t.Error(err)
	}
}

func TestParseGrant(t *testing.T) {
	for _, bad := range []string{"", "read", "read ", "read  *", "own *", "pane:p0 read", "read *,pane:p0", "read pane:p0 pane:p1", "read\t*", "Read *"} {
		if g, err := Parse(bad); err == nil {
			t.Errorf("%q is read as %s", bad, g)
		}
	}
	for _, good := range []string{"read *", "write pane:p1", "manage session:s0"} {
		if g, err := Parse(good); err != nil || g.String() != good {
			t.Errorf("%q is read as %s, %v", good, g, err)
		}
	}
}

// TestRandomGrants compares allow with an oracle that knows no containment: it
// spells out, for every scope, what is in it, object by object.
func TestRandomGrants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		objects, spelled := randomWorld(rnd)
		names := append([]string{}, allScopes...)
		for name := range spelled {
			names = append(names, name)
		}
		slices.Sort(names)
		held := map[manifest.Right]map[string]bool{}
		var grants []Grant
		for range rnd.IntN(5) {
			g := Grant{Right: rights[rnd.IntN(len(rights))]}
			if held[g.Right] == nil {
				held[g.Right] = map[string]bool{}
			}
			for range rnd.IntN(4) {
				name := names[rnd.IntN(len(names))]
				s, err := ParseScope(name)
				if err != nil {
					t.Fatal(err)
				}
				g.Scopes = append(g.Scopes, s)
				for _, in := range spelled[name] {
					held[g.Right][in] = true
				}
			}
			grants = append(grants, g)
		}
		for name, o := range objects {
			for _, right := range rights {
				want := held[right][name]
				if allow(grants, right, o) != want || allow(merge(grants), right, o) != want {
					t.Fatalf("round %d: %v: %s on %s must be %t", round, grants, right, name, want)
				}
			}
		}
	}
}

var allScopes = []string{"*", "session:*", "window:*", "pane:*", "session:s77", "window:w77", "pane:p77"}

// randomWorld makes objects by name, and for every scope the names of the objects
// in it.
func randomWorld(rnd *rand.Rand) (objects map[string]Object, spelled map[string][]string) {
	objects = map[string]Object{"*": Everything}
	spelled = map[string][]string{"*": {"*"}}
	put := func(name string, o Object, in ...string) {
		objects[name] = o
		for _, scope := range append(in, "*") {
			spelled[scope] = append(spelled[scope], name)
		}
	}
	put("a missing session", Object{Kind: manifest.Session}, "session:*")
	put("a missing window", Object{Kind: manifest.Window}, "window:*")
	put("a missing pane", Object{Kind: manifest.Pane}, "pane:*")
	window := 0
	for s := range 1 + rnd.IntN(4) {
		in := fmt.Sprintf("s%d", s)
		put("session:"+in, Object{Kind: manifest.Session, Session: in}, "session:*", "session:"+in)
		for range rnd.IntN(4) {
			w, p := fmt.Sprintf("w%d", window), fmt.Sprintf("p%d", window+rnd.IntN(2)*100)
			window++
			put("window:"+w, Object{Kind: manifest.Window, Session: in, Window: w}, "window:*", "session:"+in, "window:"+w)
			put("pane:"+p, Object{Kind: manifest.Pane, Session: in, Window: w, Pane: p}, "pane:*", "session:"+in, "window:"+w, "pane:"+p)
		}
	}
	return objects, spelled
}
