package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/wire"
	"looptape/store"
)

// Version is looptape's.
const Version = "0.1.0"

const (
	// stopPatience is how long a stop waits for the disk.
	stopPatience = 10 * time.Second
	// callsPatience is how long it waits for verbs: what they wait for, as for the
	// disk or the end of a program, they may not give up at once.
	callsPatience = 40 * time.Second
	// farewell is how long programs have to end when their terminal is hung up.
	farewell = time.Second
)

// Config says where a daemon lives.
type Config struct {
	Dir    string // state directory, absolute
	Socket string
	// DiskCap is how many bytes the store may take on disk, see store.Options.
	DiskCap uint64
	// SyncEvery puts off the syncs of what is recorded, see store.Options.
	SyncEvery time.Duration
	// KeepFor is how old what is recorded may become, see store.Options.
	KeepFor time.Duration
	Logger  *slog.Logger
}

// Server is a running daemon.
type Server struct {
	dir      string
	logger   *slog.Logger
	born     time.Time
	store    *store.Store
	readOnly bool // nothing can be recorded: the disk was full at the start
	grants   *grant.Authority
	registry *registry
	archives *archives
	hub      *hub              // of events
	tallies  map[string]*tally // of verbs; fixed
	config   Config
	writers  writers

	// life ends when the daemon begins to stop: verbs that wait end with it.
	life    context.Context
	endLife context.CancelFunc

	limits  limits
	panes   atomic.Int32 // whose terminal is open
	imports *imports
	exports atomic.Int64  // under way
	starts  chan struct{} // holds one for each program that is being started
	watches sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	calls    sync.WaitGroup // verbs that began before stopping
}

// Serve runs a daemon until ctx ends, and returns when everything that its
// panes wrote is on disk. ready is called once, when it listens.
func Serve(ctx context.Context, c Config, ready func()) error {
	if os.Getenv("GOMAXPROCS") == "" {
		// With two, readers of PTYs starve behind two goroutines that compute.
		runtime.GOMAXPROCS(max(4, runtime.NumCPU()))
	}
	if err := PrepareDir(c.Dir); err != nil {
		return err
	}
	limits, err := findLimits()
	if err != nil {
		return err
	}
	st, readOnly, err := openStore(c, limits.tables)
	if err != nil {
		return err
	}
	err = newServer(c, limits, st, readOnly).serve(ctx, c, ready)
	return errors.Join(err, st.Close())
}

// newServer is a daemon that has opened its store.
func newServer(c Config, limits limits, st *store.Store, readOnly bool) *Server {
	born := time.Now().UTC()
	s := &Server{
		dir: c.Dir, logger: c.Logger, born: born, store: st, readOnly: readOnly,
		limits: limits, starts: make(chan struct{}, limits.starts),
		hub: newHub(born), tallies: newTallies(), config: c, imports: newImports(),
	}
	s.archives = newArchives(st, readOnly, s.lost)
	s.life, s.endLife = context.WithCancel(context.Background())
	return s
}

// openStore opens the store, on a full disk for reading only if it can.
func openStore(c Config, tables int) (st *store.Store, readOnly bool, err error) {
	path := filepath.Join(c.Dir, "store")
	o := store.Options{Logger: c.Logger, DiskCap: c.DiskCap, SyncEvery: c.SyncEvery, KeepFor: c.KeepFor, Tables: tables}
	st, err = store.Open(path, o)
	if errors.Is(err, syscall.ENOSPC) {
		o.ReadOnly = true
		if st, rerr := store.Open(path, o); rerr == nil {
			c.Logger.Warn("the disk is full: recordings can be read, nothing is recorded; free some space, then start again", "dir", c.Dir)
			return st, true, nil
		}
	}
	var damaged *store.DamagedError
	switch {
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("another daemon runs in %s: talk to it, or give another --dir", c.Dir)
	case errors.Is(err, store.ErrNotStore):
		err = fmt.Errorf("%s holds something that is no store of looptape's: give another --dir", path)
	case errors.Is(err, store.ErrNewerVersion):
		err = fmt.Errorf("%s was written by a newer looptape: use that one (%w)", path, err)
	case errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("the disk of %s is full: free some space, then start again (%w)", c.Dir, err)
	case errors.As(err, &damaged):
		err = fmt.Errorf("%s is damaged and was left as it is: move it away to start afresh, or restore it from a backup (%w)", path, err)
	}
	return st, false, err
}

// serve is Serve with the store open.
func (s *Server) serve(ctx context.Context, c Config, ready func()) (err error) {
	if s.grants, err = grant.Open(s.dir); err != nil {
		return err
	}
	defer s.grants.Close()
	s.registry, err = loadRegistry(s.store, s.hub, func(err error) {
		s.logger.Error("damaged: what it names cannot be listed any more", "err", err)
	})
	if err != nil {
		return err
	}
	if err := s.sweepImports(); err != nil {
		return err
	}
	s.sweepDeleted()
	for _, w := range s.registry.allWindows() {
		s.registry.setArchive(w.ID, s.archives.open(w.Pane, true))
	}
	s.announceArchives()
	s.store.OnEvict(s.evicted)
	if c.KeepFor > 0 && !s.readOnly {
		s.watches.Add(1)
		go s.expire(c.KeepFor)
	}
	listener, err := listen(c.Socket)
	if err != nil {
		return err
	}
	if err := s.limits.divide(); err != nil {
		return errors.Join(err, listener.Close())
	}
	gone, hangUp := context.WithCancel(context.Background())
	accepted := make(chan struct{})
	go s.accept(gone, listener, accepted)
	s.logger.Info("listening", "socket", c.Socket, "pid", os.Getpid(), "version", Version)
	ready()

	<-ctx.Done()
	s.logger.Info("stopping")
	s.stop()
	listener.Close()
	hangUp()
	s.await("clients", func() { <-accepted })
	return nil
}

// accept takes connections until the listener is closed, and returns when all
// of them have ended. serve waits for it.
func (s *Server) accept(ctx context.Context, l *net.UnixListener, done chan<- struct{}) {
	defer close(done)
	var clients sync.WaitGroup
	defer clients.Wait()
	slots := make(chan struct{}, s.limits.clients)
	refusing := false // said so since one was served
	for {
		nc, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: they come back as clients go
			s.logger.Error("accept", "err", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if !wire.SamePeer(nc) {
			nc.Close()
			continue
		}
		select {
		case slots <- struct{}{}:
			refusing = false
		default:
			if !refusing {
				refusing = true
				s.logger.Warn("connections refused: too many clients", "max", s.limits.clients)
			}
			wire.Refuse(nc, s.limits.tooManyClients()) // its socket is empty: this does not wait
			continue
		}
		clients.Add(1)
		go s.client(ctx, nc, slots, &clients)
	}
}

// client serves one connection. It ends with it; accept waits for it.
func (s *Server) client(ctx context.Context, nc *net.UnixConn, slots <-chan struct{}, clients *sync.WaitGroup) {
	defer clients.Done()
	defer func() { <-slots }()
	wire.Serve(ctx, nc, s)
}

// begin admits a verb unless the daemon is stopping. The caller ends an
// admitted one by s.calls.Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.calls.Add(1)
	}
	return !s.stopping
}

// stop ends all verbs and all recordings. What was recorded is durable when it
// returns, or the log says why not.
func (s *Server) stop() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.endLife()
	s.await("verbs", s.calls.Wait)
	windows := s.registry.allWindows()
	var panes sync.WaitGroup
	for _, w := range windows {
		if w.live != nil {
			panes.Go(func() { s.stopPane(w) })
		}
	}
	panes.Wait()
	s.await("the ends of programs", s.watches.Wait)
	s.nameSurvivors(windows)
}

// await calls wait, and returns with it or after callsPatience: then wait goes on, and
// what it waits for ends with the process.
func (s *Server) await(what string, wait func()) {
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(callsPatience):
		s.logger.Error("the daemon ends without them", "what", what, "waited", callsPatience)
	}
}

// nameSurvivors says which programs go on although their terminal was hung up.
func (s *Server) nameSurvivors(windows []window) {
	late, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	for _, w := range windows {
		if w.live == nil {
			continue
		}
		select {
		case <-w.live.Ended():
		case <-late.Done():
		}
		select {
		case <-w.live.Ended():
		default:
			s.logger.Warn("a program goes on without its terminal, unrecorded: end it if it is not wanted", "pane", w.Pane.ID, "pid", w.live.PID())
		}
	}
}

// stopPane ends one recording, and waits until its end is on disk.
func (s *Server) stopPane(w window) {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	w.live.Stop()
	err := w.archive.end(ctx)
	if err == nil {
		err = w.live.Log().Sync(ctx)
	}
	if err != nil {
		s.logger.Error("the end of a recording is not on disk", "pane", w.Pane.ID, "err", err)
	}
}

// watch follows a live pane and records how its program ended: first on disk,
// then for everybody to see. It ends when the recording does; stop waits for it.
func (s *Server) watch(w window) {
	defer s.watches.Done()
	select {
	case <-w.live.Exited():
	case <-w.live.Stopped():
	}
	if e, ended, ok := w.live.Exit(); ok {
		ended = ended.UTC()
		if err := s.registry.recordExit(w.ID, newExit(e), &ended); err != nil {
			s.logger.Error("the exit of a program is not on disk", "pane", w.Pane.ID, "err", err)
		}
		w.events.exitKnown()
	} else {
		w.events.tell(evArchived, time.Now(), eventData{})
	}
	close(w.archive.known)
	<-w.live.Stopped()
	s.panes.Add(-1)
}

// exitKnown waits until a program that has exited is known to have: its exit is made
// durable before anybody sees it.
func (s *Server) exitKnown(ctx context.Context, w window) {
	if w.live == nil {
		return
	}
	if _, _, exited := w.live.Exit(); exited {
		select {
		case <-w.archive.known:
		case <-ctx.Done():
		}
	}
}

// state is the state of the pane of w: archived once it is no longer recorded
// without its program having exited.
func (w *window) state() string {
	if w.live == nil {
		return "archived"
	}
	if w.Pane.Ended != nil {
		return "exited"
	}
	select {
	case <-w.live.Stopped():
		if _, _, ok := w.live.Exit(); !ok {
			return "archived"
		}
	default:
	}
	return "running"
}
