package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// DiskFS is the file system under a store: the real one, on which every file
// has mode 0600 and every directory 0700 from the moment it exists, whatever
// the umask.
func DiskFS() vfs.FS { return diskFS{vfs.Default} }

// MemFS is a file system in memory, for tests.
func MemFS() vfs.FS { return vfs.NewMem() }

// diskFS makes each file itself before it lets the file system below open it,
// because that one would create it with mode 0666.
type diskFS struct{ base vfs.FS }

var _ vfs.FS = diskFS{}

// touch makes name with our mode if it is not there.
func touch(name string, flags int) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_CLOEXEC|flags, filePerm)
	if err != nil {
		return err
	}
	return f.Close()
}

func (d diskFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	// As the interface wants it: always a new file.
	for {
		err := touch(name, os.O_EXCL)
		if err == nil {
			return d.base.OpenReadWrite(name, c)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

func (d diskFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := touch(name, 0); err != nil {
		return nil, err
	}
	return d.base.OpenReadWrite(name, c, opts...)
}

func (d diskFS) Lock(name string) (io.Closer, error) {
	// Not through touch: closing another descriptor of a locked file would
	// release the lock.
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		if err := touch(name, os.O_EXCL); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return d.base.Lock(name)
}

func (d diskFS) MkdirAll(dir string, _ os.FileMode) error { return d.base.MkdirAll(dir, dirPerm) }

func (d diskFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.base.ReuseForWrite(oldname, newname, c)
}

func (d diskFS) Link(oldname, newname string) error { return d.base.Link(oldname, newname) }

func (d diskFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.base.Open(name, opts...)
}

func (d diskFS) OpenDir(name string) (vfs.File, error)        { return d.base.OpenDir(name) }
func (d diskFS) Remove(name string) error                     { return d.base.Remove(name) }
func (d diskFS) RemoveAll(name string) error                  { return d.base.RemoveAll(name) }
func (d diskFS) Rename(oldname, newname string) error         { return d.base.Rename(oldname, newname) }
func (d diskFS) List(dir string) ([]string, error)            { return d.base.List(dir) }
func (d diskFS) Stat(name string) (vfs.FileInfo, error)       { return d.base.Stat(name) }
func (d diskFS) PathBase(path string) string                  { return d.base.PathBase(path) }
func (d diskFS) PathJoin(elem ...string) string               { return d.base.PathJoin(elem...) }
func (d diskFS) PathDir(path string) string                   { return d.base.PathDir(path) }
func (d diskFS) Unwrap() vfs.FS                               { return d.base }
func (d diskFS) GetDiskUsage(p string) (vfs.DiskUsage, error) { return d.base.GetDiskUsage(p) }
