package daemon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"looptape/cmd/internal/wire"
)

// TestPage: a page has the items that fit, from the first on; one that fits no page
// hides none.
func TestPage(t *testing.T) {
	item := func(n int) string { return strings.Repeat("x", n-3) } // with its quotes and the comma
	room := 100 + len(`{"":[],"more":true}`) + len("list")
	for _, c := range []struct {
		items []int
		want  []int
		more  bool
	}{
		{nil, nil, false},
		{[]int{50, 50}, []int{50, 50}, false},
		{[]int{50, 51}, []int{50}, true},
		{[]int{50, 51, 10}, []int{50}, true},
		{[]int{101}, nil, true},
		{[]int{101, 50, 500, 50}, []int{50, 50}, true},
		{[]int{50, 101, 60, 10}, []int{50}, true},
	} {
		var items []string
		for _, n := range c.items {
			items = append(items, item(n))
		}
		l, err := page(&request{Call: &wire.Call{Room: room}}, "list", items)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, raw := range l.items {
			got = append(got, len(raw)+1)
		}
		raw, err := json.Marshal(l)
		if err != nil || len(raw) > room || !slices.Equal(got, c.want) || l.more != c.more {
			t.Errorf("%v: %v, more %v, %d of %d bytes, %v", c.items, got, l.more, len(raw), room, err)
		}
	}
}

// TestBrief: a text and a list of texts that take more JSON than they may are cut
// between two characters, and say so.
func TestBrief(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""},
		{"", -1, "…"},
		{"abc", 3, "abc"},
		{"abcdef", 5, "ab…"},
		{"abc", 2, "…"},
		{"éé", 4, "éé"},
		{"ééé", 5, "é…"},
		{"\x01\x01", 12, "\x01\x01"},
		{"\x01\x01\x01", 17, "\x01\x01…"},
		{"\x01\x01\x01", 14, "\x01…"},
		{`""""`, 7, `""…`},
	} {
		if got := brief(c.text, c.n); got != c.want {
			t.Errorf("%q in %d: %q", c.text, c.n, got)
		}
	}
	for _, c := range []struct {
		texts []string
		n     int
		want  []string
	}{
		{[]string{}, 0, []string{}},
		{[]string{"ab", "cd"}, 10, []string{"ab", "cd"}},
		{[]string{"ab", "cd"}, 9, []string{"ab", "…"}},
		{[]string{"ab", "", "", "", ""}, 12, []string{"ab", "", "", "…"}},
		{[]string{"abcdefgh", "x"}, 9, []string{"abc…"}},
	} {
		before := slices.Clone(c.texts)
		if got := briefList(c.texts, c.n); !slices.Equal(got, c.want) || !slices.Equal(c.texts, before) {
			t.Errorf("%q in %d: %q", c.texts, c.n, got)
		}
	}
}

// TestLargeItems: what one session or pane keeps, however large, leaves the lists of
// everybody else as they were, in the smallest frame too.
func TestLargeItems(t *testing.T) {
	d := startSubject(t)
	big := d.dial(&d.token, wire.CeilingMaxFrame)
	defer big.Close()
	var made struct{ Session, Window, Pane string }
	d.must("session.create", map[string]any{"name": strings.Repeat("n", 4096)}, &made)
	argv := append([]string{"true"}, slices.Repeat([]string{strings.Repeat("\x01x", 50<<10)}, 8)...)
	if code := d.outcome(big, "window.create", map[string]any{"session": made.Session, "argv": argv}, &made); code != "" {
		t.Fatal(code)
	}
	large := made.Pane
	d.must("session.create", map[string]any{"name": "small"}, &made)
	d.must("window.create", map[string]any{"session": made.Session, "argv": []string{"true", "small"}}, &made)
	for _, c := range d.clients[:3] {
		if c == d.clients[1] {
			continue
		}
		var panes struct {
			Panes []struct {
				Pane string
				Argv []string
			}
			More bool
		}
		if code := d.outcome(c, "pane.list", nil, &panes); code != "" {
			t.Fatal(code)
		}
		if len(panes.Panes) != 2 || panes.More || panes.Panes[0].Pane != large || panes.Panes[1].Pane != made.Pane || !slices.Equal(panes.Panes[1].Argv, []string{"true", "small"}) {
			t.Errorf("%.300s", fmt.Sprint(panes))
		} else if a := panes.Panes[0].Argv; len(a) != 2 || a[0] != "true" || !strings.HasSuffix(a[1], "x…") && !strings.HasSuffix(a[1], "\x01…") || len(a[1]) > 1024 || len(a[1]) < 200 {
			t.Errorf("%.300q", a)
		}
		var health struct{ Panes []struct{ Pane string } }
		if code := d.outcome(c, "doctor", nil, &health); code != "" || c == d.clients[0] && len(health.Panes) != 2 {
			t.Errorf("doctor: %q %v", code, health)
		}
		var sessions struct {
			Sessions []struct{ Name string }
			More     bool
		}
		if code := d.outcome(c, "session.list", nil, &sessions); code != "" {
			t.Fatal(code)
		}
		if n := len(sessions.Sessions); n == 0 || sessions.Sessions[n-1].Name != "small" || sessions.More != (n == 1) || c == d.clients[0] && n != 2 {
			t.Errorf("%.300s", fmt.Sprint(sessions))
		}
	}
}
