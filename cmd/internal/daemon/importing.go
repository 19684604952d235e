package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
	"looptape/replay"
	"looptape/store"
)

// An import writes the log first and the record of the window last, so that nothing
// of it is seen before all of it is there. A note under importPrefix, from before the log
// to behind the record, tells the next daemon of a log that came to nothing.
const importPrefix = "import/"

const (
	// maxImports is how many imports may be under way: each has a Terminal, and the
	// beginning of a line of at most 16 MiB.
	maxImports = 4
	// importPause is how long nothing may come for an import.
	importPause = 10 * time.Minute
)

func importKey(pane uint64) string { return recordKey(importPrefix, pane) }

// importNote is what is kept of an import that is under way.
type importNote struct {
	Pane   uint64 `json:"pane"`
	Window uint64 `json:"window"`
	// Session is the one that is made with the pane, or nil.
	Session *uint64 `json:"session,omitempty"`
}

// importing is an import that is under way. It belongs to a connection, and goes with
// it.
type importing struct {
	server     *Server
	id         string
	session    uint64
	gone       context.Context // ends with the connection
	scrollback int
	retain     uint64
	came       chan struct{} // something came for it; one slot
	done       chan struct{} // closed by over

	turn turn // whoever took it owns what follows

	ctx    context.Context // of the call that feeds the reader
	reader capture.CastReader
	record *recorder.Import // nil before the header was read
	window window           // from then on
	wall   int64            // when it began, ns since the Unix epoch
	last   int64            // time of the last event, ns since then
	kept   bool             // its session, which was provisional, is on disk
	ended  error            // what is told of it once it is a pane, or came to nothing
}

// imports are those of a daemon.
type imports struct {
	mu       sync.Mutex
	next     int
	underWay int
	all      map[string]*importing // those that are, and those that came to nothing in a pause
}

func newImports() *imports { return &imports{all: make(map[string]*importing)} }

// begin numbers an import, unless too many are under way. life is its caller's.
func (all *imports) begin(i *importing, life context.Context) bool {
	i.turn, i.came, i.done = newTurn(), make(chan struct{}, 1), make(chan struct{})
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.underWay >= maxImports {
		return false
	}
	i.id = fmt.Sprintf("i%d", all.next)
	all.next++
	all.underWay++
	all.all[i.id] = i
	go i.watch(life)
	return true
}

// find looks up an import of a session and a connection.
func (all *imports) find(id string, session uint64, gone context.Context) (*importing, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	i := all.all[id]
	if i == nil || i.session != session || i.gone != gone {
		return nil, noImport
	}
	return i, nil
}

func (all *imports) forget(i *importing) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, i.id)
}

var (
	noImport = &wire.Error{Code: "not_found.import", Message: "no such import is under way on this connection: begin again"}
	noPiece  = &wire.Error{
		Code: "timeout.import", Message: fmt.Sprintf("nothing came for the import for %d minutes, so it was dropped: begin again, with a file that is there as a whole", importPause/time.Minute),
		Data: map[string]int{"minutes": int(importPause / time.Minute)},
	}
)

// watch drops the import when its connection ends, or its caller's token, or when nothing
// has come for it for importPause; of which its client is told, as long as there is one.
// It ends with the import, or with that; nobody waits for it.
func (i *importing) watch(life context.Context) {
	defer i.server.imports.forget(i)
	pause := time.NewTimer(importPause)
	defer pause.Stop()
	for {
		select {
		case <-i.came:
			pause.Reset(importPause)
			continue
		case <-i.done:
		case <-i.gone.Done():
			i.abandon(noImport)
		case <-life.Done():
			i.abandon(noImport)
		case <-pause.C:
			i.abandon(noPiece)
			<-i.gone.Done()
		}
		return
	}
}

// with runs f as the owner of i, which something came for.
func (i *importing) with(ctx context.Context, f func() error) error {
	select {
	case <-i.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { i.turn <- struct{}{} }()
	if i.ended != nil {
		return i.ended
	}
	defer func() {
		select {
		case i.came <- struct{}{}:
		default:
		}
	}()
	return f()
}

// over ends the import: it holds no place any more, and why is told of it. Its owner
// calls it.
func (i *importing) over(why error) {
	i.ended = why
	close(i.done)
	all := i.server.imports
	all.mu.Lock()
	defer all.mu.Unlock()
	all.underWay--
}

// abandon drops an import that nothing comes for any more. What it does not get done
// before the daemon ends, the next one does.
func (i *importing) abandon(why error) {
	<-i.turn
	defer func() { i.turn <- struct{}{} }()
	if i.ended == nil {
		i.drop(why)
	}
}

// drop ends the import, and has what there is of it removed. Its owner calls it.
func (i *importing) drop(why error) {
	i.over(why)
	i.reader, i.record = capture.CastReader{}, nil
	if i.window.events == nil { // there is no log yet
		return
	}
	keys := []string{recordKey(windowKey, i.window.ID)}
	if i.kept && i.server.registry.dropEmpty(i.session) {
		keys = append(keys, recordKey(sessionKey, i.session))
	}
	go i.server.sweep(i.window.Pane.ID, append(keys, importKey(i.window.Pane.ID))...)
}

// sweepImports has what the imports of earlier daemons left removed, before anybody
// can see it.
func (s *Server) sweepImports() error {
	if s.readOnly {
		return nil
	}
	return readRecords(s.store, importPrefix, func(err error) {
		s.logger.Error("damaged: what an import left may stay", "err", err)
	}, func(n *importNote) {
		_, err := s.store.Get(recordKey(windowKey, n.Window))
		switch {
		case errors.Is(err, store.ErrNoRecord):
			var keys []string
			if n.Session != nil && s.registry.dropEmpty(*n.Session) {
				keys = append(keys, recordKey(sessionKey, *n.Session))
			}
			go s.sweep(n.Pane, append(keys, importKey(n.Pane))...)
		case err == nil:
			go s.forgetImport(n.Pane)
		}
	})
}

// forgetImport removes the note of an import that is a pane. It ends as sweep does.
func (s *Server) forgetImport(pane uint64) {
	if err := s.store.Delete(importKey(pane)); err != nil && !errors.Is(err, store.ErrClosed) {
		s.logger.Error("the note of an import is still there", "pane", pane, "err", err)
	}
}

// take is feed. An error ends the import, and so does a panic, behind which the log may
// be ahead of the Terminal.
func (i *importing) take(ctx context.Context, data []byte, end bool) error {
	taken := false
	defer func() {
		if !taken && i.ended == nil {
			i.drop(noImport)
		}
	}()
	err := i.feed(ctx, data, end)
	taken = err == nil
	return err
}

// time is the time of an event.
func (i *importing) time(at int64) store.Time { return store.Time{Wall: i.wall + at, Mono: at} }

// head begins the log.
func (i *importing) head(h capture.CastHead) error {
	s := i.server
	if h.Cols*h.Rows > recorder.MaxCells {
		return i.tooLarge(h.Cols, h.Rows)
	}
	i.wall = h.Wall
	argv := []string{}
	if h.Command != "" {
		argv = append(argv, h.Command)
	}
	w := s.registry.newWindow(i.session, paneRecord{
		Argv: argv, Cols: h.Cols, Rows: h.Rows, Scrollback: i.scrollback, Retain: i.retain,
		Started:  time.Unix(0, i.wall).UTC(),
		Imported: &imported{Command: h.Command, Title: h.Title, Term: h.Term},
	})
	w.Created, w.Pane.Daemon = time.Now().UTC(), 0 // no daemon ran it
	note := importNote{Pane: w.Pane.ID, Window: w.ID}
	if s.registry.isProvisional(i.session) {
		note.Session = &i.session
	}
	if err := s.registry.putRecord(importKey(w.Pane.ID), note); err != nil {
		return err
	}
	log, err := s.createLog(w.Pane.ID, importKey(w.Pane.ID))
	if err != nil {
		return err
	}
	i.window = w // from here on there is something to remove
	i.record, err = recorder.NewImport(log, h.Cols, h.Rows, i.scrollback, i.retain, i.time(0))
	return err
}

// event appends an event to the log.
func (i *importing) event(e capture.CastEvent) error {
	at := i.time(e.At)
	i.last = e.At
	switch e.Code {
	case 'o':
		return i.record.Output(i.ctx, at, []byte(e.Data))
	case 'r':
		if e.Cols*e.Rows > recorder.MaxCells {
			return i.tooLarge(e.Cols, e.Rows)
		}
		return i.record.Resize(i.ctx, at, e.Cols, e.Rows)
	case 'm':
		return i.record.Marker(i.ctx, at, e.Data)
	}
	ended, status := time.Unix(0, at.Wall).UTC(), e.Status
	i.window.Pane.Ended, i.window.Pane.Exit = &ended, &exit{Code: &status}
	return i.record.Exit(i.ctx, at, replay.Exit{Number: status})
}

func (i *importing) tooLarge(cols, rows int) error {
	return &capture.CastError{Line: i.reader.Line, What: fmt.Sprintf("a screen of %dx%d: %v", cols, rows, recorder.ErrCells)}
}
