package daemon

import (
	"fmt"
	"unicode/utf8"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// authorize refuses a caller without the right, after the refusal is recorded.
// It is decided by what the verb is about and by nothing else of the request;
// the denial is the same for an object that is there and for one that is not.
func (s *Server) authorize(r *request, verb *manifest.Verb) error {
	right := verb.Needs(r.Params)
	if right == manifest.None {
		return nil
	}
	if !r.caller.Revoked() && (verb.Filter || s.grants.Allows(r.caller, right, s.registry.object(verb.On, r.id))) {
		return nil
	}
	return s.deny(r, verb)
}

// deny records that r was refused and is the error that says so. To whoever
// bears a token that was revoked it is what hello says to it from now on.
func (s *Server) deny(r *request, verb *manifest.Verb) error {
	right, resource := verb.Needs(r.Params), string(verb.On)
	if verb.On != manifest.Any {
		resource += ":" + clipID(r.id)
	}
	if err := s.grants.Denied(r.caller, verb.Name, right, resource); err != nil {
		s.logger.Error("a denial is not in the audit log", "err", err)
	}
	if r.caller.Revoked() {
		return errRevoked
	}
	return &wire.Error{
		Code:    "denied." + string(right),
		Message: fmt.Sprintf("%s on %s is needed: LOOPTAPE_TOKEN says who calls, @owner is the owner", right, resource),
		Data: struct {
			Right    manifest.Right `json:"right"`
			Resource string         `json:"resource"`
		}{right, resource},
	}
}

var errRevoked = &wire.Error{Code: "denied.token", Message: "this token has been revoked"}

// longestID bounds what a denial and the audit log show of an id, in bytes. No
// object has one half as long.
const longestID = 64

func clipID(id string) string {
	if len(id) <= longestID {
		return id
	}
	n := longestID
	for !utf8.RuneStart(id[n]) {
		n--
	}
	return id[:n] + "..."
}

// mayRead says whether the caller may read the pane of w, and so hear of it at
// all.
func (s *Server) mayRead(c grant.Caller, w *window) bool {
	return s.grants.Allows(c, manifest.Read, w.object(manifest.Pane))
}

// mayReadWindow says whether the caller may read w itself; its pane is another
// matter.
func (s *Server) mayReadWindow(c grant.Caller, w *window) bool {
	return s.grants.Allows(c, manifest.Read, w.object(manifest.Window))
}

// mayReadSession is mayReadWindow for a session.
func (s *Server) mayReadSession(c grant.Caller, se *session) bool {
	return s.grants.Allows(c, manifest.Read, se.object())
}

// object is what a request is about, for the check of rights. Killed sessions and
// windows are still there for it: their panes are.
func (r *registry) object(kind manifest.Kind, id string) grant.Object {
	missing := grant.Object{Kind: kind}
	n, ok := parseID(kind, id)
	if !ok { // "*" of manifest.Any among others
		return missing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch kind {
	case manifest.Session:
		if se := r.sessions[n]; se != nil {
			return se.object()
		}
	case manifest.Window:
		if w := r.windows[n]; w != nil {
			return w.object(kind)
		}
	case manifest.Pane:
		if w := r.panes[n]; w != nil {
			return w.object(kind)
		}
	}
	return missing
}

func (se *session) object() grant.Object {
	return grant.Object{Kind: manifest.Session, Session: formatID(manifest.Session, se.ID)}
}

// object is w as a window, or its pane.
func (w *window) object(kind manifest.Kind) grant.Object {
	o := grant.Object{
		Kind:    kind,
		Session: formatID(manifest.Session, w.Session),
		Window:  formatID(manifest.Window, w.ID),
	}
	if kind == manifest.Pane {
		o.Pane = formatID(manifest.Pane, w.Pane.ID)
	}
	return o
}
