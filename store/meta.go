package store

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A store is a directory with the file headerFile and the Pebble database
// dbDir. The header says whose directory this is before anything in it is
// opened for writing. All integers little-endian:
//
//	 0  [8]   magic      "looptape"
//	 8  u32   version    storeVersion, 1; a program refuses a larger one. This
//	                     much is the same in every version
//	12  u32   state      stateCreating 0 until the database is complete, then
//	                     stateReady 1
//	16  [16]  id         random, names the store for ever
//	32  u32   sum        CRC-32C of bytes 0-31
//	36  -     end
//
// The record under metaKey in the database repeats id, so that header and
// database of different stores are told apart:
//
//	 0  u8    type       'M'
//	 1  u8    version    1
//	 2  [16]  id
//	18  u32   sum        CRC-32C of bytes 0-17
//	22  -     end
const (
	headerFile   = "STORE"
	headerTemp   = "STORE.tmp"
	dbDir        = "db"
	lockFile     = "LOCK"
	magic        = "looptape"
	storeVersion = 1

	stateCreating = 0
	stateReady    = 1

	headerSize = 36
	metaSize   = 22
)

type storeHeader struct {
	state uint32
	id    [16]byte
}

func (h *storeHeader) encode() []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	b = binary.LittleEndian.AppendUint32(b, storeVersion)
	b = binary.LittleEndian.AppendUint32(b, h.state)
	b = append(b, h.id[:]...)
	return appendSum(b)
}

func appendSum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// sumMatches checks that b is n bytes long and ends in the sum of the rest.
func sumMatches(b []byte, n int) error {
	if len(b) < n {
		return errShort
	}
	if len(b) > n {
		return fmt.Errorf("%w: %d bytes too many", errRecord, len(b)-n)
	}
	if crc32.Checksum(b[:n-4], castagnoli) != binary.LittleEndian.Uint32(b[n-4:]) {
		return errChecksum
	}
	return nil
}

func decodeStoreHeader(b []byte) (h storeHeader, err error) {
	if len(b) < len(magic)+4 || string(b[:len(magic)]) != magic {
		return h, ErrNotStore
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v > storeVersion {
		return h, fmt.Errorf("%w: %d", ErrNewerVersion, v)
	}
	if err := sumMatches(b, headerSize); err != nil {
		return h, err
	}
	h.state = binary.LittleEndian.Uint32(b[12:])
	copy(h.id[:], b[16:])
	if h.state > stateReady || binary.LittleEndian.Uint32(b[8:]) == 0 {
		return h, errRecord
	}
	return h, nil
}

func encodeMeta(id [16]byte) []byte {
	return appendSum(append([]byte{'M', 1}, id[:]...))
}

func decodeMeta(b []byte) (id [16]byte, err error) {
	if err := sumMatches(b, metaSize); err != nil {
		return id, err
	}
	if b[0] != 'M' || b[1] != 1 {
		return id, errRecord
	}
	copy(id[:], b[2:])
	return id, nil
}

// inspect reads the header of dir without touching anything. fresh says that
// there is no store yet and that one may be made.
func inspect(fsys vfs.FS, dir string) (h storeHeader, fresh bool, err error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return h, true, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return h, false, fmt.Errorf("%w: %s is not a directory", ErrNotStore, dir)
	}
	if err != nil {
		return h, false, err
	}
	found := false
	for _, name := range names {
		switch name {
		case headerFile:
			found = true
		case headerTemp, ballastFile:
		case dbDir:
		default:
			if !strings.HasPrefix(name, ".") && err == nil {
				err = fmt.Errorf("%w: %s holds %s", ErrNotStore, dir, name)
			}
		}
	}
	if !found {
		// A first start that was cut off leaves an empty database directory.
		sub, suberr := fsys.List(fsys.PathJoin(dir, dbDir))
		if err == nil && suberr == nil && len(sub) > 0 && (len(sub) > 1 || sub[0] != lockFile) {
			err = fmt.Errorf("%w: %s has a database but no header", ErrNotStore, dir)
		}
		return h, err == nil, err
	}
	b, err := readFile(fsys, fsys.PathJoin(dir, headerFile), 1<<10)
	if err != nil {
		return h, false, err
	}
	if h, err = decodeStoreHeader(b); err != nil {
		if !errors.Is(err, ErrNotStore) && !errors.Is(err, ErrNewerVersion) {
			err = &DamagedError{Pane: WholeStore, Err: fmt.Errorf("header: %w", err)}
		}
		return h, false, err
	}
	return h, false, checkFormat(fsys, fsys.PathJoin(dir, dbDir))
}

// checkFormat refuses a database of a Pebble format that ours does not know,
// by the name of the marker file.
func checkFormat(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return nil // opening it will say
	}
	for _, name := range names {
		f := strings.Split(name, ".")
		if len(f) == 4 && f[0] == "marker" && f[1] == "format-version" {
			if v, err := strconv.ParseUint(f[3], 10, 64); err == nil && v > uint64(pebble.FormatNewest) {
				return fmt.Errorf("%w: database format %d", ErrNewerVersion, v)
			}
		}
	}
	return nil
}

// writeHeader replaces the header of dir, durably.
func writeHeader(fsys vfs.FS, dir string, h storeHeader) error {
	temp := fsys.PathJoin(dir, headerTemp)
	f, err := fsys.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(h.encode())
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := fsys.Rename(temp, fsys.PathJoin(dir, headerFile)); err != nil {
		return err
	}
	return syncDir(fsys, dir)
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readFile returns up to limit bytes of a file, also what could be read before
// an error.
func readFile(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(f, limit))
	return b.Bytes(), err
}

func newID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
