package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// Get returns a copy of the record under key. Errors: ErrNoRecord,
// *DamagedError.
func (s *Store) Get(key string) ([]byte, error) {
	if s.isClosed() {
		return nil, ErrClosed
	}
	k := s.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, ok := k.state.values[key]; ok {
		return append([]byte{}, v...), nil
	}
	if k.state.damaged[key] {
		return nil, damagedRecord(key)
	}
	return nil, ErrNoRecord
}

func damagedRecord(key string) error {
	return &DamagedError{Pane: WholeStore, Err: fmt.Errorf("record %q: %w", key, errChecksum)}
}

// Put stores a record of the daemon's under key; it is durable on return.
// Errors: ErrRecordSize.
func (s *Store) Put(key string, value []byte) error {
	if len(key) > math.MaxUint16 || len(value) > MaxRecord {
		return fmt.Errorf("%w: %d bytes, of at most %d", ErrRecordSize, len(value), MaxRecord)
	}
	return s.keeper.do(entry{typ: entryPut, key: key, value: append([]byte{}, value...)}, nil)
}

// Delete removes the record under key, durably; that there is none is no
// error.
func (s *Store) Delete(key string) error {
	return s.keeper.do(entry{typ: entryDelete, key: key}, nil)
}

// Record is one that Scan found.
type Record struct {
	Key   string
	Value []byte
}

// Scan yields the records whose key begins with prefix, in order of their
// keys, as they were when it began. In the place of a damaged one it yields
// the key and a *DamagedError, and goes on; at the end, a *DamagedError without
// a key for each record whose key was damaged too, whatever the prefix. Any
// other error is yielded last.
func (s *Store) Scan(prefix string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if s.isClosed() {
			yield(Record{}, ErrClosed)
			return
		}
		records, unknown := s.keeper.scan(prefix)
		for _, r := range records {
			var err error
			if r.Value == nil {
				err = damagedRecord(r.Key)
			}
			if !yield(r, err) {
				return
			}
		}
		for range unknown {
			if !yield(Record{}, &DamagedError{Pane: WholeStore, Err: fmt.Errorf("a record: %w", errMissing)}) {
				return
			}
		}
	}
}

// scan returns the records under prefix, those that are damaged with a nil
// value, and how many are damaged whose key cannot be told.
func (k *keeper) scan(prefix string) (out []Record, unknown int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, v := range k.state.values {
		if strings.HasPrefix(key, prefix) {
			out = append(out, Record{key, append([]byte{}, v...)})
		}
	}
	for key := range k.state.damaged {
		if strings.HasPrefix(key, prefix) {
			out = append(out, Record{Key: key})
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	return out, k.state.unknown
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Panes lists the panes that have a log, in order.
func (s *Store) Panes() ([]uint64, error) {
	if s.isClosed() {
		return nil, ErrClosed
	}
	return s.keeper.panes(), nil
}

// Create makes the log of a pane; that is durable on return. The log is empty
// and wants a full checkpoint. Errors: ErrExists.
func (s *Store) Create(pane uint64) (*Log, error) {
	if err := s.claim(pane); err != nil {
		return nil, err
	}
	err := ErrExists
	if !s.keeper.has(pane) {
		err = s.keeper.do(entry{typ: entryLog, key: paneKey(pane)}, func() error { return s.reserve.create(pane) })
	}
	l := s.newLog(pane)
	l.needFull = true
	s.release(pane, l, err == nil)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// claim keeps a pane that has no open log for the caller alone, until
// release. While the disk is slow, other panes do not wait for it.
func (s *Store) claim(pane uint64) error {
	s.lockOpened(pane)
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if l, ok := s.logs[pane]; ok && l != nil {
		return ErrExists
	} else if ok {
		return errBusy
	}
	s.logs[pane] = nil
	return nil
}

// release ends a claim; keep says that l is now the pane's log.
func (s *Store) release(pane uint64, l *Log, keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if keep {
		s.logs[pane] = l
	} else {
		delete(s.logs, pane)
	}
}

// opening is a log that Log reads without s.mu: a disk that is slow for one log is
// not to hold up the others. Who else wants the log waits for done.
type opening struct {
	done chan struct{} // closed when log and err are set
	log  *Log
	err  error
}

// lockOpened locks s.mu at a moment when nobody is opening the log of pane.
func (s *Store) lockOpened(pane uint64) {
	s.mu.Lock()
	for o := s.opening[pane]; o != nil; o = s.opening[pane] {
		s.mu.Unlock()
		<-o.done
		s.mu.Lock()
	}
}

// Log opens the log of a pane; a second call returns the same Log, or the same error
// if the first is not back yet. It reads the ends of the log only. Errors: ErrNoLog,
// *DamagedError, and what the file system says if it refuses to read: then the log is
// as it was.
func (s *Store) Log(pane uint64) (*Log, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if o := s.opening[pane]; o != nil {
		s.mu.Unlock()
		<-o.done
		return o.log, o.err
	}
	l, ok := s.logs[pane]
	if l == nil && (ok || !s.keeper.has(pane)) {
		s.mu.Unlock()
		return nil, ErrNoLog // or it is being made, or being removed
	}
	if l != nil {
		s.mu.Unlock()
		return l, nil
	}
	o := &opening{done: make(chan struct{})}
	s.opening[pane] = o
	s.mu.Unlock()

	o.log, o.err = s.openLog(pane)
	s.mu.Lock()
	delete(s.opening, pane)
	if o.err == nil {
		s.logs[pane] = o.log
	}
	s.mu.Unlock()
	close(o.done)
	signal(s.keeper.due)
	return o.log, o.err
}

// openLog reads the ends of a log.
func (s *Store) openLog(pane uint64) (*Log, error) {
	l := s.newLog(pane)
	refused := s.fs.refused.n.Load()
	err := s.view(pane, l.recover)
	if cause := s.fs.refused.since(refused); cause != nil {
		err = fmt.Errorf("store: pane %d cannot be read: %w", pane, cause)
	}
	if err != nil {
		return nil, err
	}
	l.synced.end = l.durable // Open flushed what it found
	return l, nil
}

// Remove deletes the log of a pane. Nothing may be appended to it any more;
// what is still in memory is dropped, readers get ErrEvicted. Errors:
// ErrNoLog.
func (s *Store) Remove(pane uint64) error {
	s.lockOpened(pane)
	l, ok := s.logs[pane]
	if s.closed || ok && l == nil {
		s.mu.Unlock()
		if s.closed {
			return ErrClosed
		}
		return errBusy
	}
	s.logs[pane] = nil // claimed
	s.mu.Unlock()
	defer s.release(pane, nil, false)

	if !s.keeper.has(pane) {
		return ErrNoLog
	}
	last := uint64(0)
	if l != nil {
		last = l.remove()
	}
	if err := s.keeper.do(entry{typ: entryRemove, key: paneKey(pane)}, nil); err != nil {
		return err
	}
	if l != nil { // what is on its way would come behind the excise, and stay
		if err := l.commit(context.Background(), last); err != nil {
			return err
		}
	}
	if err := s.guard(func() error { return s.excisePane(pane) }); err != nil {
		return err
	}
	s.keeper.excised(pane)
	s.reserve.drop(pane)
	return nil
}

// excisePane takes away all content of a pane's log.
func (s *Store) excisePane(pane uint64) error {
	lo, hi := paneBounds(pane)
	return s.excise(lo, hi)
}

// excise takes away all keys in [lo, hi), durably.
func (s *Store) excise(lo, hi []byte) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	return s.db.Excise(context.Background(), pebble.KeyRange{Start: lo, End: hi})
}

// sweep finishes what Remove began before a crash. If the journal has lost
// entries, it also finds the logs that these may have been about: content says
// that there is a log, unless an entry says that it was removed. That costs one
// seek a pane.
func (s *Store) sweep() error {
	for _, pane := range sortedKeys(s.keeper.state.removed) {
		if err := s.excisePane(pane); pebble.IsCorruptionError(err) {
			s.opts.Logger.Warn("store: content of a removed log stays", "pane", pane, "err", firstLine(err))
			continue
		} else if err != nil {
			return err
		}
		s.keeper.excised(pane)
	}
	if s.keeper.state.unknown == 0 {
		return nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceData}, UpperBound: []byte{spaceData + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; {
		pane, isPane := paneOf(it.Key())
		if !isPane {
			break
		}
		s.keeper.state.logs[pane] = true
		_, hi := paneBounds(pane)
		ok = it.SeekGE(hi)
	}
	if err := it.Close(); err != nil {
		s.opts.Logger.Warn("store: sweep cut off", "err", firstLine(err))
	}
	return nil
}
