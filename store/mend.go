package store

import (
	"bytes"
	"errors"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble cannot live with a damaged table: it hides good records in front of it and
// what lies under it, and no compaction goes through it. So a table that was met
// damaged is written anew, with every block of records that is whole, when the store
// is opened the next time. It keeps its name and its size, by which Pebble knows it,
// and is renamed into its place: a crash leaves the old one or the new one.
//
// What is lost with a block needs no note: readers find it missing at its place, and
// from where to where each log reached is in the journal (reach). Where one began whose
// beginning is lost, there is a record again, of no bytes.

// tableTemp is a table that is being written, in the directory of the database.
const tableTemp = "table.tmp"

// mend writes the named tables anew but for those in tried, to which it adds whether a
// table is mended, or gone; the database is closed. One that cannot be mended stays as it
// is, and known as damaged.
func (s *Store) mend(names []string, tried map[string]bool) {
	for _, name := range names {
		if _, ok := tried[name]; ok {
			continue
		}
		lost, err := s.mendTable(name)
		switch {
		case err == nil:
			s.opts.Logger.Error("store: table mended", "table", name, "blocks lost", lost)
		case errors.Is(err, fs.ErrNotExist): // Pebble has no use for it any more
		default:
			tried[name] = false
			s.damage.hit(name)
			s.opts.Logger.Error("store: a damaged table stays as it is", "table", name, "err", firstLine(err))
			continue
		}
		tried[name] = true
		s.damage.forget(name)
	}
}

// mendTable writes one table anew, unless nothing of it is damaged. lost is how many
// blocks it lacks then.
func (s *Store) mendTable(name string) (lost int, err error) {
	file := s.fs.PathJoin(s.dir, dbDir, name)
	b, err := readFile(s.opts.FS, file, 1<<40)
	if err != nil {
		return 0, err
	}
	t, err := s.readTable(name, b)
	if err != nil || t.whole {
		return 0, err
	}
	out, err := s.writeTable(t.rows, len(b))
	if err != nil {
		return 0, err
	}
	return t.lost, s.replaceTable(file, out)
}

// replaceTable puts a table in the place of a file, durably.
func (s *Store) replaceTable(file string, table []byte) error {
	fsys := s.opts.FS // which does not wait for space
	dir := fsys.PathDir(file)
	temp := fsys.PathJoin(dir, tableTemp)
	f, err := fsys.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Clone(table)) // a file may use it as its own
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(temp, file)
	}
	if err != nil {
		_ = fsys.Remove(temp)
		return err
	}
	return syncDir(fsys, dir)
}

// lookAtEnds looks at both ends of each log, so that a damaged table there is met now,
// when it can be mended. From where to where logs reach is for the journal, which is to
// be written anew.
func (s *Store) lookAtEnds() error {
	return s.eachLog(func(it *pebble.Iterator, pane uint64) {
		lo, hi := paneBounds(pane)
		first, ok := keyAt(it, it.SeekGE(lo), pane)
		last, more := keyAt(it, it.SeekLT(hi), pane)
		noted, known := s.keeper.state.reached[pane]
		if !ok || !more {
			return // it is empty, or damaged
		}
		if !known {
			noted.oldest = first.span
		}
		if end := endAt(it, last); noted.end.Before(end) {
			noted.end = end
			s.keeper.state.reached[pane] = noted
		}
	})
}

// markBeginnings puts a record where each log began that begins later now that tables
// are mended: a full checkpoint of no bytes, which is a damaged one.
func (s *Store) markBeginnings() error {
	b := s.db.NewBatch()
	defer b.Close()
	err := s.eachLog(func(it *pebble.Iterator, pane uint64) {
		lo, _ := paneBounds(pane)
		found := it.SeekGE(lo)
		first, ok := keyAt(it, found, pane)
		noted := s.keeper.state.reached[pane]
		if !found && it.Error() != nil || noted.end == (Pos{}) || ok && !noted.oldest.Before(first.span) {
			return
		}
		must(b.Set(dataKey{pane, noted.oldest, classFull, noted.oldest}.encode(), nil, nil))
		s.opts.Logger.Error("store: the beginning of a log is lost", "pane", pane, "offset", noted.oldest.Offset)
	})
	if err != nil || b.Empty() {
		return err
	}
	return b.Commit(pebble.Sync)
}

// eachLog calls look for each log there is, with an iterator over the content of all.
func (s *Store) eachLog(look func(it *pebble.Iterator, pane uint64)) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceData}, UpperBound: []byte{spaceData + 1}})
	if err != nil {
		return err
	}
	for _, pane := range s.keeper.panes() {
		look(it, pane)
	}
	if err := it.Close(); err != nil && !pebble.IsCorruptionError(err) {
		s.opts.Logger.Warn("store: the ends of logs", "err", firstLine(err))
	}
	return nil
}

// keyAt is the key under the iterator, if that stands on one of pane.
func keyAt(it *pebble.Iterator, found bool, pane uint64) (k dataKey, ok bool) {
	if !found {
		return k, false
	}
	k, err := decodeDataKey(it.Key())
	return k, err == nil && k.pane == pane
}

// endAt is the end of the record k under the iterator, as far as its header can be read.
func endAt(it *pebble.Iterator, k dataKey) (end Pos) {
	v, err := it.ValueAndErr()
	if err != nil || k.class != classData {
		return k.at
	}
	if h, err := decodeHeader(v); err == nil && h.first == k.at {
		return h.end()
	}
	return k.at
}
