package capture

import (
	"context"
	"fmt"

	"looptape/store"
)

// exportRange is what of a log an export is to hold.
type exportRange struct {
	// Where it begins, Seq 0 if only the offset is known; whole is from the beginning
	// of the log, with its history.
	from  store.Pos
	whole bool
	end   store.Pos // behind its last frame, or in the middle of that
	upTo  uint64    // offset at which it ends: that of end, or one in a gap that is still open
	since uint64    // the lowest Offset of a line
	// beginning says that the walk begins with the log.
	beginning bool
}

// resolve finds the ends of the range that q asks for. The end of the log is that of
// now.
func (r *exportRange) resolve(ctx context.Context, p Pane, q ExportRequest) error {
	log := p.Log()
	reached := p.Reached(ctx) // before the end, which is in front of it then only in a gap
	r.end = log.End()
	r.upTo = max(reached, r.end.Offset)
	last := r.upTo
	if q.Nth != nil {
		if q.From != nil || q.FromTime != nil || q.To != nil || q.ToTime != nil {
			return rangeError("command excludes from, to, from_time and to_time")
		}
		c, err := nthCommand(ctx, p, *q.Nth)
		if err != nil {
			return err
		}
		q.From, q.To = &c.Start, c.End
	}
	if q.From != nil && q.FromTime != nil || q.To != nil && q.ToTime != nil {
		return rangeError("an end of the range is an offset or a time, not both")
	}
	if q.ToTime != nil {
		at, err := q.at(log, *q.ToTime)
		if err != nil {
			return err
		}
		if at.Before(r.end) {
			r.end, r.upTo = at, at.Offset
		}
	}
	r.whole = q.From == nil && q.FromTime == nil
	switch {
	case q.From != nil:
		r.from.Offset = *q.From
		if *q.From > last {
			return outsideLog(p, *q.From, "future", "does not exist yet", last)
		}
	case q.FromTime != nil:
		at, err := q.at(log, *q.FromTime)
		if err != nil {
			return err
		}
		r.from = at
	}
	if q.To != nil && *q.To < r.upTo {
		r.upTo, r.end.Offset = *q.To, min(*q.To, r.end.Offset)
	}
	if r.upTo < r.from.Offset {
		return rangeError(fmt.Sprintf("the range ends at offset %d, before it begins at %d", r.upTo, r.from.Offset))
	}
	if !r.whole {
		r.since = r.from.Offset + 1
	}
	return nil
}

// at is the position behind what was recorded by a moment.
func (q *ExportRequest) at(log *store.Log, moment string) (store.Pos, error) {
	when, err := ParseTime(moment, q.Now)
	if err != nil {
		return store.Pos{}, err
	}
	return log.PosAt(nanoseconds(when))
}

func rangeError(message string) error {
	return &Error{"invalid_params.export", message, nil}
}
