package store

import "context"

// extent is how far of a log something reaches: up to a position, and how many
// frames and checkpoints appended since the log was opened.
type extent struct {
	end   Pos
	items uint64
}

// Durable is the offset up to which the log survives a crash of the process
// and, but for lies of the disk, of the machine; of the machine not with
// Options.SyncEvery, see Synced.
func (l *Log) Durable() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable.Offset
}

// Synced is the offset up to which the log survives a power cut too: Durable,
// but with Options.SyncEvery up to so much behind it.
func (l *Log) Synced() uint64 { return l.syncedEnd().Offset }

// syncedEnd is the position up to which the log is synced, as Synced.
func (l *Log) syncedEnd() Pos {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.s.deferral == nil || l.durable.Before(l.synced.end) {
		return l.durable
	}
	return l.synced.end
}

// syncedTo says how far the log is synced.
func (l *Log) syncedTo(e extent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.synced = e
}

// Sync returns once everything appended before the call is durable and synced,
// or with the error of ctx or of the store.
func (l *Log) Sync(ctx context.Context) error {
	l.mu.Lock()
	target := l.pending.total
	l.mu.Unlock()
	err := l.commit(ctx, target)
	if d := l.s.deferral; d != nil && err == nil {
		err = d.await(ctx, l, target)
	}
	return err
}

// commit returns once so many frames and checkpoints are durable.
func (l *Log) commit(ctx context.Context, target uint64) error {
	l.mu.Lock()
	for l.pending.done < target {
		if l.waitC == nil {
			l.waitC = make(chan struct{})
		}
		waitC := l.waitC
		l.mu.Unlock()
		select {
		case <-waitC:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.s.failed:
			return l.s.Err()
		case <-l.s.committer.done:
			// Close commits everything, unless this came after it.
			l.mu.Lock()
			ok := l.pending.done >= target
			l.mu.Unlock()
			switch {
			case ok:
				return nil
			case l.s.Err() != nil:
				return l.s.Err()
			}
			return ErrClosed
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
	return nil
}

// await returns once so many frames and checkpoints of l, which are durable, are
// synced.
func (d *deferral) await(ctx context.Context, l *Log, target uint64) error {
	for {
		d.mu.Lock()
		synced := d.synced
		d.mu.Unlock()
		if l.syncedItems() >= target {
			return nil
		}
		signal(d.dirty)
		signal(d.now)
		select {
		case <-synced:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.s.failed:
			return l.s.Err()
		case <-d.done: // whose last act is to sync
			switch {
			case l.syncedItems() >= target:
				return nil
			case l.s.Err() != nil:
				return l.s.Err()
			}
			return ErrClosed
		}
	}
}

func (l *Log) syncedItems() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced.items
}
