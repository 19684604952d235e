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
// how far each log reached is in the journal (entryReached).

// tableTemp is a table that is being written, in the directory of the database.
const tableTemp = "table.tmp"

// mend writes the named tables anew but for those in tried, to which it adds; the
// database is closed. One that cannot be mended stays as it is, and known as damaged.
func (s *Store) mend(names []string, tried map[string]bool) {
	for _, name := range names {
		if tried[name] {
			continue
		}
		tried[name] = true
		lost, err := s.mendTable(name)
		switch {
		case err == nil:
			s.opts.Logger.Error("store: table mended", "table", name, "blocks lost", lost)
		case errors.Is(err, fs.ErrNotExist): // Pebble has no use for it any more
		default:
			s.damage.hit(name)
			s.opts.Logger.Error("store: a damaged table stays as it is", "table", name, "err", firstLine(err))
			continue
		}
		s.damage.forget(name)
		delete(s.keeper.state.tables, name)
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
// when it can be mended. How far logs reach is for the journal, which is to be written
// anew.
func (s *Store) lookAtEnds() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceData}, UpperBound: []byte{spaceData + 1}})
	if err != nil {
		return err
	}
	for _, pane := range s.keeper.panes() {
		lo, hi := paneBounds(pane)
		it.SeekGE(lo)
		if !it.SeekLT(hi) {
			continue
		}
		if end := endAt(it, pane); s.keeper.state.reached[pane].Before(end) {
			s.keeper.state.reached[pane] = end
		}
	}
	if err := it.Close(); err != nil && !pebble.IsCorruptionError(err) {
		s.opts.Logger.Warn("store: the ends of logs", "err", firstLine(err))
	}
	return nil
}

// endAt is the end of the record of pane under the iterator, as far as its header can be
// read; zero if that is of another pane.
func endAt(it *pebble.Iterator, pane uint64) (end Pos) {
	k, err := decodeDataKey(it.Key())
	if err != nil || k.pane != pane {
		return end
	}
	v, err := it.ValueAndErr()
	if err != nil || k.class != classData {
		return k.at
	}
	if h, err := decodeHeader(v); err == nil && h.first == k.at {
		return h.end()
	}
	return k.at
}
