package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
	"looptape/store"
)

// windowParams are the parameters of window.create.
type windowParams struct {
	Cols       int               `json:"cols"`
	Rows       int               `json:"rows"`
	Argv       []string          `json:"argv"`
	Cwd        string            `json:"cwd"`
	Env        map[string]string `json:"env"`
	CleanEnv   bool              `json:"clean_env"`
	Scrollback int               `json:"scrollback"`
	Retain     uint64            `json:"retain"`
}

func (s *Server) windowCreate(ctx context.Context, r *request) (any, error) {
	var p windowParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	session, err := s.findSession(r)
	if err != nil {
		return nil, err
	}
	if len(p.Argv) == 0 {
		p.Argv = []string{p.shell()}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	w, err := s.start(ctx, session, &p)
	if err != nil {
		return nil, err
	}
	return struct {
		Session string `json:"session"`
		Window  string `json:"window"`
		Pane    string `json:"pane"`
	}{formatID(manifest.Session, w.Session), formatID(manifest.Window, w.ID), formatID(manifest.Pane, w.Pane.ID)}, nil
}

// start makes the window: its record, its log, then the program. It returns
// once the beginning of the log is durable. When the program cannot be started,
// nothing of it stays.
func (s *Server) start(ctx context.Context, in session, p *windowParams) (w window, err error) {
	if err := s.admit(); err != nil {
		return w, err
	}
	watched := false
	defer func() {
		if !watched {
			s.dismiss(err)
		}
	}()
	defer s.registry.enter(in.ID)()
	cwd := p.Cwd
	if cwd == "" {
		cwd, _ = os.Getwd()
	}
	w = s.registry.newWindow(in.ID, paneRecord{
		Argv: p.Argv, Cwd: cwd, Cols: p.Cols, Rows: p.Rows,
		Scrollback: p.Scrollback, Retain: p.Retain, Started: time.Now().UTC(),
	})
	kept, err := s.registry.keepProvisional(in.ID)
	if err != nil {
		return w, err
	}
	if kept {
		s.announce(in)
	}
	if err := s.registry.put(windowKey, w.ID, w); err != nil {
		return w, err
	}
	record := recordKey(windowKey, w.ID)
	log, err := s.createLog(w.Pane.ID, record)
	if err != nil {
		return w, err
	}
	w.events.created(&w)
	w.live, err = s.launch(ctx, func(ctx context.Context) (*recorder.Pane, error) {
		return recorder.Start(ctx, log, recorder.Config{
			Argv: p.Argv, Dir: p.Cwd, Env: p.environment(formatID(manifest.Pane, w.Pane.ID)),
			Cols: p.Cols, Rows: p.Rows, Scrollback: p.Scrollback, Retain: p.Retain,
			Logger: s.logger.With("pane", w.Pane.ID), Observe: w.events.observe,
		})
	})
	if err != nil {
		return w, errors.Join(err, s.abandon(w.Pane.ID, record))
	}
	w.archive = s.archives.open(w.Pane, false)
	if !s.registry.addWindow(w) {
		s.hangUp(ctx, w)
		w.live.Stop()
		return w, errors.Join(notFound(manifest.Session, formatID(manifest.Session, in.ID)), s.abandon(w.Pane.ID, record))
	}
	w.events.show()
	watched = true
	s.watches.Add(1)
	go s.watch(w)
	return w, s.firstSync(ctx, log)
}

// createLog makes the log of a new pane, which has records. When it fails, there is nothing
// left of the pane, or will not be once the disk takes something.
func (s *Server) createLog(pane uint64, records ...string) (*store.Log, error) {
	made := make(chan *store.Log, 1)
	err := patiently(func() error {
		log, err := s.store.Create(pane)
		made <- log
		return err
	})
	if err == nil {
		return <-made, nil
	}
	gone := make(chan error, 1)
	go func() { // ends with the store at the latest
		<-made
		gone <- s.abandon(pane, records...)
	}()
	if !errors.Is(err, errNoStorage) {
		err = errors.Join(err, <-gone)
	}
	return nil, err
}

// abandon is the registry's remove, for which it waits as long as for a record.
func (s *Server) abandon(pane uint64, keys ...string) error {
	return patiently(func() error { return s.registry.remove(pane, keys...) })
}

// firstSync waits until the beginning of a log is durable. If the disk has become full
// meanwhile, the program runs without that.
func (s *Server) firstSync(ctx context.Context, log *store.Log) error {
	bounded, cancel := context.WithTimeout(ctx, putPatience)
	defer cancel()
	err := log.Sync(bounded)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// admit counts one more pane, unless there are too many. It counts until its
// terminal is closed, which is for watch to see once the program runs.
func (s *Server) admit() error {
	if int(s.panes.Add(1)) > s.limits.panes {
		s.panes.Add(-1)
		return s.limits.tooManyPanes()
	}
	return nil
}

// dismiss takes back what admit counted, for a pane that came to nothing by err; once
// nothing is left of it.
func (s *Server) dismiss(err error) {
	if late := new(recorder.LateError); errors.As(err, &late) {
		go s.dismissLate(late)
		return
	}
	s.panes.Add(-1)
}

// dismissLate ends when the start is over, which the system decides; nobody waits for
// it.
func (s *Server) dismissLate(late *recorder.LateError) {
	<-late.Over
	s.panes.Add(-1)
}

const (
	// startPatience is how long a program may take to start, on a busy machine or from
	// a slow network file system.
	startPatience = 30 * time.Second
	// startTurn is how long it may keep others from starting.
	startTurn = time.Second
)

var errSlowStart = &wire.Error{
	Code:    "timeout.start",
	Message: fmt.Sprintf("the program has not started for %v: it or its directory is on a file system that does not answer, or other programs that are to start are", startPatience),
}

// launch calls start, which starts the program of an admitted pane, when its turn
// comes, and with a context that ends when that takes too long.
func (s *Server) launch(ctx context.Context, start func(context.Context) (*recorder.Pane, error)) (*recorder.Pane, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, errSlowStart)
	defer cancel()
	select {
	case s.starts <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	over := sync.OnceFunc(func() { <-s.starts })
	defer over()
	defer time.AfterFunc(startTurn, over).Stop()
	return start(ctx)
}

// hangUp ends the program of a pane that came to nothing, whoever still waits for
// that. One that cannot be ended goes on.
func (s *Server) hangUp(ctx context.Context, w window) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	err := w.live.HangUp(ctx)
	if err != nil && !errors.Is(err, recorder.ErrExited) && !errors.Is(err, recorder.ErrStopped) {
		s.logger.Error("a program goes on that is not wanted any more", "pane", w.Pane.ID, "pid", w.live.PID(), "err", err)
	}
}

// check finds what no program can be started with.
func (p *windowParams) check() error {
	broken := func(param, message string) error {
		return &wire.Error{Code: "invalid_params." + param, Message: message, Data: map[string]string{"param": param}}
	}
	for _, a := range p.Argv {
		if strings.ContainsRune(a, 0) {
			return broken("argv", "an argument holds a NUL")
		}
	}
	for name, value := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return broken("env", "the variable "+name+" cannot be set: its name is empty or holds '=', or it holds a NUL")
		}
	}
	if strings.ContainsRune(p.Cwd, 0) {
		return broken("cwd", "the directory holds a NUL")
	}
	if p.Cwd != "" && !filepath.IsAbs(p.Cwd) {
		return broken("cwd", fmt.Sprintf("cwd is %q: it must be an absolute path", p.Cwd))
	}
	return nil
}

// programTerm is the TERM of every program.
const programTerm = "xterm-256color"

// environment is the whole environment of a program in the pane id. The
// caller's token stays outside unless p names it.
func (p *windowParams) environment(id string) []string {
	env := make(map[string]string)
	if !p.CleanEnv {
		for _, kv := range os.Environ() {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		delete(env, "LOOPTAPE_TOKEN")
	}
	env["TERM"], env["COLORTERM"] = programTerm, "truecolor"
	maps.Copy(env, p.Env)
	env["LOOPTAPE_PANE"] = id
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// shell is what runs in a window without argv.
func (p *windowParams) shell() string {
	if s := p.Env["SHELL"]; s != "" {
		return s
	}
	if s := os.Getenv("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}
