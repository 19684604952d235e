package store

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// ballastFile is the file, in the store's directory, that is given up when
	// the disk is full.
	ballastFile    = "ballast"
	defaultBallast = 8 << 20
	// walSuffix ends the name of a WAL of Pebble's.
	walSuffix = ".log"
)

// ballast is space kept for the worst: when the disk is full it is given to
// tables, manifests and eviction, so that these can make space, while the log
// of writes (WAL) goes on waiting. While logs are being removed (Store.Relieve),
// the WAL gets half of it too, since that makes space. It is taken back once there
// is space for it and half as much again.
type ballast struct {
	fs   vfs.FS // the file system itself, without patience
	path string
	size int64
	// held says that the file is there. Set by take, by the retainer or Open;
	// reset by whoever finds the disk full.
	held atomic.Bool
	// given says that it was given up on a full disk and is not back. Where
	// there never was room for it, the store goes on without.
	given atomic.Bool
	// relieved counts those who remove logs.
	relieved atomic.Int32
}

// take makes the file.
func (b *ballast) take() error {
	f, err := b.fs.Create(b.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	zeros := make([]byte, 256<<10)
	for n := int64(0); n < b.size && err == nil; n += int64(len(zeros)) {
		_, err = f.Write(zeros[:min(int64(len(zeros)), b.size-n)])
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, b.fs.Remove(b.path))
	}
	b.held.Store(true)
	b.given.Store(false)
	return nil
}

// wants is how much space there has to be to take it back: half of it is left then.
func (b *ballast) wants() uint64 { return uint64(b.size) + uint64(b.size)/2 }

// give deletes the file.
func (b *ballast) give() {
	if b.held.CompareAndSwap(true, false) {
		b.given.Store(true)
		_ = b.fs.Remove(b.path)
	}
}

// isWAL reports whether the file waits while the ballast is away: Pebble's log
// of writes, and ours of records.
func isWAL(fsys vfs.FS, name string) bool {
	base := fsys.PathBase(name)
	return strings.HasSuffix(base, walSuffix) || strings.HasPrefix(base, journalPrefix)
}

// ballastBytes is what the ballast takes.
func (p *patientFS) ballastBytes() uint64 {
	if p.ballast == nil || !p.ballast.held.Load() {
		return 0
	}
	return uint64(p.ballast.size)
}

// Relieve lets the records and logs of a full disk use half of the ballast, until
// done is called: for whoever removes logs, which takes a little space first.
func (s *Store) Relieve() (done func()) {
	b := s.fs.ballast
	if b == nil {
		return func() {}
	}
	b.relieved.Add(1)
	return sync.OnceFunc(func() { b.relieved.Add(-1) })
}

// away reports whether the ballast was given up and is not back.
func (p *patientFS) away() bool { return p.ballast != nil && p.ballast.given.Load() }

// holdWAL reports whether the disk is so full that the WAL has to wait for
// the ballast to be back.
func (p *patientFS) holdWAL() bool {
	b := p.ballast
	if !p.away() {
		return false
	}
	if b.relieved.Load() == 0 {
		return true
	}
	u, err := p.base.GetDiskUsage(p.base.PathDir(b.path))
	return err == nil && u.AvailBytes < uint64(b.size)/2
}

// mayGive reports whether a write that the disk refused is worth the ballast.
func (p *patientFS) mayGive(wal bool) bool {
	b := p.ballast
	return b != nil && b.held.Load() && (!wal || b.relieved.Load() > 0)
}

// needs is how much space has to be free on a full disk before the WAL goes on, in
// bytes; 0 if any will do.
func (p *patientFS) needs() uint64 {
	if !p.away() {
		return 0
	}
	return p.ballast.wants()
}

// restore takes the ballast back if it is away and there is space; the
// retainer calls it in each pass.
func (p *patientFS) restore() {
	b := p.ballast
	if b == nil || b.held.Load() || p.shut.Load() {
		return
	}
	if given := b.given.Load(); p.takeBallast() && given {
		p.fullSince.Store(0)
	}
}

// takeBallast makes the ballast if there is space for it and half as much again.
func (p *patientFS) takeBallast() bool {
	b := p.ballast
	if u, err := p.base.GetDiskUsage(p.base.PathDir(b.path)); err == nil && u.AvailBytes < b.wants() {
		return false
	}
	return b.take() == nil
}

// setBallast gives the store its ballast and makes it. Where there is no room
// for it, on a full disk or a tiny one, the store goes on without.
func (p *patientFS) setBallast(path string, size int64) {
	if size <= 0 {
		return
	}
	p.ballast = &ballast{fs: p.base, path: path, size: size}
	if info, err := p.base.Stat(path); err == nil && info.Size() == size {
		p.ballast.held.Store(true)
	} else {
		p.takeBallast()
	}
}
