package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The file reserveFile holds for each log what it has reserved: up to where
// offsets and epochs may have been seen that the log does not have, because
// the disk took nothing. It is made of pages that were written and synced
// before they are needed, so that a full disk takes an overwrite of them. Slot
// n of a log is at slotSize*(n mod 64) in page 2*(n/64), and once more in the
// page after that: the first is synced before the second is touched, so one of
// them is always whole. All integers little-endian:
//
//	 0  u64   pane
//	 8  u64   number     of the write, larger than of any before; 0: no slot
//	16  u64   offset
//	24  u64   epochs
//	32  [28]  zeros
//	60  u32   sum        CRC-32C of the store's id and bytes 0-59
//
// Of all slots of a pane that are whole, that with the largest number counts.
const (
	reserveFile = "reserve"
	slotSize    = 64
	pageSize    = 4096
	pageSlots   = pageSize / slotSize
)

type slot struct{ pane, number, offset, epochs uint64 }

func (s *slot) encode(id [16]byte) []byte {
	le, b := binary.LittleEndian, make([]byte, slotSize)
	le.PutUint64(b, s.pane)
	le.PutUint64(b[8:], s.number)
	le.PutUint64(b[16:], s.offset)
	le.PutUint64(b[24:], s.epochs)
	le.PutUint32(b[slotSize-4:], sumOf(id[:], b[:slotSize-4]))
	return b
}

func decodeSlot(b []byte, id [16]byte) (s slot, ok bool) {
	le := binary.LittleEndian
	if len(b) != slotSize || sumOf(id[:], b[:slotSize-4]) != le.Uint32(b[slotSize-4:]) {
		return s, false
	}
	s = slot{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])}
	return s, s.number > 0
}

// slotPlaces are where the two copies of slot n are.
func slotPlaces(n int) [2]int64 {
	first := int64(n/pageSlots)*2*pageSize + int64(n%pageSlots)*slotSize
	return [2]int64{first, first + pageSize}
}

// mark is what one log has reserved.
type mark struct {
	place int // of its slot

	mu   sync.Mutex // held while the slot is written
	gone bool       // the log was removed
	slot
}

// reserve is the open file.
type reserve struct {
	s    *Store
	file vfs.File // of the file system itself, without patience; nil if there is none

	number atomic.Uint64 // the largest so far

	mu    sync.Mutex
	marks map[uint64]*mark
	free  []int // slots that are there and nobody's
	pages int   // pairs of pages that are there; open's, then the keeper's
}

// open reads the file. A log without a slot that is whole gets a new one.
func (r *reserve) open() error {
	r.marks = make(map[uint64]*mark)
	name := r.s.fs.PathJoin(r.s.dir, reserveFile)
	b, err := readFile(r.s.opts.FS, name, 1<<30)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.s.opts.Logger.Error("store: reserved offsets", "err", err)
	}
	r.pages = len(b) / (2 * pageSize)
	for n := range r.pages * pageSlots {
		for _, at := range slotPlaces(n) {
			if s, ok := decodeSlot(b[at:at+slotSize], r.s.id); ok {
				r.found(n, s)
			}
		}
	}
	if r.s.opts.ReadOnly {
		return nil
	}
	err = r.s.fs.retry(func() (err error) {
		r.file, err = r.s.opts.FS.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
		return err
	})
	if err != nil {
		return err
	}
	if err := syncDir(r.s.fs, r.s.dir); err != nil {
		return err
	}
	r.claim()
	for _, pane := range r.s.keeper.panes() {
		if r.marks[pane] == nil {
			if err := r.create(pane); err != nil {
				return err
			}
		}
	}
	return nil
}

// found takes note of a slot in the file.
func (r *reserve) found(place int, s slot) {
	r.number.Store(max(r.number.Load(), s.number))
	if m := r.marks[s.pane]; m == nil || m.number < s.number {
		r.marks[s.pane] = &mark{place: place, slot: s}
	}
}

// claim finds the slots that no log uses.
func (r *reserve) claim() {
	used := make(map[int]bool)
	for pane, m := range r.marks {
		if !r.s.keeper.has(pane) {
			delete(r.marks, pane)
			continue
		}
		used[m.place] = true
	}
	for n := r.pages*pageSlots - 1; n >= 0; n-- {
		if !used[n] {
			r.free = append(r.free, n)
		}
	}
}

// create gives a log its slot, durably; on a full disk it waits. One at a
// time.
func (r *reserve) create(pane uint64) error {
	place, ok := r.takeFree()
	if !ok {
		if err := r.grow(); err != nil {
			return err
		}
		place, _ = r.takeFree()
	}
	m := &mark{place: place, slot: slot{pane: pane, number: r.number.Add(1)}}
	if err := r.s.fs.retry(func() error { return r.write(m.place, &m.slot) }); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks[pane] = m
	return nil
}

func (r *reserve) takeFree() (place int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.free)
	if n == 0 {
		return 0, false
	}
	place, r.free = r.free[n-1], r.free[:n-1]
	return place, true
}

// grow adds a pair of pages.
func (r *reserve) grow() error {
	err := r.s.fs.retry(func() error {
		_, err := r.file.WriteAt(make([]byte, 2*pageSize), int64(r.pages)*2*pageSize)
		return err
	})
	if err == nil {
		err = r.s.fs.give(r.file.Sync())
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := (r.pages+1)*pageSlots - 1; n >= r.pages*pageSlots; n-- {
		r.free = append(r.free, n)
	}
	r.pages++
	return nil
}

// write overwrites both copies of a slot, one after the other.
func (r *reserve) write(place int, s *slot) error {
	for _, at := range slotPlaces(place) {
		if _, err := r.file.WriteAt(s.encode(r.s.id), at); err != nil {
			return err
		}
		if err := r.file.SyncData(); err != nil {
			return err
		}
	}
	return nil
}

// get is the mark of a log; nil if it has none.
func (r *reserve) get(pane uint64) *mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.marks[pane]
}

// drop frees the slot of a log that is removed.
func (r *reserve) drop(pane uint64) {
	m := r.get(pane)
	if m == nil {
		return
	}
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.marks, pane)
	r.free = append(r.free, m.place)
}

// Reserve notes durably that stream offsets up to offset, and epochs up to
// epochs, may have been seen, whatever becomes durable of the log; neither
// ever falls. It needs no space, so it works on a full disk, and it does not
// need the store: where that has failed, it is tried all the same. It waits
// for two syncs of the disk, and on a disk that hangs as long as that. Errors:
// ErrFailed if the disk refuses it, ErrNoLog, ErrReadOnly, ErrClosed; then what
// was reserved before still is.
func (l *Log) Reserve(offset, epochs uint64) error {
	if l.s.opts.ReadOnly {
		return ErrReadOnly
	}
	m := l.s.reserve.get(l.pane)
	if m == nil {
		return ErrNoLog
	}
	if !l.s.gate.enter() {
		return ErrClosed
	}
	defer l.s.gate.leave()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return ErrNoLog
	}
	next := slot{l.pane, l.s.reserve.number.Add(1), max(offset, m.offset), max(epochs, m.epochs)}
	if next.offset == m.offset && next.epochs == m.epochs {
		return nil
	}
	if err := l.s.reserve.write(m.place, &next); err != nil {
		if isFull(err) {
			return fmt.Errorf("store: pane %d: reserve: %w", l.pane, err)
		}
		return fmt.Errorf("%w: pane %d: reserve: %w", ErrFailed, l.pane, err)
	}
	m.slot = next
	return nil
}

// Reserved is what Reserve has made durable, also before a crash; 0 and 0 if
// nothing.
func (l *Log) Reserved() (offset, epochs uint64) {
	m := l.s.reserve.get(l.pane)
	if m == nil {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offset, m.epochs
}
