package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/store"
)

// importResult is the result of pane.import.
type importResult struct {
	Import  string `json:"import,omitempty"`
	Session string `json:"session"`
	Window  string `json:"window,omitempty"`
	Pane    string `json:"pane,omitempty"`
	Lines   int    `json:"lines"`
	Offset  uint64 `json:"offset"`
	Ignored int    `json:"ignored"`
}

func (s *Server) paneImport(ctx context.Context, r *request) (any, error) {
	var q struct {
		Import     *string `json:"import"`
		Data       []byte  `json:"data"`
		End        bool    `json:"end"`
		Scrollback int     `json:"scrollback"`
		Retain     uint64  `json:"retain"`
	}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	in, err := s.findSession(r)
	if err != nil {
		return nil, err
	}
	if s.readOnly {
		return nil, store.ErrReadOnly
	}
	var i *importing
	if q.Import == nil {
		i, err = s.beginImport(r, in, q.Scrollback, q.Retain)
	} else {
		i, err = s.imports.find(*q.Import, in.ID, r.Gone())
	}
	if err != nil {
		return nil, err
	}
	result := importResult{Session: formatID(manifest.Session, in.ID)}
	err = i.with(ctx, func() error {
		if err := i.take(ctx, q.Data, q.End); err != nil {
			return err
		}
		result.Lines, result.Ignored = i.reader.Line, i.reader.Ignored
		if i.record != nil {
			result.Offset = i.record.Offset()
		}
		if q.End {
			result.Window, result.Pane = formatID(manifest.Window, i.window.ID), formatID(manifest.Pane, i.window.Pane.ID)
			return nil
		}
		result.Import = i.id
		return nil
	})
	return result, err
}

// feed takes the next piece of the file. ctx is that of the call.
func (i *importing) feed(ctx context.Context, data []byte, end bool) error {
	i.ctx = ctx
	if err := i.reader.Feed(data); err != nil || !end {
		return err
	}
	if err := i.reader.End(); err != nil {
		return err
	}
	return i.finish()
}

// finish makes the import a pane: first on disk, then for everybody to see.
func (i *importing) finish() error {
	s := i.server
	patience, cancel := context.WithTimeout(i.ctx, putPatience)
	defer cancel()
	if err := i.record.End(patience, i.time(i.last)); errors.Is(err, context.DeadlineExceeded) && i.ctx.Err() == nil {
		return errNoStorage
	} else if err != nil {
		return err
	}
	w := i.window
	var err error
	if i.kept, err = s.registry.keepProvisional(i.session); err != nil {
		return err
	}
	if err := s.registry.put(windowKey, w.ID, w); err != nil {
		return err
	}
	if se, ok := s.registry.session(i.session); ok && i.kept {
		s.announce(se)
	}
	w.archive = s.archives.open(w.Pane, false)
	w.events.created(&w)
	if !s.registry.addWindow(w) {
		err := patiently(func() error { return s.registry.forget(w.ID) })
		return errors.Join(notFound(manifest.Session, formatID(manifest.Session, w.Session)), err)
	}
	i.over(noImport)
	w.events.show()
	w.events.tell(evArchived, w.Created, eventData{})
	// As long as the note is there, the next daemon finds the window, and leaves it.
	go s.forgetImport(w.Pane.ID)
	return nil
}

// beginImport makes an import of the connection of r.
func (s *Server) beginImport(r *request, in session, scrollback int, retain uint64) (*importing, error) {
	i := &importing{server: s, session: in.ID, gone: r.Gone(), scrollback: scrollback, retain: retain}
	i.reader = capture.CastReader{Head: i.head, Event: i.event, Wall: time.Now().UnixNano()}
	if !s.imports.begin(i, r.caller.Life()) {
		return nil, &wire.Error{
			Code: "limit.imports", Message: fmt.Sprintf("%d imports are under way already: wait until one has ended", maxImports),
			Data: map[string]int{"imports": maxImports},
		}
	}
	return i, nil
}
