package store

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// The journal holds the daemon's records and says which logs there are. It is
// apart from the database so that damage there cannot reach it, and there are
// two files of it, journalA and journalB, with the same entries: each entry is
// written to and synced in both, and read from the one in which it is whole.
//
// An entry, all integers little-endian; it begins at a multiple of 8 bytes:
//
//	 0  u8   type       below
//	 1  u8   version    journalVersion, 1
//	 2  u16  key        bytes of the key
//	 4  u32  value      bytes of the value, at most MaxRecord
//	 8  u64  number     of the entry; the next one has one more
//	16  u64  batch      number of the first entry that was synced with this one
//	24  u32  head sum   CRC-32C of the store's id, bytes 0-23 and the key
//	28  u32  value sum  CRC-32C of the store's id, bytes 0-27 and the value
//	32  -    key, value, then zeros up to a multiple of 8
//
// Types: 'S' a file begins: what came before counts no more; 'P' put; 'D'
// delete; 'L' the log of a pane is made, 'X' it is removed (the key is pane:8,
// big-endian); 'B' the record under the key was damaged; 'U' so was an entry of
// which the key cannot be told; 'W' a power cut may have taken so many bytes of
// a log that had left the process (the value is u64); 'R' the log of the pane in the
// key reached from one position to another at least (the value is two of u64 offset,
// u64 seq); 'T' the table in the key is damaged and is to be mended; 'E' the state that
// 'S' began is complete.
//
// A reader that meets something else goes on at the next multiple of 8 bytes
// from which an entry can be read. An entry that is missing, or whose value
// does not match, is damaged if one of a later batch is there; else it is the
// end of a write that a crash cut off, and was never acknowledged.
const (
	journalPrefix  = "records."
	journalA       = journalPrefix + "a"
	journalB       = journalPrefix + "b"
	journalTemp    = journalPrefix + "tmp"
	journalVersion = 1

	entryStart   = 'S'
	entryPut     = 'P'
	entryDelete  = 'D'
	entryLog     = 'L'
	entryRemove  = 'X'
	entryDamaged = 'B'
	entryUnknown = 'U'
	entryLag     = 'W'
	entryReached = 'R'
	entryTable   = 'T'
	entryEnd     = 'E'

	entryHeader = 32
	// MaxRecord is the longest value of a record, in bytes; of its key, it is
	// 65535.
	MaxRecord = 16 << 20
)

var journalFiles = [2]string{journalA, journalB}

type entry struct {
	typ           byte
	number, batch uint64
	key           string
	value         []byte
	bad           bool // the value is not what was written
}

func pad8(n int) int { return (n + 7) &^ 7 }

func (e *entry) append(dst []byte, id [16]byte) []byte {
	le, start := binary.LittleEndian, len(dst)
	dst = append(dst, e.typ, journalVersion)
	dst = le.AppendUint16(dst, uint16(len(e.key)))
	dst = le.AppendUint32(dst, uint32(len(e.value)))
	dst = le.AppendUint64(dst, e.number)
	dst = le.AppendUint64(dst, e.batch)
	dst = le.AppendUint32(dst, sumOf(id[:], dst[start:], []byte(e.key)))
	dst = le.AppendUint32(dst, sumOf(id[:], dst[start:], e.value))
	dst = append(append(dst, e.key...), e.value...)
	return append(dst, make([]byte, start+pad8(len(dst)-start)-len(dst))...)
}

func sumOf(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// decodeEntry reads the entry at the beginning of b and says how long it is, 0
// if there is none.
func decodeEntry(b []byte, id [16]byte) (e entry, size int) {
	le := binary.LittleEndian
	if len(b) < entryHeader || b[1] != journalVersion || bytes.IndexByte([]byte("SPDLXBUWRTE"), b[0]) < 0 {
		return e, 0
	}
	key, value := int(le.Uint16(b[2:])), int(le.Uint32(b[4:]))
	if key > len(b)-entryHeader || sumOf(id[:], b[:24], b[entryHeader:entryHeader+key]) != le.Uint32(b[24:]) {
		return e, 0
	}
	e = entry{typ: b[0], number: le.Uint64(b[8:]), batch: le.Uint64(b[16:]), key: string(b[entryHeader : entryHeader+key])}
	rest := b[entryHeader+key:]
	if value > MaxRecord || value > len(rest) {
		e.bad = true // cut off
		return e, min(pad8(entryHeader+key), len(b))
	}
	e.value = rest[:value]
	if e.bad = sumOf(id[:], b[:28], e.value) != le.Uint32(b[28:]); e.bad {
		// Perhaps the value, too, is where it should be; perhaps not.
		return e, min(pad8(entryHeader+key), len(b))
	}
	return e, min(pad8(entryHeader+key+value), len(b))
}

// readEntries finds all entries in a journal file.
func readEntries(b []byte, id [16]byte) (entries []entry) {
	for len(b) >= entryHeader {
		e, size := decodeEntry(b, id)
		if size == 0 {
			b = b[8:]
			continue
		}
		entries = append(entries, e)
		b = b[size:]
	}
	return entries
}

// mergeEntries makes one list of what both files have, in order, each entry
// from where it is whole.
func mergeEntries(a, b []entry) []entry {
	all := append(append([]entry(nil), a...), b...)
	slices.SortStableFunc(all, func(x, y entry) int {
		switch {
		case x.number != y.number && x.number < y.number:
			return -1
		case x.number != y.number:
			return 1
		case x.bad == y.bad:
			return 0
		case x.bad:
			return 1
		}
		return -1
	})
	return slices.CompactFunc(all, func(x, y entry) bool { return x.number == y.number })
}

// records is what the journal comes to.
type records struct {
	values  map[string][]byte
	damaged map[string]bool // keys of which the last entry is damaged
	unknown int             // damaged entries whose key cannot be told
	logs    map[uint64]bool
	removed map[uint64]bool // logs whose content may still be there
	reached map[uint64]reach
	tables  map[string]bool // see entryTable
	lag     uint64          // see entryLag
	next    uint64          // number of the next entry
}

func newRecords() *records {
	return &records{
		values: make(map[string][]byte), damaged: make(map[string]bool),
		logs: make(map[uint64]bool), removed: make(map[uint64]bool),
		reached: make(map[uint64]reach), tables: make(map[string]bool),
	}
}

// replayEntries is the state after entries, which are in order.
func replayEntries(entries []entry) *records {
	r := newRecords()
	if len(entries) == 0 {
		return r
	}
	last := entries[len(entries)-1]
	for i, e := range entries {
		switch {
		case i > 0 && e.number > r.next:
			// Those that a crash cut off are of the last batch.
			r.unknown += int(min(e.number, max(last.batch, r.next)) - r.next)
		case i == 0 && e.typ != entryStart:
			r.unknown++
		}
		r.next = e.number + 1
		if e.bad && e.batch == last.batch {
			continue // cut off
		}
		r.apply(&e)
	}
	return r
}

// apply is the effect of one entry.
func (r *records) apply(e *entry) {
	switch e.typ {
	case entryStart:
		next := r.next
		*r = *newRecords()
		r.next = next
	case entryPut, entryDamaged:
		delete(r.damaged, e.key)
		delete(r.values, e.key)
		if e.typ == entryDamaged || e.bad {
			r.damaged[e.key] = true
		} else {
			r.values[e.key] = append([]byte{}, e.value...)
		}
	case entryDelete:
		delete(r.damaged, e.key)
		delete(r.values, e.key)
	case entryUnknown:
		r.unknown++
	case entryLag:
		if r.lag = lagBytes; !e.bad && len(e.value) == 8 {
			r.lag = binary.LittleEndian.Uint64(e.value)
		}
	case entryReached:
		r.applyReached(e)
	case entryTable:
		r.tables[e.key] = true
	case entryLog, entryRemove:
		if len(e.key) != 8 {
			r.unknown++
			return
		}
		pane := binary.BigEndian.Uint64([]byte(e.key))
		delete(r.removed, pane)
		delete(r.logs, pane)
		delete(r.reached, pane)
		if e.typ == entryLog {
			r.logs[pane] = true
		} else {
			r.removed[pane] = true
		}
	}
}

// applyReached notes how far a log reached. An entry of which the value is lost says
// less than was known.
func (r *records) applyReached(e *entry) {
	if e.bad || len(e.key) != 8 || len(e.value) != 32 {
		return
	}
	le, v := binary.LittleEndian, e.value
	r.reached[binary.BigEndian.Uint64([]byte(e.key))] = reach{
		oldest: Pos{le.Uint64(v), le.Uint64(v[8:])},
		end:    Pos{le.Uint64(v[16:]), le.Uint64(v[24:])},
	}
}

// reach is what is known of the ends of a log without looking at it: it was not evicted
// beyond oldest, as far as is known, and end is not behind its end.
type reach struct{ oldest, end Pos }

func (r reach) entry(pane uint64) entry {
	le := binary.LittleEndian
	v := le.AppendUint64(le.AppendUint64(nil, r.oldest.Offset), r.oldest.Seq)
	v = le.AppendUint64(le.AppendUint64(v, r.end.Offset), r.end.Seq)
	return entry{typ: entryReached, key: paneKey(pane), value: v}
}

// snapshot are the entries, numbers left open, that come to r.
func (r *records) snapshot() []entry {
	out := []entry{{typ: entryStart}}
	for _, pane := range sortedKeys(r.logs) {
		out = append(out, entry{typ: entryLog, key: paneKey(pane)})
	}
	for _, pane := range sortedKeys(r.removed) {
		out = append(out, entry{typ: entryRemove, key: paneKey(pane)})
	}
	for _, key := range sortedKeys(r.values) {
		out = append(out, entry{typ: entryPut, key: key, value: r.values[key]})
	}
	for _, key := range sortedKeys(r.damaged) {
		out = append(out, entry{typ: entryDamaged, key: key})
	}
	for range r.unknown {
		out = append(out, entry{typ: entryUnknown})
	}
	for _, pane := range sortedKeys(r.reached) {
		out = append(out, r.reached[pane].entry(pane))
	}
	for _, name := range sortedKeys(r.tables) {
		out = append(out, entry{typ: entryTable, key: name})
	}
	if r.lag > 0 {
		out = append(out, entry{typ: entryLag, value: binary.LittleEndian.AppendUint64(nil, r.lag)})
	}
	return out
}

func paneKey(pane uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, pane))
}
