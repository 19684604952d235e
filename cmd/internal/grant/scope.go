package grant

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"looptape/cmd/internal/manifest"
)

// Scope is a set of objects, those of now and of later (contract.md, section 4):
//
//   - everything
//     session:*    every session, and none of the windows and panes in them
//     window:*     every window, and no pane
//     pane:*       every pane, also one that is not there
//     session:s0   that session, its windows and their panes
//     window:w0    that window and its pane
//     pane:p0      that pane
//
// The zero Scope is empty.
type Scope struct {
	kind manifest.Kind
	id   string // "" for all of the kind
}

// ParseScope reads a scope as String writes it.
func ParseScope(text string) (Scope, error) {
	if text == string(manifest.Any) {
		return Scope{kind: manifest.Any}, nil
	}
	kind, id, _ := strings.Cut(text, ":")
	switch k := manifest.Kind(kind); k {
	case manifest.Session, manifest.Window, manifest.Pane:
		if id == "*" {
			return Scope{kind: k}, nil
		}
		if isID(k, id) {
			return Scope{k, id}, nil
		}
	}
	return Scope{}, fmt.Errorf("%q is no scope: it is *, session:*, window:*, pane:*, or one object, such as session:s0, window:w0 or pane:p0", clip(text))
}

// isID says whether id is one as the daemon writes it: the first letter of the
// kind, and a number.
func isID(kind manifest.Kind, id string) bool {
	digits, ok := strings.CutPrefix(id, string(kind[:1]))
	n, err := strconv.ParseUint(digits, 10, 64)
	return ok && err == nil && strconv.FormatUint(n, 10) == digits
}

func (s Scope) String() string {
	switch {
	case s.kind == manifest.Any:
		return string(s.kind)
	case s.id == "":
		return string(s.kind) + ":*"
	}
	return string(s.kind) + ":" + s.id
}

// MarshalText is encoding.TextMarshaler's.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is encoding.TextUnmarshaler's.
func (s *Scope) UnmarshalText(text []byte) (err error) {
	*s, err = ParseScope(string(text))
	return err
}

// Object is what a right is needed on: its kind, its id and those of what it is
// in. Of an object that is not there only the kind is set; the kind Any is no
// object in particular, for what needs the right on *.
type Object struct {
	Kind    manifest.Kind
	Session string
	Window  string
	Pane    string
}

// Everything is what a right on * is needed for.
var Everything = Object{Kind: manifest.Any}

// Contains says whether o is in s.
func (s Scope) Contains(o Object) bool {
	switch {
	case s.kind == manifest.Any:
		return true
	case s.id == "":
		return s.kind == o.Kind && s.kind != ""
	case s.kind == manifest.Session:
		return s.id == o.Session
	case s.kind == manifest.Window:
		return s.id == o.Window
	}
	return s.id == o.Pane
}

// Grant is a right on scopes.
type Grant struct {
	Right  manifest.Right `json:"right"`
	Scopes []Scope        `json:"scopes"`
}

func (g Grant) String() string {
	text := string(g.Right)
	for _, s := range g.Scopes {
		text += " " + s.String()
	}
	return text
}

// Parse reads a right and a scope, as in "write pane:p1".
func Parse(text string) (Grant, error) {
	word, rest, _ := strings.Cut(text, " ")
	right := manifest.Right(word)
	if !slices.Contains(rights, right) {
		return Grant{}, fmt.Errorf("%q is no right and a scope, such as 'write pane:p1'", clip(text))
	}
	scope, err := ParseScope(rest)
	return Grant{right, []Scope{scope}}, err
}

// clip shortens what an error shows of a request.
func clip(text string) string {
	if len(text) > 40 {
		return strings.ToValidUTF8(text[:40], "") + "..."
	}
	return text
}

// allow says whether grants hold right on o.
func allow(grants []Grant, right manifest.Right, o Object) bool {
	for _, g := range grants {
		if g.Right == right && slices.ContainsFunc(g.Scopes, func(s Scope) bool { return s.Contains(o) }) {
			return true
		}
	}
	return false
}

// merge joins grants of the same right, and leaves out scopes that come twice.
func merge(grants []Grant) []Grant {
	merged := []Grant{}
	for _, g := range grants {
		i := slices.IndexFunc(merged, func(m Grant) bool { return m.Right == g.Right })
		if i < 0 {
			i = len(merged)
			merged = append(merged, Grant{g.Right, []Scope{}})
		}
		for _, s := range g.Scopes {
			if !slices.Contains(merged[i].Scopes, s) {
				merged[i].Scopes = append(merged[i].Scopes, s)
			}
		}
	}
	return merged
}
