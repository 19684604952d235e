package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

const (
	cacheBytes = 8 << 20
	blockBytes = 32 << 10
	// stopWrites is as many tables in level 0 as there never are: where a damaged one
	// cannot be compacted they pile up, which makes reading slower and must not make
	// writing stop.
	stopWrites = 1 << 20
)

// pebbleOptions are the database's: values are compressed already, most of
// them larger than a block.
func (s *Store) pebbleOptions(mustExist bool) *pebble.Options {
	o := &pebble.Options{
		FS:                         s.fs,
		Lock:                       s.lock,
		Logger:                     pebbleLogger{s},
		ReadOnly:                   s.opts.ReadOnly,
		ErrorIfNotExists:           mustExist,
		FormatMajorVersion:         pebble.FormatNewest,
		MemTableSize:               uint64(s.opts.MemTable),
		CacheSize:                  cacheBytes,
		WALBytesPerSync:            0,
		DisableTableStats:          true,
		L0StopWritesThreshold:      stopWrites,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
		EventListener: &pebble.EventListener{
			// What left the WAL for a table is found by that alone.
			FlushEnd: func(pebble.FlushInfo) { signal(s.keeper.due) },
			// Damage is its reader's affair; the default would be Fatalf.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				if s.damage.hit(s.fs.PathBase(info.Path)) {
					signal(s.keeper.due)
				}
				s.report(slog.LevelError, "store: damaged table", "path", info.Path, "err", firstLine(info.Details))
			},
			BackgroundError: func(err error) {
				if isFull(err) {
					return // Stats.FullSince says so
				}
				s.report(slog.LevelWarn, "store: background error", "err", firstLine(err))
			},
		},
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockBytes
		// Keys are sorted by pane, so a small file belongs to one pane, and one
		// that an excise cuts keeps little of what was taken away.
		o.TargetFileSizes[i] = int64(s.opts.MemTable)
	}
	return o
}

// openDB opens the database, and mends the damaged tables that are known, and those
// that it meets: these are noted first. A note is kept until all that follows from the
// mending is done.
func (s *Store) openDB(state uint32) error {
	if s.opts.ReadOnly {
		return s.openOnce(state)
	}
	_ = s.fs.base.Remove(s.fs.PathJoin(s.dir, dbDir, tableTemp)) // a crash may have left it
	known, tried := s.keeper.state.tables, make(map[string]bool)
	for {
		s.mend(sortedKeys(known), tried)
		if err := s.openOnce(state); err != nil {
			return err
		}
		if err := s.lookAtEnds(); err != nil {
			return err
		}
		met := 0
		for _, name := range s.damage.tables() {
			if _, ok := tried[name]; !ok {
				known[name] = true
				met++
			}
		}
		if met == 0 {
			break
		}
		if err := errors.Join(s.closeTables(), s.keeper.rewrite()); err != nil {
			return err
		}
	}
	if len(tried) == 0 {
		return nil
	}
	for name, mended := range tried {
		if mended {
			delete(known, name)
		}
	}
	return s.markBeginnings()
}

// closeTables closes the database, so that its tables can be mended.
func (s *Store) closeTables() error {
	db := s.db
	s.db = nil
	if err := db.Close(); err != nil {
		return fmt.Errorf("store: closing a damaged database: %w", err)
	}
	return nil
}

// openOnce opens Pebble, makes or checks its meta record and sweeps.
func (s *Store) openOnce(state uint32) (err error) {
	s.fs.strict.Store(false)
	o := s.pebbleOptions(state == stateReady)
	// MaxOpenFiles has a floor of 74.
	o.FileCache = pebble.NewFileCache(max(s.opts.Tables/64, 1), s.opts.Tables)
	defer o.FileCache.Unref() // Pebble has its own reference
	s.db, err = pebble.Open(s.fs.PathJoin(s.dir, dbDir), o)
	switch {
	case err == nil:
	case errors.Is(err, pebble.ErrDBDoesNotExist), errors.Is(err, pebble.ErrDBNotPristine),
		pebble.IsCorruptionError(err), errors.Is(err, fs.ErrNotExist):
		return &DamagedError{Pane: WholeStore, Err: fmt.Errorf("database: %w", err)}
	default:
		return err
	}
	s.fs.strict.Store(true)
	if state == stateCreating {
		if err := s.db.Set(metaKey, encodeMeta(s.id), pebble.Sync); err != nil {
			return err
		}
		// Pebble made its first log before it raised the format to the one in
		// which logs tell damage from a torn end. Flushing goes on to a new one.
		if err := s.db.Flush(); err != nil {
			return err
		}
	} else if err := s.checkMeta(); err != nil {
		return err
	}
	if s.opts.ReadOnly {
		return nil
	}
	return s.sweep()
}

// checkMeta compares the database's record with the header.
func (s *Store) checkMeta() error {
	v, closer, err := s.db.Get(metaKey)
	if errors.Is(err, pebble.ErrNotFound) {
		// It was in a block that is lost.
		s.opts.Logger.Warn("store: the meta record is lost")
		if s.opts.ReadOnly {
			return nil
		}
		return s.db.Set(metaKey, encodeMeta(s.id), pebble.Sync)
	}
	if pebble.IsCorruptionError(err) {
		// It shares a block with log data, which alone is the worse for it.
		s.opts.Logger.Warn("store: the meta record cannot be read", "err", firstLine(err))
		return nil
	}
	if err != nil {
		return &DamagedError{Pane: WholeStore, Err: fmt.Errorf("meta: %w", err)}
	}
	defer closer.Close()
	id, err := decodeMeta(v)
	if err == nil && id != s.id {
		err = fmt.Errorf("%w: header and database are of different stores", errRecord)
	}
	if err != nil {
		return &DamagedError{Pane: WholeStore, Err: fmt.Errorf("meta: %w", err)}
	}
	return nil
}

// pebbleLogger passes on what Pebble says, and takes Fatalf for what it is
// here: the end of the store, not of the process.
type pebbleLogger struct{ s *Store }

func (l pebbleLogger) Infof(format string, args ...any) {
	log := l.s.opts.Logger
	if log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.s.report(slog.LevelWarn, "pebble: "+fmt.Sprintf(format, args...))
}

// Fatalf marks the store failed and never returns: Pebble's callers do not
// expect it to, and would go on to acknowledge what is lost.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.s.fail(fmt.Errorf(format, args...))
	select {}
}

// DiskBytes is what the store takes on disk now, by Pebble's account: tables,
// logs and what is about to be deleted. 0 of a store that failed or is closed.
func (s *Store) DiskBytes() (bytes uint64) {
	// Pebble counts under the lock that a parked goroutine may hold.
	err := s.guard(func() error {
		if !s.gate.enter() {
			return ErrClosed
		}
		defer s.gate.leave()
		bytes = s.db.Metrics().DiskSpaceUsage()
		return nil
	})
	if err != nil {
		return 0
	}
	return bytes
}

// FreeBytes is what the file system under the store has left, by its account;
// vfs.ErrUnsupported if it has none.
func (s *Store) FreeBytes() (uint64, error) {
	u, err := s.fs.GetDiskUsage(s.dir)
	return u.AvailBytes, err
}
