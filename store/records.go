package store

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/cockroachdb/pebble/v2"
)

// Get returns a copy of the record under key, or ErrNoRecord.
func (s *Store) Get(key string) ([]byte, error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	v, closer, err := s.db.Get(recordKey(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrNoRecord
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, v...), closer.Close()
}

// Put stores a record of the daemon's under key; it is durable on return.
func (s *Store) Put(key string, value []byte) error {
	return s.committer.do(func(b *pebble.Batch) error { return b.Set(recordKey(key), value, nil) })
}

// Delete removes the record under key, durably; that there is none is no
// error.
func (s *Store) Delete(key string) error {
	return s.committer.do(func(b *pebble.Batch) error { return b.Delete(recordKey(key), nil) })
}

// Record is one that Scan found.
type Record struct {
	Key   string
	Value []byte
}

// Scan yields the records whose key begins with prefix, in order of their
// keys, as they were when it began. An error is yielded last.
func (s *Store) Scan(prefix string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		records, err := s.scan(prefix)
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(Record{}, err)
		}
	}
}

func (s *Store) scan(prefix string) (out []Record, err error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	lo := recordKey(prefix)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: []byte{spaceRecord + 1}})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok && bytes.HasPrefix(it.Key(), lo); ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return out, errors.Join(err, it.Close())
		}
		out = append(out, Record{string(it.Key()[1:]), append([]byte{}, v...)})
	}
	return out, it.Close()
}

// Panes lists the panes that have a log, in order.
func (s *Store) Panes() (panes []uint64, err error) {
	if !s.gate.enter() {
		return nil, ErrClosed
	}
	defer s.gate.leave()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceLog}, UpperBound: []byte{spaceLog + 1}})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if pane, ok := paneOf(it.Key()); ok {
			panes = append(panes, pane)
		}
	}
	return panes, it.Close()
}

// Create makes the log of a pane; that is durable on return. The log is empty
// and wants a full checkpoint. Errors: ErrExists.
func (s *Store) Create(pane uint64) (*Log, error) {
	if err := s.claim(pane); err != nil {
		return nil, err
	}
	err := s.hasLog(pane)
	switch {
	case err == nil:
		err = ErrExists
	case errors.Is(err, ErrNoLog):
		err = s.committer.do(func(b *pebble.Batch) error { return b.Set(logKey(pane), encodeLogRecord(pane), nil) })
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
	s.mu.Lock()
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

// Log opens the log of a pane; a second call returns the same Log. It reads
// the ends of the log only. Errors: ErrNoLog, *DamagedError.
func (s *Store) Log(pane uint64) (*Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if l, ok := s.logs[pane]; l != nil {
		return l, nil
	} else if ok {
		return nil, ErrNoLog // being made, or being removed
	}
	if err := s.hasLog(pane); err != nil {
		return nil, err
	}
	l := s.newLog(pane)
	if err := s.view(pane, l.recover); err != nil {
		return nil, err
	}
	s.logs[pane] = l
	return l, nil
}

// Remove deletes the log of a pane. Nothing may be appended to it any more;
// what is still in memory is dropped, readers get ErrEvicted. Errors:
// ErrNoLog.
func (s *Store) Remove(pane uint64) error {
	s.mu.Lock()
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

	if err := s.hasLog(pane); err != nil {
		return err
	}
	if l != nil {
		l.remove()
	}
	err := s.committer.do(func(b *pebble.Batch) error { return b.Delete(logKey(pane), nil) })
	if err != nil {
		return err
	}
	return s.guard(func() error { return s.excisePane(pane) })
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

// hasLog returns nil, ErrNoLog or *DamagedError.
func (s *Store) hasLog(pane uint64) error {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	v, closer, err := s.db.Get(logKey(pane))
	if errors.Is(err, pebble.ErrNotFound) {
		return ErrNoLog
	}
	if err == nil {
		err = errors.Join(decodeLogRecord(v, pane), closer.Close())
	}
	if err != nil {
		return &DamagedError{pane, 0, err}
	}
	return nil
}

// sweep finishes what Remove began before a crash: content of panes that have
// no log. It costs one seek a pane.
func (s *Store) sweep() error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceData}, UpperBound: []byte{spaceData + 1}})
	if err != nil {
		return err
	}
	var orphans []uint64
	for ok := it.First(); ok; {
		pane, isPane := paneOf(it.Key())
		if !isPane {
			break
		}
		if errors.Is(s.hasLog(pane), ErrNoLog) {
			orphans = append(orphans, pane)
		}
		_, hi := paneBounds(pane)
		ok = it.SeekGE(hi)
	}
	if err := it.Close(); err != nil {
		s.opts.Logger.Warn("store: sweep cut off", "err", err)
	}
	for _, pane := range orphans {
		if err := s.excisePane(pane); err != nil {
			return err
		}
	}
	return nil
}
