package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	defaultSegmentBytes = 256 << 10
	defaultInFlight     = 4 << 20
	// MaxBatch is how much a caller may append, frames' data and costs
	// together, between two looks at Room for LossBound to hold.
	MaxBatch = 1 << 20
	// closePatience is how long Close waits for a disk that is full.
	closePatience = 2 * time.Second
)

// Options are what Open may be told. The zero value is right.
type Options struct {
	// FS is the file system; nil is DiskFS.
	FS vfs.FS
	// Logger gets what Pebble says; nil is slog.Default.
	Logger *slog.Logger
	// SegmentBytes is the size of a segment before compression; 256 KiB if 0,
	// at least 64, at most 16 MiB.
	SegmentBytes int
	// InFlight bounds what of one log is appended and not durable, in bytes; 4
	// MiB if 0.
	InFlight int
	// Level is the zstd level, 1 to 4; 0 is the fastest, below 0 stores
	// segments as they are.
	Level int
	// Pace is the least time between two commits; 5 ms if 0, none below 0.
	Pace time.Duration
	// MemTable is the size of Pebble's memtable; 4 MiB if 0.
	MemTable int
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = DiskFS()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	o.SegmentBytes = min(max(o.SegmentBytes, 64), 16<<20)
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	if o.Pace == 0 {
		o.Pace = commitPace
	}
	if o.MemTable <= 0 {
		o.MemTable = 4 << 20
	}
}

// Store is an open store. All methods may be called from any goroutine.
type Store struct {
	opts Options
	dir  string
	fs   *patientFS
	db   *pebble.DB
	lock *pebble.Lock
	id   [16]byte

	committer *committer
	enc       *encoders
	pool      chunkPool
	stats     counters
	gate      gate // readers in Pebble, closed by Close

	// failed is closed when the store fails; err says why, set before that.
	failed chan struct{}
	err    atomic.Pointer[error]

	mu     sync.Mutex
	logs   map[uint64]*Log // open logs
	closed bool
}

// Open opens the store in dir, or makes one if dir does not exist or is
// empty. Errors: ErrNotStore, ErrNewerVersion, ErrLocked, *DamagedError,
// ErrFailed, or what the file system says.
func Open(dir string, o Options) (*Store, error) {
	o.setDefaults()
	s := &Store{
		opts:   o,
		dir:    dir,
		failed: make(chan struct{}),
		logs:   make(map[uint64]*Log),
		pool:   chunkPool{size: o.SegmentBytes},
	}
	s.fs = newPatientFS(o.FS, s.fail)
	if _, _, err := inspect(s.fs, dir); err != nil {
		return nil, err
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		if s.db != nil && s.Err() == nil {
			_ = s.db.Close()
		}
		_ = s.lock.Close()
		return nil, err
	}
	return s, nil
}

// acquire makes the directories and takes the lock.
func (s *Store) acquire() error {
	db := s.fs.PathJoin(s.dir, dbDir)
	if err := s.fs.MkdirAll(db, dirPerm); err != nil {
		return err
	}
	lock, err := pebble.LockDirectory(db, s.fs)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return err
		}
		return fmt.Errorf("%w: %s (%v)", ErrLocked, s.dir, err)
	}
	s.lock = lock
	return nil
}

// open does the rest of Open, under the lock.
func (s *Store) open() error {
	h, fresh, err := inspect(s.fs, s.dir)
	if err != nil {
		return err
	}
	if fresh {
		h = storeHeader{state: stateCreating, id: newID()}
		if err := writeHeader(s.fs, s.dir, h); err != nil {
			return err
		}
		if err := syncDir(s.fs, s.fs.PathDir(s.dir)); err != nil {
			return err
		}
	}
	s.id = h.id
	if err := s.openDB(h.state == stateReady); err != nil {
		return err
	}
	if h.state == stateCreating {
		if err := s.db.Set(metaKey, encodeMeta(s.id), pebble.Sync); err != nil {
			return err
		}
		h.state = stateReady
		if err := writeHeader(s.fs, s.dir, h); err != nil {
			return err
		}
	} else if err := s.checkMeta(); err != nil {
		return err
	}
	if err := s.sweep(); err != nil {
		return err
	}
	if s.enc, err = newEncoders(s.opts.Level); err != nil {
		return err
	}
	s.fs.strict.Store(true)
	s.committer = newCommitter(s, s.enc)
	go s.committer.run()
	return nil
}

// checkMeta compares the database's record with the header.
func (s *Store) checkMeta() error {
	v, closer, err := s.db.Get(metaKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return &DamagedError{Err: fmt.Errorf("meta: %w", errMissing)}
	}
	if err != nil {
		return &DamagedError{Err: fmt.Errorf("meta: %w", err)}
	}
	defer closer.Close()
	id, err := decodeMeta(v)
	if err == nil && id != s.id {
		err = fmt.Errorf("%w: header and database are of different stores", errRecord)
	}
	if err != nil {
		return &DamagedError{Err: fmt.Errorf("meta: %w", err)}
	}
	return nil
}

// ID names the store; made at random when it was.
func (s *Store) ID() [16]byte { return s.id }

// Err is nil, or why the store failed (errors.Is ErrFailed).
func (s *Store) Err() error {
	if e := s.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Failed is closed when the store fails.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// fail marks the store as failed. From then on it writes nothing.
func (s *Store) fail(cause error) {
	err := fmt.Errorf("%w: %w", ErrFailed, cause)
	if !s.err.CompareAndSwap(nil, &err) {
		return
	}
	s.fs.shut.Store(true) // before anybody can learn of it
	s.opts.Logger.Error("store failed", "dir", s.dir, "err", cause)
	close(s.failed)
}

// LossBound bounds what an unclean stop can lose of one log: every byte ever
// appended lies below the durable offset then plus LossBound, and no more
// frames than that were lost. It holds for callers that look at Room after
// every MaxBatch.
func (s *Store) LossBound() uint64 { return uint64(s.opts.InFlight) + MaxBatch }

// Close makes everything appended durable and closes the store. No log may be
// appended to any more. On a full disk it waits two seconds, then gives up as
// a crash would; of a failed store it returns the failure at once and leaves
// the lock to the end of the process.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closed = true
	s.mu.Unlock()

	close(s.committer.stop)
	hurry := time.AfterFunc(closePatience, func() { close(s.fs.hurry) })
	defer hurry.Stop()
	select {
	case <-s.committer.done:
		s.enc.stop()
	case <-s.failed:
	}
	s.gate.close()
	if s.Err() != nil {
		return s.Err()
	}
	closed := make(chan error, 1)
	go s.closeDB(closed)
	select {
	case err := <-closed:
		return errors.Join(err, s.Err(), s.lock.Close())
	case <-s.failed:
		return s.Err()
	}
}

// closeDB closes Pebble. Close waits for it, unless the store fails
// meanwhile: then it may stay for ever behind a goroutine that Fatalf parked.
func (s *Store) closeDB(done chan<- error) { done <- s.db.Close() }

// view runs fn with an iterator over the content of a pane's log.
func (s *Store) view(pane uint64, fn func(*pebble.Iterator) error) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	lo, hi := paneBounds(pane)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return err
	}
	return errors.Join(fn(it), ignoreDamage(it.Close()))
}

// ignoreDamage drops the error that an iterator repeats at its end: whoever
// used it has seen it.
func ignoreDamage(error) error { return nil }

// gate lets readers into Pebble until it is closed.
type gate struct {
	mu     sync.RWMutex // held for reading by those inside
	closed bool
}

func (g *gate) enter() bool {
	g.mu.RLock()
	if g.closed {
		g.mu.RUnlock()
		return false
	}
	return true
}

func (g *gate) leave() { g.mu.RUnlock() }

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

var _ io.Closer = (*Store)(nil)
