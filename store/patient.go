package store

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// patience is the time between two tries of what a full disk refused.
	patience = 50 * time.Millisecond
	// openPatience is how long Open tries, and whoever opens a file to read it:
	// they have nothing to lose, and are to know why they cannot.
	openPatience = 2 * time.Second
	// compactionPatience is how long a compaction tries: as long as it does, the tables
	// that it reads stay, though nothing of them may be left. Pebble begins it again.
	compactionPatience = time.Second
)

// patientFS stands between Pebble and the disk. What fails for want of space
// (a write, a new file, a rename) waits and is tried again, since Pebble would
// try again at once and for ever, or give up for good. So does a file that cannot
// be opened because too many are, of the process or of the system. A sync is never tried
// again: after a failed one nobody knows what is on the disk. Any other
// failure of a change fails the store, and from then on whoever would change
// something is parked for ever: Pebble would try without end, or panic, as it
// does when it cannot make a log or sync a directory.
type patientFS struct {
	base vfs.FS
	// fail marks the store as failed.
	fail func(error)
	// ballast is nil if there is none; set before the store is open.
	ballast *ballast
	// deferral puts off the syncs of WALs; nil if there is none.
	deferral *deferral
	// fullSince is when the disk was found full (ns since the epoch), 0 while
	// it is not. Written by whoever waits.
	fullSince atomic.Int64
	// scarceSince is since when (ns since the epoch) no file can be opened for
	// reading, because too many are open; 0 while one can.
	scarceSince atomic.Int64
	scarce      atomic.Uint64 // counts those that could not
	refused     refusals
	// strict is set once Pebble is open; until then failures are returned, and
	// are Open's.
	strict atomic.Bool
	// ready is set once the store is open; until then a full disk is waited for
	// openPatience at most.
	ready atomic.Bool
	// shut lets nothing change any more; set when the store fails, never reset.
	shut atomic.Bool
	// hurry ends all waiting: what the disk refuses then fails. Closed by
	// Close when its own patience ends.
	hurry chan struct{}
}

var _ vfs.FS = (*patientFS)(nil)

func newPatientFS(base vfs.FS, fail func(error)) *patientFS {
	return &patientFS{base: base, fail: fail, hurry: make(chan struct{})}
}

// check parks the caller for ever if the store has failed.
func (p *patientFS) check() {
	if p.shut.Load() {
		select {}
	}
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isScarce says that too many files are open.
func isScarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// give returns err, or takes it for the end of the store.
func (p *patientFS) give(err error) error {
	if err != nil && p.strict.Load() {
		p.fail(err)
		p.check()
	}
	return err
}

// retry runs op until it fails with something else than a full disk.
func (p *patientFS) retry(op func() error) error { return p.retryFor(useFlush, op) }

// retryFor is retry; u says what op writes.
func (p *patientFS) retryFor(u use, op func() error) error {
	for try := 0; ; try++ {
		p.check()
		err := error(syscall.ENOSPC)
		if !p.holds(u) {
			err = op()
		}
		switch {
		case isScarce(err):
		case !isFull(err):
			if err == nil && try > 0 && !p.away() {
				p.fullSince.Store(0)
			}
			return p.give(err)
		default:
			if u != useCompaction { // which nothing waits for, and may not come again
				p.fullSince.CompareAndSwap(0, time.Now().UnixNano())
			}
			if p.mayGive(u) {
				p.ballast.give()
				continue
			}
			if u == useCompaction && try > int(compactionPatience/patience) {
				return err
			}
		}
		if !p.wait(try) {
			return p.give(err)
		}
	}
}

// wait waits before the next try, unless there is to be none.
func (p *patientFS) wait(try int) bool {
	if !p.ready.Load() && try > int(openPatience/patience) {
		return false
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.hurry:
		return false
	}
}

// openForReading runs op until enough files are closed, but not once too many have
// been open for openPatience: whoever reads is to know why it cannot.
func (p *patientFS) openForReading(op func() (vfs.File, error)) (vfs.File, error) {
	for try := 0; ; try++ {
		f, err := op()
		if !isScarce(err) {
			p.scarceSince.Store(0)
			return f, err
		}
		p.scarceSince.CompareAndSwap(0, time.Now().UnixNano())
		if time.Since(time.Unix(0, p.scarceSince.Load())) > openPatience || !p.wait(try) {
			p.scarce.Add(1)
			return f, err
		}
	}
}

// open opens a file for writing by op.
func (p *patientFS) open(name string, c vfs.DiskWriteCategory, op func() (vfs.File, error)) (f vfs.File, err error) {
	u := useOf(p.base, name, c)
	err = p.retryFor(u, func() error { f, err = op(); return err })
	if err != nil {
		return nil, err
	}
	f = &patientFile{p: p, base: f, use: u}
	if p.deferral != nil && u == useWAL {
		f = p.deferral.open(f)
	}
	return f, nil
}

// Create makes a new file. A manifest is made known to its directory at once:
// Pebble syncs that only together with the marker that points to the manifest,
// and of the two a crash might leave the marker.
func (p *patientFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.open(name, c, func() (vfs.File, error) { return p.base.Create(name, c) })
	if err == nil && strings.HasPrefix(p.PathBase(name), "MANIFEST-") {
		if err := syncDir(p, p.PathDir(name)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, err
}

func (p *patientFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return p.open(name, c, func() (vfs.File, error) { return p.base.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite makes a new file of one that is not needed any more. On a full disk it
// does so in two steps, since what the old one takes is needed elsewhere.
func (p *patientFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if p.away() && p.base.Remove(oldname) == nil {
		return p.Create(newname, c)
	}
	return p.open(newname, c, func() (vfs.File, error) { return p.base.ReuseForWrite(oldname, newname, c) })
}

func (p *patientFS) Link(oldname, newname string) error {
	return p.retry(func() error { return p.base.Link(oldname, newname) })
}

func (p *patientFS) Rename(oldname, newname string) error {
	return p.retry(func() error { return p.base.Rename(oldname, newname) })
}

func (p *patientFS) MkdirAll(dir string, perm os.FileMode) error {
	return p.retry(func() error { return p.base.MkdirAll(dir, perm) })
}

func (p *patientFS) Remove(name string) error {
	p.check()
	return p.base.Remove(name)
}

func (p *patientFS) RemoveAll(name string) error {
	p.check()
	return p.base.RemoveAll(name)
}

func (p *patientFS) OpenDir(name string) (vfs.File, error) {
	f, err := p.openForReading(func() (vfs.File, error) { return p.base.OpenDir(name) })
	if err != nil {
		return nil, err
	}
	return &patientDir{patientFile{p: p, base: f}}, nil
}

func (p *patientFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := p.openForReading(func() (vfs.File, error) { return p.base.Open(name, opts...) })
	if !isTable(p.base, name) {
		return f, err
	}
	if err != nil {
		p.refused.add(err)
		return nil, err
	}
	return openTable(f, p.PathBase(name), &p.refused), nil
}

func (p *patientFS) Lock(name string) (io.Closer, error)    { return p.base.Lock(name) }
func (p *patientFS) List(dir string) ([]string, error)      { return p.base.List(dir) }
func (p *patientFS) Stat(name string) (vfs.FileInfo, error) { return p.base.Stat(name) }
func (p *patientFS) PathBase(path string) string            { return p.base.PathBase(path) }
func (p *patientFS) PathJoin(elem ...string) string         { return p.base.PathJoin(elem...) }
func (p *patientFS) PathDir(path string) string             { return p.base.PathDir(path) }
func (p *patientFS) Unwrap() vfs.FS                         { return p.base }
func (p *patientFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	return p.base.GetDiskUsage(path)
}

// patientFile is a file that may be written to.
type patientFile struct {
	p    *patientFS
	base vfs.File
	use  use
}

var _ vfs.File = (*patientFile)(nil)

// Write writes all of b. A full disk may take a part of it; the rest is tried
// again.
func (f *patientFile) Write(b []byte) (n int, err error) {
	err = f.p.retryFor(f.use, func() error {
		m, err := f.base.Write(b[n:])
		n += m
		return err
	})
	return n, err
}

func (f *patientFile) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.p.retry(func() error {
		m, err := f.base.WriteAt(b[n:], off+int64(n))
		n += m
		return err
	})
	return n, err
}

// Preallocate is advice: a disk too full for it is found out by the write, and nothing
// is set aside of the ballast.
func (f *patientFile) Preallocate(off, n int64) error {
	if f.p.away() {
		return nil
	}
	if err := f.base.Preallocate(off, n); err != nil && !isFull(err) {
		return err
	}
	return nil
}

func (f *patientFile) Sync() error     { return f.sync(f.base.Sync) }
func (f *patientFile) SyncData() error { return f.sync(f.base.SyncData) }

func (f *patientFile) SyncTo(n int64) (full bool, err error) {
	err = f.sync(func() error { full, err = f.base.SyncTo(n); return err })
	return full, err
}

func (f *patientFile) sync(op func() error) error {
	f.p.check()
	return f.p.give(op())
}

// patientDir is a directory, opened to be synced.
type patientDir struct{ patientFile }

// Sync syncs the directory. If that fails, so has the store, even in Open.
func (d *patientDir) Sync() error {
	err := d.patientFile.Sync()
	if err != nil {
		d.p.fail(err)
		d.p.check()
	}
	return err
}

func (f *patientFile) Close() error                            { return f.base.Close() }
func (f *patientFile) Read(b []byte) (int, error)              { return f.base.Read(b) }
func (f *patientFile) ReadAt(b []byte, off int64) (int, error) { return f.base.ReadAt(b, off) }
func (f *patientFile) Stat() (vfs.FileInfo, error)             { return f.base.Stat() }
func (f *patientFile) Prefetch(off, n int64) error             { return f.base.Prefetch(off, n) }
func (f *patientFile) Fd() uintptr                             { return f.base.Fd() }
