package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	defaultSegmentBytes = 256 << 10
	defaultInFlight     = 4 << 20
	defaultMemTable     = 4 << 20
	leastMemTable       = 256 << 10
	defaultTables       = 256
	leastTables         = 8
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
	// ReadOnly opens a store that is there for reading, which also works on a
	// full disk. Writing gives ErrReadOnly, appending panics.
	ReadOnly bool
	// Level is the zstd level, 1 to 4; 0 is the fastest, below 0 stores
	// segments as they are.
	Level int
	// SyncEvery puts off the syncs of the WAL: 0 syncs each commit, else a
	// commit has left the process when it counts as durable, so that it
	// survives kill -9, and the WAL is synced at the latest so much later, or
	// when 8 MiB of the logs wait for it. A power cut loses what came behind
	// Log.Synced.
	SyncEvery time.Duration
	// Pace is the least time between two commits; 5 ms if 0, none below 0.
	Pace time.Duration
	// Retain is how much of the stream a log keeps at least, in bytes; 256 MiB
	// if 0, at least 4 MiB.
	Retain uint64
	// KeepFor is how old what a log keeps may become; 0 is any age. Whole spans
	// go, once all in them is older, but never the last span of a log.
	KeepFor time.Duration
	// DiskCap is how large the store may be on disk, ballast included, before
	// spans go that Retain would keep; 4 GiB if 0. It may be exceeded by four
	// memtables, what one second adds, and the last span of each log.
	DiskCap uint64
	// Ballast is the size of the file that is given up on a full disk; 8 MiB
	// if 0, none below 0.
	Ballast int64
	// EvictPace is the time between two passes of eviction; 1 s if 0.
	EvictPace time.Duration
	// MemTable is the size of Pebble's memtable; 4 MiB if 0, less on a disk
	// with less than 64 MiB left.
	MemTable int
	// Tables is how many tables are kept open; 256 if 0, at least 8. A quarter as
	// many readers are in Pebble at a time. Some twenty other files are open
	// besides, half of them for a moment only.
	Tables int

	// Lower limits, which only tests change.
	minRetain, garbage uint64
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
	o.setRetention()
}

func (o *Options) setRetention() {
	if o.Retain == 0 {
		o.Retain = defaultRetain
	}
	if o.DiskCap == 0 {
		o.DiskCap = defaultDiskCap
	}
	if o.Ballast == 0 {
		o.Ballast = defaultBallast
	}
	if o.EvictPace <= 0 {
		o.EvictPace = evictPace
	}
	if o.Tables == 0 {
		o.Tables = defaultTables
	}
	o.Tables = max(o.Tables, leastTables)
	if o.minRetain == 0 {
		o.minRetain = minRetain
	}
	if o.garbage == 0 {
		o.garbage = garbageBytes
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
	keeper    *keeper
	reserve   *reserve
	retainer  *retainer
	deferral  *deferral // nil if each commit is synced
	enc       *encoders
	pool      chunkPool
	stats     counters
	onEvict   atomic.Pointer[func(pane, from, to uint64)]
	gate      gate          // readers in Pebble, closed by Close
	readers   chan struct{} // holds one for each of them
	damage    damageLog
	reports   sync.WaitGroup // what report has not passed on yet

	// failed is closed when the store fails; err says why, set before that.
	failed chan struct{}
	err    atomic.Pointer[error]

	mu      sync.Mutex
	logs    map[uint64]*Log     // open logs; nil while one is made or removed
	opening map[uint64]*opening // those that Log is reading
	closed  bool
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

		opening: make(map[uint64]*opening),
		readers: make(chan struct{}, o.Tables/4),
	}
	s.fs = newPatientFS(o.FS, s.fail)
	if o.SyncEvery > 0 && !o.ReadOnly {
		s.deferral = newDeferral(o.SyncEvery)
		s.fs.deferral = s.deferral
	}
	s.keeper, s.reserve = newKeeper(s), &reserve{s: s}
	if _, _, err := inspect(s.fs, dir); err != nil {
		return nil, err
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		if s.Err() == nil && s.db != nil {
			_ = s.guard(s.db.Close)
			_ = s.closeFiles()
		}
		_ = s.lock.Close()
		return nil, err
	}
	return s, nil
}

// acquire makes the directories and takes the lock.
func (s *Store) acquire() error {
	db := s.fs.PathJoin(s.dir, dbDir)
	if !s.opts.ReadOnly {
		if err := s.fs.MkdirAll(db, dirPerm); err != nil {
			return err
		}
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
	if s.opts.ReadOnly && (fresh || h.state != stateReady) {
		return fmt.Errorf("%w: nothing to read in %s", ErrNotStore, s.dir)
	}
	if fresh {
		h = storeHeader{state: stateCreating, id: newID()}
		if err := writeHeader(s.opts.FS, s.dir, h); err != nil {
			return err
		}
		if err := syncDir(s.opts.FS, s.fs.PathDir(s.dir)); err != nil {
			return err
		}
	}
	s.id = h.id
	if s.opts.ReadOnly {
		s.opts.Ballast = -1
	}
	s.opts.MemTable = s.memTable()
	s.fs.setBallast(s.fs.PathJoin(s.dir, ballastFile), s.opts.Ballast)
	if err := s.keeper.load(h.state == stateCreating); err != nil {
		return err
	}
	// Pebble may park its caller for ever, see Fatalf.
	if err := s.guard(func() error { return s.openDB(h.state) }); err != nil {
		return err
	}
	if err := s.guard(s.openFiles); err != nil {
		return err
	}
	if h.state == stateCreating {
		h.state = stateReady
		if err := writeHeader(s.opts.FS, s.dir, h); err != nil {
			return err
		}
	}
	if s.enc, err = newEncoders(s.opts.Level); err != nil {
		return err
	}
	s.fs.ready.Store(true)
	s.committer = newCommitter(s, s.enc)
	s.retainer = &retainer{s: s, stop: make(chan struct{}), done: make(chan struct{})}
	if s.opts.ReadOnly {
		close(s.committer.done)
		close(s.keeper.done)
		close(s.retainer.done)
		return nil
	}
	if s.deferral != nil {
		go s.deferral.run(s.failed)
	}
	go s.committer.run()
	go s.keeper.run()
	go s.retainer.run()
	return nil
}

// memTable is the size of Pebble's memtable, which is also what its log of
// writes sets aside on the disk.
func (s *Store) memTable() int {
	if s.opts.MemTable > 0 {
		return s.opts.MemTable
	}
	u, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return defaultMemTable
	}
	return int(min(max(u.AvailBytes/16, leastMemTable), defaultMemTable))
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
	close(s.failed)       // before the logger learns of it, which may never return
	s.opts.Logger.Error("store failed", "dir", s.dir, "err", cause)
}

// report logs on behalf of a caller that the rest of the store waits for: one that
// holds a lock of Pebble's, the committer. Its goroutine ends when the logger returns,
// which a log that nobody reads may keep it from, and only tests wait for it. What was
// reported once is not again, so that there are few of them.
func (s *Store) report(level slog.Level, msg string, args ...any) {
	if s.damage.first(fmt.Sprint(msg, args)) {
		s.reports.Go(func() { s.opts.Logger.Log(context.Background(), level, msg, args...) })
	}
}

// LossBound bounds what an unclean stop can lose of one log: every byte ever
// appended lies below the end that the next Open finds plus LossBound, and no
// more frames than that were lost. It holds for callers that look at Room after
// every MaxBatch, and is 5 MiB; 13 MiB in a store that was ever opened with
// SyncEvery, since nobody knows how long ago a log was cut off.
func (s *Store) LossBound() uint64 {
	return uint64(s.opts.InFlight) + MaxBatch + s.keeper.lag()
}

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
	close(s.retainer.stop) // not before: on a full disk it takes the ballast back
	select {
	case <-s.retainer.done:
	case <-s.failed:
	}
	if s.deferral != nil {
		close(s.deferral.stop)
		select {
		case <-s.deferral.done:
		case <-s.failed:
		}
	}
	close(s.keeper.stop)
	select {
	case <-s.keeper.done:
	case <-s.failed:
	}
	s.gate.refuse()
	if s.Err() != nil {
		return s.Err()
	}
	if err := s.guard(s.closeDB); s.Err() != nil {
		return err // and keep the lock
	} else {
		return errors.Join(err, s.closeFiles(), s.lock.Close())
	}
}

// openFiles opens what is beside the database, for writing, once that is open.
func (s *Store) openFiles() error {
	if !s.opts.ReadOnly {
		if s.deferral != nil {
			s.keeper.state.lag = lagBytes
		}
		if err := s.keeper.rewrite(); err != nil {
			return err
		}
	}
	return s.reserve.open()
}

// closeFiles closes what openFiles opened.
func (s *Store) closeFiles() error {
	err := s.keeper.close()
	if f := s.reserve.file; f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// closeDB closes Pebble. It flushes first: tables are checked block by block
// when they are read, and a log that holds nothing can lose nothing.
func (s *Store) closeDB() error {
	s.gate.wait()
	if s.opts.ReadOnly {
		return s.db.Close()
	}
	return errors.Join(s.db.Flush(), s.db.Close())
}

// guard runs op, which calls into Pebble to change something, and returns its
// error; or that of the store if it fails meanwhile, because then op may stay
// for ever behind a goroutine that Fatalf parked.
func (s *Store) guard(op func() error) error {
	done := make(chan error, 1)
	go s.guarded(op, done)
	select {
	case err := <-done:
		return err
	case <-s.failed:
		return s.Err()
	}
}

// guarded ends when op returns, or never if the store failed; guard waits.
func (s *Store) guarded(op func() error, done chan<- error) { done <- op() }

// view runs fn with an iterator over the content of a pane's log.
func (s *Store) view(pane uint64, fn func(*pebble.Iterator) error) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	s.readers <- struct{}{}
	defer func() { <-s.readers }()
	lo, hi := paneBounds(pane)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return err
	}
	defer it.Close() // its error is one that fn has seen
	scarce := s.fs.scarce.Load()
	err = fn(it)
	if s.fs.scarce.Load() != scarce {
		// fn may have taken that for damage. Whoever comes back finds what is there.
		return fmt.Errorf("store: no table can be opened: %w", syscall.EMFILE)
	}
	var damaged *DamagedError
	if pebble.IsCorruptionError(err) && !errors.As(err, &damaged) {
		err = &DamagedError{pane, 0, err}
	}
	return err
}

// gate lets readers into Pebble until it is closed.
type gate struct {
	mu     sync.RWMutex // held for reading by those inside
	closed atomic.Bool
}

func (g *gate) enter() bool {
	g.mu.RLock()
	if g.closed.Load() {
		g.mu.RUnlock()
		return false
	}
	return true
}

func (g *gate) leave() { g.mu.RUnlock() }

// refuse lets nobody in any more.
func (g *gate) refuse() { g.closed.Store(true) }

// wait returns when nobody is inside.
func (g *gate) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
}

var _ io.Closer = (*Store)(nil)
