package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableFile is a table of Pebble's, open for reading. Pebble checks each block
// that it reads, but of one that is damaged it looks for the bit that was
// flipped by trying all of them, which takes seconds of CPU, each time that it
// meets the block. So the check is made here first. Pebble reads a table by
// the block, with its trailer (a byte, then the CRC-32C, masked, of all before
// it), except for the footer, which ends the file.
type tableFile struct {
	base    vfs.File
	name    string
	size    int64
	refused *refusals
}

var _ vfs.File = (*tableFile)(nil)

const blockTrailer = 5

func isTable(fsys vfs.FS, name string) bool { return strings.HasSuffix(fsys.PathBase(name), ".sst") }

// openTable wraps f, unless its size cannot be told.
func openTable(f vfs.File, name string, refused *refusals) vfs.File {
	info, err := f.Stat()
	if err != nil {
		return f
	}
	return &tableFile{base: f, name: name, size: info.Size(), refused: refused}
}

// ReadAt reads a block or the footer. A block that is damaged is an error that
// Pebble takes for corruption.
func (f *tableFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.base.ReadAt(b, off)
	f.refused.add(err)
	if err != nil || len(b) <= blockTrailer || off+int64(len(b)) >= f.size {
		return n, err
	}
	body := b[:len(b)-4]
	if want, got := binary.LittleEndian.Uint32(b[len(body):]), maskedSum(body); want != got {
		return n, fmt.Errorf("%w: %s: block %d/%d: %w", pebble.ErrCorruption, f.name, off, len(b)-blockTrailer, errChecksum)
	}
	return n, nil
}

// maskedSum is the checksum of a block in a table.
func maskedSum(b []byte) uint32 { return masked(crc32.Checksum(b, castagnoli)) }

func masked(c uint32) uint32 { return c>>15 | c<<17 + 0xa282ead8 }

func (f *tableFile) Close() error                              { return f.base.Close() }
func (f *tableFile) Read(b []byte) (int, error)                { return f.base.Read(b) }
func (f *tableFile) Write(b []byte) (int, error)               { return f.base.Write(b) }
func (f *tableFile) WriteAt(b []byte, off int64) (int, error)  { return f.base.WriteAt(b, off) }
func (f *tableFile) Preallocate(off, n int64) error            { return f.base.Preallocate(off, n) }
func (f *tableFile) Stat() (vfs.FileInfo, error)               { return f.base.Stat() }
func (f *tableFile) Sync() error                               { return f.base.Sync() }
func (f *tableFile) SyncTo(n int64) (fullSync bool, err error) { return f.base.SyncTo(n) }
func (f *tableFile) SyncData() error                           { return f.base.SyncData() }
func (f *tableFile) Prefetch(off int64, n int64) error         { return f.base.Prefetch(off, n) }
func (f *tableFile) Fd() uintptr                               { return f.base.Fd() }

// refusals counts the reads of tables that the device refused. Nobody knows what is
// there, so that is no damage.
type refusals struct {
	n    atomic.Uint64
	last atomic.Pointer[error]
}

func (r *refusals) add(err error) {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
		return
	}
	r.last.Store(&err)
	r.n.Add(1)
}

// since is nil, or an error that came behind the first n.
func (r *refusals) since(n uint64) error {
	if r.n.Load() == n {
		return nil
	}
	return *r.last.Load()
}

// maxNoted bounds what a damageLog remembers.
const maxNoted = 1024

// damageLog knows the damaged tables that were met, and passes on each report once:
// damage is met again and again.
type damageLog struct {
	mu   sync.Mutex
	seen map[string]bool
	hits map[string]bool // names of damaged tables
}

// hit takes note of a damaged table, and reports whether it is a new one.
func (d *damageLog) hit(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hits[name] {
		return false
	}
	if d.hits == nil {
		d.hits = make(map[string]bool)
	}
	d.hits[name] = true
	return true
}

// forget says that a table is mended, or gone.
func (d *damageLog) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.hits, name)
}

// tables are the names of the damaged tables.
func (d *damageLog) tables() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return sortedKeys(d.hits)
}

// first reports whether what is new.
func (d *damageLog) first(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[what] || len(d.seen) >= maxNoted {
		return false
	}
	if d.seen == nil {
		d.seen = make(map[string]bool)
	}
	d.seen[what] = true
	return true
}
