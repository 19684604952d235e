package store

import (
	"errors"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// agePace is the longest time between two looks for what is older than
// Options.KeepFor. Each reads two checkpoints of each log.
const agePace = 10 * time.Second

// agePass takes away what is too old, if it is time to look.
func (r *retainer) agePass(now time.Time) error {
	keep := r.s.opts.KeepFor
	if keep <= 0 || now.Sub(r.aged) < min(agePace, keep/4) {
		return nil
	}
	r.aged = now
	return r.s.evictAged(now.Add(-keep).UnixNano())
}

// evictAged takes the oldest spans of each log, whether anybody appends to it or
// not, as long as everything in them is older than cutoff (ns since the epoch),
// by the largest wall time of the log up to there. The last span of a log stays.
func (s *Store) evictAged(cutoff int64) error {
	panes, err := s.Panes()
	errs := []error{err}
	for _, pane := range panes {
		l, err := s.Log(pane)
		if err != nil {
			continue // damaged, or being removed
		}
		to, ok, err := s.firstYoung(l, cutoff)
		if ok && err == nil {
			err = s.evictBefore(l, to)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// firstYoung is the last span of l for which everything before it is older than
// cutoff; not ok if that is the first.
func (s *Store) firstYoung(l *Log, cutoff int64) (to Pos, ok bool, err error) {
	l.mu.Lock()
	end := l.durable
	l.mu.Unlock()
	err = s.view(l.pane, func(it *pebble.Iterator) error {
		k, more := l.first(it)
		for oldest := k.span; more && k.span.Before(end); {
			if k.class == classFull && k.span != oldest {
				clock, known := clockAt(it)
				if known && clock >= cutoff {
					break
				}
				if known {
					to, ok = k.span, true
				}
			}
			k, more = l.readableFrom(it, spanKey(l.pane, Pos{k.span.Offset, k.span.Seq + 1}))
		}
		return nil
	})
	return to, ok, err
}

// clockAt is the largest wall time of the log up to the record under the
// iterator, if that can be read and says so.
func clockAt(it *pebble.Iterator) (clock int64, known bool) {
	v, err := it.ValueAndErr()
	if err != nil {
		return 0, false
	}
	h, err := decodeHeader(v)
	return h.clock, err == nil && h.clock != math.MinInt64
}
