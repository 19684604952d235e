package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"syscall"

	"looptape/capture"
	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
	"looptape/store"
)

// handlers has the last step of each verb of the manifest.
var handlers = map[string]func(*Server, context.Context, *request) (any, error){
	"session.create":     (*Server).sessionCreate,
	"session.list":       (*Server).sessionList,
	"session.kill":       (*Server).sessionKill,
	"window.create":      (*Server).windowCreate,
	"window.list":        (*Server).windowList,
	"window.kill":        (*Server).windowKill,
	"pane.list":          (*Server).paneList,
	"pane.get":           (*Server).paneGet,
	"pane.write":         (*Server).paneWrite,
	"pane.send_keys":     (*Server).paneSendKeys,
	"pane.resize":        (*Server).paneResize,
	"pane.kill":          (*Server).paneKill,
	"pane.respawn":       (*Server).paneRespawn,
	"pane.delete":        (*Server).paneDelete,
	"pane.capture":       (*Server).paneCapture,
	"pane.capture_at":    (*Server).paneCaptureAt,
	"pane.capture_rows":  (*Server).paneCaptureRows,
	"pane.capture_since": (*Server).paneCaptureSince,
	"pane.search":        (*Server).paneSearch,
	"pane.wait":          (*Server).paneWait,
	"pane.commands":      (*Server).paneCommands,
	"pane.export":        (*Server).paneExport,
	"pane.attach":        (*Server).paneAttach,
	"pane.verify":        (*Server).paneVerify,
	"pane.import":        (*Server).paneImport,
	"events":             (*Server).events,
	"doctor":             (*Server).doctor,
	"grant.create":       (*Server).grantCreate,
	"grant.list":         (*Server).grantList,
	"grant.revoke":       (*Server).grantRevoke,
	"manifest":           (*Server).manifest,
	"skill":              (*Server).skill,
}

// request is a call that has passed every check that the manifest decides.
type request struct {
	*wire.Call
	caller grant.Caller
	// id is the object that the verb is about, as the caller named it.
	id string
	// undo is what is to be done if the call fails behind its handler, or nil.
	undo func()
}

// decode fills into with the parameters, which the manifest has checked.
func (r *request) decode(into any) error {
	raw, err := json.Marshal(r.Params)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}

// TakeOver is wire.Call's, but the connection ends when the caller's token is
// revoked.
func (r *request) TakeOver(serve func(ctx context.Context, t *wire.Takeover)) {
	r.Call.TakeOver(func(ctx context.Context, t *wire.Takeover) {
		defer context.AfterFunc(r.caller.Life(), t.HangUp)()
		serve(ctx, t)
	})
}

// Hello is wire.Handler's.
func (s *Server) Hello(h wire.Hello) (any, string, error) {
	caller, ok := s.grants.Identify(h.Token)
	if !ok {
		return nil, "", &wire.Error{Code: "denied.token", Message: "nobody has this token"}
	}
	return caller, caller.Name(), nil
}

// Server is wire.Handler's.
func (s *Server) Server() (string, int) { return "looptape " + Version, manifest.Format }

// TakesOver is wire.Handler's.
func (s *Server) TakesOver(verb string) bool {
	v := manifest.Find(verb)
	return v != nil && v.Binary
}

// Call is wire.Handler's: it checks a request in the order of contract.md,
// section 3, and runs it.
func (s *Server) Call(ctx context.Context, c *wire.Call) (result any, err error) {
	if !s.begin() {
		return nil, errStopping
	}
	defer s.calls.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	defer context.AfterFunc(c.Caller.(grant.Caller).Life(), cancel)()
	defer func() {
		if r := recover(); r != nil {
			s.logger.Error("panic in a verb", "verb", c.Verb, "panic", r, "stack", string(debug.Stack()))
			result, err = nil, &wire.Error{Code: "internal.panic", Message: "looptape failed; its log says where"}
		}
	}()
	result, err = s.call(ctx, c)
	if err != nil && s.life.Err() != nil {
		return nil, errStopping
	}
	return result, wireError(err)
}

var errStopping = &wire.Error{Code: "unavailable.stopping", Message: "the daemon is stopping: wait until it has stopped, which on a full disk may take half a minute, then start it again with 'looptape serve'"}

func (s *Server) call(ctx context.Context, c *wire.Call) (any, error) {
	verb := manifest.Find(c.Verb)
	if verb == nil {
		return nil, &wire.Error{Code: "unsupported.verb", Message: fmt.Sprintf("there is no verb %q: 'looptape manifest' lists them", c.Verb)}
	}
	count := s.tallies[verb.Name]
	count.calls.Add(1)
	c.Failed = count.failed
	ctx = recorder.WithHolds(ctx, count.held)
	if c.Params == nil {
		c.Params = map[string]json.RawMessage{}
	}
	r := &request{Call: c, caller: c.Caller.(grant.Caller)}
	id, err := subject(verb, c.Params)
	if err != nil {
		return nil, err
	}
	r.id = id
	if err := s.authorize(r, verb); err != nil {
		return nil, err
	}
	if p := verb.Check(c.Params); p != nil {
		return nil, invalid(p)
	}
	result, err := s.run(ctx, r, verb)
	if err != nil && r.caller.Revoked() {
		err = s.deny(r, verb) // the token's end has ended the call, as a rule
	}
	if verb.On == manifest.Pane && !verb.Filter && verb.Name != "pane.delete" {
		if _, gone := s.findPane(r); gone != nil {
			if r.undo != nil {
				r.undo()
			}
			return nil, gone // it was deleted meanwhile, whatever became of the call
		}
	}
	if err == nil {
		count.answered(result)
	}
	return result, err
}

// run is the last step of a request: the verb itself.
func (s *Server) run(ctx context.Context, r *request, verb *manifest.Verb) (result any, err error) {
	if verb.Right == manifest.Read || verb.Right == manifest.None {
		return handlers[verb.Name](s, ctx, r)
	}
	// What changes something may wait for programs and for the disk, and has
	// little to answer: the memory of a large answer is for others meanwhile.
	err = r.Wait(ctx, func() (err error) {
		result, err = handlers[verb.Name](s, ctx, r)
		return err
	})
	return result, err
}

// subject finds the id of the object that a request is about, "*" for none in
// particular.
func subject(verb *manifest.Verb, params map[string]json.RawMessage) (string, error) {
	if verb.On == manifest.Any || verb.Filter || verb.Right == manifest.None {
		return string(manifest.Any), nil
	}
	name := string(verb.On)
	p := verb.Param(name)
	if _, given := params[name]; !given && !p.Required {
		return cursorSubject(verb, params)
	}
	id, problem := verb.CheckString(params, name)
	if problem != nil {
		return "", invalid(problem)
	}
	return id, nil
}

// cursorSubject finds the pane that a cursor names.
func cursorSubject(verb *manifest.Verb, params map[string]json.RawMessage) (string, error) {
	if _, given := params["cursor"]; !given {
		return "", &wire.Error{
			Code: "invalid_params.missing", Message: verb.Name + " needs pane, or a cursor",
			Data: map[string]string{"param": "pane"},
		}
	}
	text, problem := verb.CheckString(params, "cursor")
	if problem != nil {
		return "", invalid(problem)
	}
	cursor, err := capture.ParseCursor(text)
	return formatID(manifest.Pane, cursor.Pane), err
}

func invalid(p *manifest.Problem) error {
	return &wire.Error{Code: "invalid_params." + p.Reason, Message: p.Message, Data: map[string]string{"param": p.Param}}
}

// findSession, findWindow and findPane look up what r is about.
func (s *Server) findSession(r *request) (session, error) {
	if n, ok := parseID(manifest.Session, r.id); ok {
		if found, ok := s.registry.session(n); ok {
			return found, nil
		}
	}
	return session{}, notFound(manifest.Session, r.id)
}

func (s *Server) findWindow(r *request) (window, error) {
	if n, ok := parseID(manifest.Window, r.id); ok {
		if found, ok := s.registry.window(n); ok {
			return found, nil
		}
	}
	return window{}, notFound(manifest.Window, r.id)
}

func (s *Server) findPane(r *request) (window, error) {
	if n, ok := parseID(manifest.Pane, r.id); ok {
		if found, ok := s.registry.pane(n); ok {
			return found, nil
		}
	}
	return window{}, notFound(manifest.Pane, r.id)
}

func notFound(kind manifest.Kind, id string) error {
	return &wire.Error{Code: "not_found." + string(kind), Message: fmt.Sprintf("there is no %s %q: 'looptape %s list' shows those there are", kind, id, kind)}
}

// findLive looks up the pane that r is about, and refuses an archive.
func (s *Server) findLive(r *request) (window, error) {
	w, err := s.findPane(r)
	if err == nil && w.state() == "archived" {
		err = conflict(w, "is an archive: it can be read, not changed")
	}
	return w, err
}

func conflict(w window, why string) error {
	return &wire.Error{
		Code:    "conflict.state",
		Message: fmt.Sprintf("pane %s %s", formatID(manifest.Pane, w.Pane.ID), why),
		Data:    map[string]string{"state": w.state()},
	}
}

// liveError makes a conflict of what a live pane says when its program, or the
// pane, has ended.
func liveError(w window, err error) error {
	switch {
	case errors.Is(err, recorder.ErrExited), errors.Is(err, recorder.ErrStopped):
		return conflict(w, "has no program any more: it has exited")
	case errors.Is(err, recorder.ErrRunning):
		return conflict(w, "runs its program: end that first")
	}
	return err
}

// wireError makes what a caller is to see of the errors of the layers below.
func wireError(err error) error {
	var own *wire.Error
	var read *capture.Error
	var start *recorder.StartError
	var limit *recorder.LimitError
	var kill *recorder.KillError
	var damaged *store.DamagedError
	var cast *capture.CastError
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case errors.As(err, &limit):
		return &wire.Error{Code: "limit." + limit.What, Message: "the program cannot be started: " + limit.Error()}
	case errors.As(err, &read):
		return &wire.Error{Code: read.Code, Message: read.Message, Data: read.Data}
	case errors.As(err, &start):
		return &wire.Error{Code: "invalid_params." + start.Param, Message: "the program cannot be started: " + start.Error(), Data: map[string]string{"param": start.Param}}
	case errors.As(err, &kill):
		code := "timeout.kill"
		if errors.Is(kill, fs.ErrPermission) {
			code = "denied.signal"
		}
		return &wire.Error{Code: code, Message: kill.Error(), Data: map[string]int{"pid": kill.PID}}
	case errors.As(err, &cast):
		return &wire.Error{Code: "invalid_params.cast", Message: cast.Error(), Data: map[string]any{"param": "data", "line": cast.Line}}
	case errors.As(err, &damaged):
		return &wire.Error{
			Code: "internal.damaged", Message: damaged.Error(),
			Data: map[string]any{"pane": formatID(manifest.Pane, damaged.Pane), "offset": damaged.Offset},
		}
	}
	for _, known := range []struct {
		err  error
		code string
	}{
		{recorder.ErrInputFull, "limit.input"},
		{recorder.ErrInputSize, "limit.input"},
		{recorder.ErrInputTimeout, "timeout.input"},
		{recorder.ErrCells, "limit.cells"},
		{store.ErrRecordSize, "limit.record"},
		{store.ErrFailed, "unavailable.storage"},
		{recorder.ErrNotRecorded, "unavailable.storage"},
		{store.ErrReadOnly, "unavailable.storage"},
		{store.ErrClosed, "unavailable.stopping"},
		{store.ErrEvicted, "not_found.evicted"},
		{syscall.EMFILE, "limit.descriptors"},
		{syscall.ENFILE, "limit.descriptors"},
		{context.DeadlineExceeded, "timeout.request"},
		{context.Canceled, "timeout.cancelled"},
	} {
		if errors.Is(err, known.err) {
			return &wire.Error{Code: known.code, Message: err.Error()}
		}
	}
	return err
}
