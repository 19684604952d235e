package daemon

import (
	"context"
	"time"

	"looptape/cmd/internal/manifest"
)

// eventsAtOnce is how many events are taken from the hub at a time.
const eventsAtOnce = 128

// eventsParams are the parameters of events.
type eventsParams struct {
	After  *uint64 `json:"after"`
	Limit  *int    `json:"limit"`
	WaitMS *int    `json:"wait_ms"`
}

// eventsResult is its result.
type eventsResult struct {
	After     uint64 `json:"after"`
	Missed    uint64 `json:"missed"`
	Restarted bool   `json:"restarted,omitempty"`
	More      bool   `json:"more"`
}

// listener is one call of events.
type listener struct {
	s     *Server
	r     *request
	limit int // 0: none
	told  int // events

	eventsResult
}

func (s *Server) events(ctx context.Context, r *request) (any, error) {
	var p eventsParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	l := &listener{s: s, r: r, eventsResult: eventsResult{After: s.hub.newest()}}
	if p.Limit != nil {
		l.limit = *p.Limit
	}
	if p.After != nil {
		l.After, l.Restarted = s.hub.place(*p.After)
	}
	var patience <-chan time.Time
	if p.WaitMS != nil {
		timer := time.NewTimer(time.Duration(*p.WaitMS) * time.Millisecond)
		defer timer.Stop()
		patience = timer.C
	}
	err := l.listen(ctx, patience)
	return l.eventsResult, err
}

// listen tells events until the limit, or if patience is not nil until what there
// is has been told; if that is nothing, it waits for as long as patience.
func (l *listener) listen(ctx context.Context, patience <-chan time.Time) error {
	if l.Restarted {
		if err := l.miss(ctx, 0, true); err != nil {
			return err
		}
	}
	for waited := false; ; {
		events, missed, news := l.s.hub.since(l.After, eventsAtOnce)
		if missed > 0 {
			l.After += missed
			if err := l.miss(ctx, missed, false); err != nil {
				return err
			}
		}
		for _, e := range events {
			if err := l.tell(ctx, e); err != nil {
				return err
			}
			if l.told == l.limit && l.limit > 0 {
				l.More = l.After < l.s.hub.newest()
				return nil
			}
		}
		if len(events) > 0 {
			continue
		}
		if patience != nil && (waited || l.told > 0) {
			return nil
		}
		err := l.r.Wait(ctx, func() error {
			select {
			case <-news:
			case <-patience:
				waited = true
			case <-ctx.Done():
				return ctx.Err()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// tell sends an event, if the caller may read what it is about.
func (l *listener) tell(ctx context.Context, e event) error {
	l.After = e.Seq
	if !l.s.grants.Allows(l.r.caller, manifest.Read, e.about) {
		return nil
	}
	l.told++
	return l.r.Item(ctx, e)
}

// miss says in the place of events that they are not kept any more.
func (l *listener) miss(ctx context.Context, n uint64, restarted bool) error {
	l.Missed += n
	return l.r.Item(ctx, event{
		Seq: l.After, TS: time.Now().UTC(), Event: evMissed, Resource: string(manifest.Any),
		Data: &eventData{Missed: &n, Restarted: restarted},
	})
}
