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
	since uint64    // the lowest Offset of a line
	// beginning says that the walk begins with the log.
	beginning bool
}

// resolve finds the ends of the range that q asks for. The end of the log is that of
// now.
func (r *exportRange) resolve(ctx context.Context, p Pane, q ExportRequest) error {
	log := p.Log()
	r.end = log.End()
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
			r.end = at
		}
	}
	r.whole = q.From == nil && q.FromTime == nil
	switch {
	case q.From != nil:
		r.from.Offset = *q.From
		if *q.From > log.End().Offset {
			return outsideLog(p, *q.From, "future", "does not exist yet", log.End().Offset)
		}
	case q.FromTime != nil:
		at, err := q.at(log, *q.FromTime)
		if err != nil {
			return err
		}
		r.from = at
	}
	if q.To != nil && *q.To < r.end.Offset {
		r.end.Offset = *q.To
	}
	if r.end.Offset < r.from.Offset {
		return rangeError(fmt.Sprintf("the range ends at offset %d, before it begins at %d", r.end.Offset, r.from.Offset))
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
	return log.PosAt(when.UnixNano())
}

func rangeError(message string) error {
	return &Error{"invalid_params.export", message, nil}
}
