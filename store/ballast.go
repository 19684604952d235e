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
// flushes, manifests and eviction, so that these can make space, while logs and
// records (the WAL and the journal) go on waiting, and compactions, which take more
// space before they make some. While logs are being removed
// (Store.Relieve), which makes space, the journal gets all of it, and the WAL all but an
// eighth: what was on its way goes to tables before these can be cut, and the committer
// rests, so that there is no more of it. It is taken back once there is space for it
// and half as much again.
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
	b.given.Store(false) // first: from then on it may be given up again
	b.held.Store(true)
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

// use is what a file is for, which decides whether it may live on the ballast.
type use uint8

const (
	useFlush      use = iota // and all else that makes space, or is small
	useJournal               // the records
	useWAL                   // Pebble's log of writes
	useCompaction            // tables that take the place of others
)

// useOf goes by what Pebble says of a file that it makes, and by names.
func useOf(fsys vfs.FS, name string, c vfs.DiskWriteCategory) use {
	switch base := fsys.PathBase(name); {
	case strings.HasSuffix(base, walSuffix):
		return useWAL
	case strings.HasPrefix(base, journalPrefix):
		return useJournal
	case c == "pebble-compaction":
		return useCompaction
	}
	return useFlush
}

// ballastBytes is what the ballast takes.
func (p *patientFS) ballastBytes() uint64 {
	if p.ballast == nil || !p.ballast.held.Load() {
		return 0
	}
	return uint64(p.ballast.size)
}

// Relieve lets the records of a full disk use the ballast, and what is on its way to
// the logs, until done is called: for whoever removes logs, which takes a little space
// first. Nothing else of the logs becomes durable meanwhile.
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

// relieving reports whether logs are being removed on a full disk.
func (p *patientFS) relieving() bool { return p.away() && p.ballast.relieved.Load() > 0 }

// holds reports whether the disk is so full that a write has to wait for the ballast
// to be back.
func (p *patientFS) holds(u use) bool {
	switch {
	case u == useFlush || !p.away():
		return false
	case u == useCompaction || !p.relieving():
		return true
	case u == useJournal:
		return false
	}
	b := p.ballast
	usage, err := p.base.GetDiskUsage(p.base.PathDir(b.path))
	return err == nil && usage.AvailBytes < uint64(b.size)/8
}

// mayGive reports whether a write that the disk refused is worth the ballast.
func (p *patientFS) mayGive(u use) bool {
	b := p.ballast
	return b != nil && b.held.Load() && (u == useFlush || u != useCompaction && b.relieved.Load() > 0)
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
