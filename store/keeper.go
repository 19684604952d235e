package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// journalSlack is how much a journal may grow beyond four times what it comes
// to before it is written anew.
const journalSlack = 64 << 10

// maxJournal bounds what is read of one file.
const maxJournal = 1 << 30

// keeper owns the journal: one goroutine writes it, what waits at once as one
// batch.
type keeper struct {
	s    *Store
	reqs chan *change
	due  chan struct{} // there may be something to note; one slot
	stop chan struct{} // closed by Close once nothing is appended any more
	done chan struct{} // closed when run has returned

	mu    sync.Mutex
	state *records

	// The rest is run's alone.
	files [2]vfs.File
	size  int // of a file
	fresh int // of a file, when it was written anew
}

// change is an entry to be made durable. before, if there is one, is done
// first. done receives the outcome.
type change struct {
	entry
	before func() error
	done   chan error
}

func newKeeper(s *Store) *keeper {
	return &keeper{
		s: s, state: newRecords(),
		reqs: make(chan *change), due: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// load reads the journal. fresh says that there need be none yet.
func (k *keeper) load(fresh bool) error {
	var entries [2][]entry
	var errs [2]error
	for i, name := range journalFiles {
		var b []byte
		b, errs[i] = readFile(k.s.fs, k.s.fs.PathJoin(k.s.dir, name), maxJournal)
		if errs[i] != nil && !fresh {
			k.s.opts.Logger.Error("store: records", "file", name, "err", errs[i])
		}
		entries[i] = readEntries(b, k.s.id)
	}
	if !fresh && len(entries[0]) == 0 && len(entries[1]) == 0 {
		err := cmp.Or(errors.Join(errs[:]...), errMissing)
		return &DamagedError{Pane: WholeStore, Err: fmt.Errorf("records: %w", err)}
	}
	k.state = replayEntries(mergeEntries(entries[0], entries[1]))
	if n := len(k.state.damaged) + k.state.unknown; n > 0 {
		k.s.opts.Logger.Error("store: records damaged", "count", n)
	}
	return nil
}

// rewrite writes both files anew, one after the other, so that one of them is
// always whole.
func (k *keeper) rewrite() error {
	first := k.state.next
	k.mu.Lock()
	batch := k.state.snapshot()
	k.mu.Unlock()
	b := k.number(nil, batch)
	b = k.number(b, []entry{{typ: entryEnd}})
	for i, name := range journalFiles {
		f, err := k.replace(name, b)
		if err != nil {
			k.state.next = first
			return err
		}
		if k.files[i] != nil {
			_ = k.files[i].Close() // it is synced, and gone
		}
		k.files[i] = f
	}
	k.size, k.fresh = len(b), len(b)
	return nil
}

// number appends entries to dst as the next batch.
func (k *keeper) number(dst []byte, entries []entry) []byte {
	batch := k.state.next
	for i := range entries {
		entries[i].number, entries[i].batch = k.state.next, batch
		k.state.next++
		dst = entries[i].append(dst, k.s.id)
	}
	return dst
}

// replace puts a file with content b in the place of name, durably, and leaves
// it open.
func (k *keeper) replace(name string, b []byte) (vfs.File, error) {
	fsys := k.s.fs
	temp := fsys.PathJoin(k.s.dir, journalTemp)
	f, err := fsys.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(bytes.Clone(b)); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fsys.Rename(temp, fsys.PathJoin(k.s.dir, name))
	}
	if err == nil {
		err = syncDir(fsys, k.s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// do returns when e is durable.
func (k *keeper) do(e entry, before func() error) error {
	if k.s.opts.ReadOnly {
		return ErrReadOnly
	}
	c := &change{entry: e, before: before, done: make(chan error, 1)}
	select {
	case k.reqs <- c:
	case <-k.s.failed:
		return k.s.Err()
	case <-k.done:
		if err := k.s.Err(); err != nil {
			return err
		}
		return ErrClosed
	}
	select {
	case err := <-c.done:
		return err
	case <-k.s.failed:
		return k.s.Err()
	}
}

// run is the keeper's goroutine. It ends when stop is closed or the store
// fails; Close waits for done, or for the failure, since on a failed disk it
// may be parked.
func (k *keeper) run() {
	defer close(k.done)
	for {
		var changes []*change
		select {
		case c := <-k.reqs:
			changes = k.drain([]*change{c})
		case <-k.due:
			k.note()
			continue
		case <-k.s.failed:
			return
		case <-k.stop:
			k.note()
			return
		}
		k.write(changes)
	}
}

// drain adds to changes those that wait, up to a number.
func (k *keeper) drain(changes []*change) []*change {
	for len(changes) < 256 {
		select {
		case c := <-k.reqs:
			changes = append(changes, c)
		default:
			return changes
		}
	}
	return changes
}

// write makes changes durable and tells everybody.
func (k *keeper) write(changes []*change) {
	entries := make([]entry, 0, len(changes))
	kept := changes[:0]
	for _, c := range changes {
		if c.before != nil {
			if err := c.before(); err != nil {
				c.done <- err
				continue
			}
		}
		kept, entries = append(kept, c), append(entries, c.entry)
	}
	if !k.append(entries) {
		return
	}
	for _, c := range kept {
		c.done <- nil
	}
	k.shrink()
}

// append makes entries durable. It reports false if the store fails.
func (k *keeper) append(entries []entry) bool {
	b := k.number(nil, entries)
	for _, f := range k.files {
		_, err := f.Write(bytes.Clone(b)) // a file may use b as its own
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			k.s.fail(err)
			return false
		}
	}
	k.size += len(b)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range entries {
		k.state.apply(&entries[i])
	}
	return true
}

// shrink writes the journal anew if that is worth it.
func (k *keeper) shrink() {
	if k.size > 4*k.fresh+journalSlack {
		if err := k.rewrite(); err != nil {
			k.s.fail(err)
		}
	}
}

// note makes it durable from where to where the open logs reach and which tables are damaged, as
// far as it is not. On a full disk that is put off.
func (k *keeper) note() {
	if k.s.Err() != nil || k.s.fs.fullSince.Load() != 0 {
		return
	}
	var entries []entry
	for _, l := range k.s.openLogs() {
		was, _ := k.reached(l.pane)
		now := reach{oldest: l.beginning(), end: l.syncedEnd()}
		if was.oldest.Before(now.oldest) || was.end.Before(now.end) {
			entries = append(entries, now.entry(l.pane))
		}
	}
	for _, name := range k.s.damage.tables() {
		if !k.state.tables[name] { // which only this goroutine changes
			entries = append(entries, entry{typ: entryTable, key: name})
		}
	}
	if len(entries) > 0 && k.append(entries) {
		k.shrink()
	}
}

// close closes the files; run has returned.
func (k *keeper) close() (err error) {
	for _, f := range k.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// has reports whether there is a log of pane.
func (k *keeper) has(pane uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state.logs[pane]
}

// panes are those that have a log, in order.
func (k *keeper) panes() []uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return sortedKeys(k.state.logs)
}

// lag is how much of a log a power cut may have taken beyond what was in flight.
func (k *keeper) lag() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state.lag
}

// reached is what is noted of the ends of a log, if anything is.
func (k *keeper) reached(pane uint64) (r reach, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok = k.state.reached[pane]
	return r, ok
}

// excised says that nothing is left of a removed log.
func (k *keeper) excised(pane uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.state.removed, pane)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
