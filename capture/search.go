package capture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"looptape/replay"
	"looptape/store"
)

// searchBytes is how much of the stream one answer scans.
const searchBytes = 32 << 20

// SearchRequest asks for the lines that match. Nil is a parameter not given; the
// ranges of the values are the manifest's.
type SearchRequest struct {
	Pane     string  `json:"pane"`
	Pattern  string  `json:"pattern"` // RE2, matched against each line
	From     *uint64 `json:"from"`
	To       *uint64 `json:"to"`
	FromTime *string `json:"from_time"` // see ParseTime
	ToTime   *string `json:"to_time"`
	Limit    int     `json:"limit"`
	Cursor   *string `json:"cursor"`

	Frame int      `json:"-"` // bounds the size of the result as JSON, in bytes; 0 does not
	Scan  uint64   `json:"-"` // bytes of the stream that are scanned; 0 is 32 MiB
	Store [16]byte `json:"-"` // id of the store
	Slots Slots    `json:"-"`
}

// SearchResult is an answer of search: what matches of the lines of the transcript
// whose last write lies in (From, Offset].
type SearchResult struct {
	Pane        string  `json:"pane"`
	Matches     []Match `json:"matches"`
	From        uint64  `json:"from"`         // where this answer began to look
	Offset      uint64  `json:"offset"`       // how far it came
	MissedBytes uint64  `json:"missed_bytes"` // between the place asked for and From, and of gaps
	More        bool    `json:"more"`
	Cursor      string  `json:"cursor,omitempty"` // where the next answer goes on, if there is more
}

// Match is a line that matches. Offset is behind its last write: the screen at that
// offset shows it. Time is that of the write, unless that is no longer retained. Row
// is its first row, if it still has one in Epoch, the current one.
type Match struct {
	Offset uint64     `json:"offset"`
	Time   *time.Time `json:"time,omitempty"`
	Line   string     `json:"line"`
	Epoch  *uint32    `json:"epoch,omitempty"`
	Row    *uint64    `json:"row,omitempty"`
}

// search is a search under way.
type search struct {
	p       Pane
	q       SearchRequest
	r       *SearchResult
	pattern *pattern
	ctx     context.Context // of the call

	reached uint64 // by the pane when the answer began

	at   searchPlace // begins at the frame that is being replayed
	skip lineCount   // lines from there on that an earlier answer had
	time store.Time  // of that frame
	full bool        // the next match is for the next answer
	size int         // of the result, as JSON
	err  error
}

// Search looks through what a pane showed: every line of the transcript once, in
// the order in which they left the screen, and what is on the screen at the end. An
// answer scans at most 32 MiB of the stream, less with a large pattern, and then says
// more. Where retention overtakes it, it goes on with what was written behind, and
// counts what it missed.
//
// The errors, beside those of the log: invalid_params.pattern, invalid_params.time,
// invalid_params.search, invalid_params.cursor, and unsupported.result_size for a
// line that does not fit the frame.
func Search(ctx context.Context, p Pane, q SearchRequest, now func() time.Time) (*SearchResult, error) {
	s := &search{p: p, q: q, ctx: ctx, r: &SearchResult{Pane: q.Pane, Matches: []Match{}}, size: 512 + 2*len(q.Pane)}
	var err error
	if s.pattern, err = compile(q.Pattern); err != nil {
		return nil, err
	}
	s.reached = p.Reached(ctx)
	if err := s.place(now()); err != nil {
		return nil, err
	}
	if err := q.Slots.hold(ctx, s.run); err != nil {
		return nil, err
	}
	if s.r.More {
		s.r.Cursor = s.at.cursor(q.Store, p.Log().Pane(), q.Pattern)
	}
	return s.r, s.address(ctx)
}

// place finds out where to begin and where to end.
func (s *search) place(now time.Time) (err error) {
	q := &s.q
	if q.Cursor != nil {
		if q.From != nil || q.To != nil || q.FromTime != nil || q.ToTime != nil {
			return &Error{"invalid_params.search", "a cursor goes on where it was: it excludes from, to, from_time and to_time", nil}
		}
		s.at, err = parseSearchCursor(*q.Cursor, q.Store, s.p.Log().Pane(), q.Pattern)
		return err
	}
	if q.From != nil && q.FromTime != nil || q.To != nil && q.ToTime != nil {
		return &Error{"invalid_params.search", "an end of the range is an offset or a time, not both", nil}
	}
	from, err := s.offset(q.From, q.FromTime, now)
	if err != nil {
		return err
	}
	to, err := s.offset(q.To, q.ToTime, now)
	if err != nil {
		return err
	}
	s.at = searchPlace{beginning: true, end: store.Pos{Offset: math.MaxUint64}}
	if to != nil {
		s.at.end = store.Pos{Offset: *to, Seq: math.MaxUint64} // marks there belong to it
	}
	if from == nil {
		s.at.pos.Offset = s.p.Log().Oldest()
		s.r.MissedBytes = s.at.pos.Offset
		return nil
	}
	if end := max(s.reached, s.p.Log().End().Offset); *from > end {
		return outsideLog(s.p, *from, "future", "does not exist yet", end)
	}
	s.at.pos.Offset, s.at.since, s.at.history = *from, *from+1, *from+1
	if *from >= s.p.Log().Oldest() {
		s.at.beginning = false
		s.at.pos, err = frameAt(s.p.Log(), *from)
	}
	return err
}

// offset is an end of the range, nil if it is open.
func (s *search) offset(offset *uint64, text *string, now time.Time) (*uint64, error) {
	if text == nil {
		return offset, nil
	}
	when, err := ParseTime(*text, now)
	if err != nil {
		return nil, err
	}
	at, err := s.p.Log().OffsetAt(nanoseconds(when))
	return &at, err
}

// run scans from s.at on.
func (s *search) run(ctx context.Context) error {
	s.r.From = max(s.at.pos.Offset, max(s.at.since, 1)-1)
	for {
		w, err := s.begin()
		if err == nil {
			err = s.scan(ctx, w)
			w.close()
		}
		if s.err != nil {
			return s.err
		}
		if !errors.Is(err, store.ErrEvicted) {
			return err
		}
	}
}

// begin starts a walk where the search is, or where the log begins if that is
// behind it: then with what was written to the lines of its history meanwhile.
func (s *search) begin() (*walk, error) {
	log, oldest := s.p.Log(), s.p.Log().Oldest()
	s.skip, s.at.seen = s.at.seen, lineCount{}
	if s.at.pos.Offset >= oldest && !s.at.beginning {
		return walkFrom(log, s.at.pos, s.line)
	}
	if s.at.pos.Offset < oldest {
		s.at.history = max(s.at.history, s.at.pos.Offset+1)
		s.r.MissedBytes += oldest - s.at.pos.Offset
		s.at.pos, s.at.beginning, s.skip = store.Pos{Offset: oldest}, true, lineCount{}
		if len(s.r.Matches) == 0 {
			s.r.From = oldest
		}
	}
	return walkAll(log, s.at.history, s.line)
}

// scan replays the walk until the end, until enough is found, or until enough was
// looked at.
func (s *search) scan(ctx context.Context, w *walk) error {
	limit := cmp.Or(s.q.Scan, searchBytes)
	for scanned := uint64(0); ; {
		if err := cmp.Or(s.err, ctx.Err()); err != nil {
			return err
		}
		if s.full || scanned >= limit {
			s.r.Offset, s.r.More = s.at.pos.Offset, true
			if !s.full { // between two frames
				s.at.pos, s.at.seen, s.at.beginning = w.r.At(), lineCount{}, false
				s.r.Offset = s.at.pos.Offset
			}
			return nil
		}
		f, err := w.next()
		if err == nil && f.Pos.Before(s.at.end) {
			s.enter(f)
			if err := s.apply(w, f); err != nil {
				return err
			}
			scanned += s.pattern.cost(f.End().Offset - f.Offset)
			if f.End().Offset <= s.at.end.Offset {
				continue
			}
		} else if err != nil && !errors.Is(err, io.EOF) {
			s.enter(store.Frame{Pos: w.r.At()})
			return err
		} else {
			s.enter(store.Frame{Pos: w.r.At()})
		}
		return s.finish(w)
	}
}

// enter begins to count the lines of a frame, unless it is that which the search
// goes on in the middle of.
func (s *search) enter(f store.Frame) {
	s.time = f.Time
	if s.at.beginning || s.at.pos != f.Pos {
		s.at.pos, s.at.seen, s.at.beginning, s.skip = f.Pos, lineCount{}, false, lineCount{}
	}
}

// apply shows a frame to the walk, as far as the range goes.
func (s *search) apply(w *walk, f store.Frame) error {
	cut(&f, s.at.end.Offset)
	if f.Kind == store.Gap {
		s.miss(f.Offset, f.End().Offset)
	}
	if err := w.apply(f); err != nil {
		return err
	}
	switch f.Kind {
	case store.Gap, replay.MarkRestart, replay.MarkRespawn:
		// What was on the screen was reported here. Who goes on behind it does not find
		// that in the terminal.
		if !s.full {
			s.at.shown = f.Offset + 1
		}
	}
	return nil
}

// miss counts bytes that are not in the log, as far as they are in the range.
func (s *search) miss(from, to uint64) {
	from = max(from, max(s.at.since, 1)-1)
	s.r.MissedBytes += to - min(from, to)
}

// finish reports what is on the screen at the end of the range. What comes later
// in the log is not for this search any more. A gap that is open there is counted.
func (s *search) finish(w *walk) error {
	end := min(s.at.end.Offset, max(s.reached, w.t.Offset()))
	s.at.end = store.Pos{Offset: end, Seq: min(s.at.end.Seq, s.at.pos.Seq)}
	w.t.FlushLines()
	if s.r.Offset, s.r.More = w.t.Offset(), s.full; !s.full {
		s.miss(s.r.Offset, end)
		s.r.Offset = end
	}
	return nil
}

// line takes a line that was shown.
func (s *search) line(l replay.Line) {
	if s.full || s.err != nil || l.Offset < s.at.since {
		return
	}
	blank := len(l.Text) == 0
	if !blank && l.Offset < s.at.shown {
		return
	}
	was := s.at.seen
	if s.at.seen.add(blank); !s.skip.before(s.at.seen) {
		return
	}
	found, err := s.pattern.match(s.ctx, l.Text)
	if s.err = err; !found || err != nil {
		return
	}
	size := matchSize(l.Text)
	switch {
	case len(s.r.Matches) == s.q.Limit, s.q.Frame > 0 && s.size+size > s.q.Frame && len(s.r.Matches) > 0:
		s.full, s.at.seen = true, was
		return
	case s.q.Frame > 0 && s.size+size > s.q.Frame:
		s.err = &Error{"unsupported.result_size", fmt.Sprintf("the line that ends at offset %d does not fit the frame: connect with a larger max_frame", l.Offset), struct {
			Offset uint64 `json:"offset"`
			Bytes  int    `json:"bytes"`
		}{l.Offset, len(l.Text)}}
		return
	}
	s.size += size
	m := Match{Offset: l.Offset, Line: string(l.Text)}
	if l.Offset > s.at.pos.Offset {
		at := time.Unix(0, s.time.Wall).UTC()
		m.Time = &at
	}
	s.r.Matches = append(s.r.Matches, m)
}

// matchSize is the size of a match as JSON, at most: of the text only " and \ take
// more than they are long.
func matchSize(line []byte) int {
	return len(line) + bytes.Count(line, []byte{'"'}) + bytes.Count(line, []byte{'\\'}) + 160
}

// address gives the matches their times, where they were written before the frame
// in which their line went, and their rows.
func (s *search) address(ctx context.Context) error {
	wanted := map[uint64][]*Match{}
	for i := range s.r.Matches {
		m := &s.r.Matches[i]
		if m.Time == nil && m.Offset > s.p.Log().Oldest() {
			if err := s.date(m); err != nil {
				return err
			}
		}
		wanted[m.Offset] = append(wanted[m.Offset], m)
	}
	if len(wanted) == 0 {
		return nil
	}
	return s.p.View(ctx, func(t *replay.Terminal, _ bool) {
		b := t.Bounds()
		for line := range t.Lines(func(offset uint64) bool { return wanted[offset] != nil }) {
			for _, m := range wanted[line.Offset] {
				if m.Row == nil && m.Line == string(line.Text) {
					row := line.Row
					m.Epoch, m.Row = &b.Epoch, &row
					break
				}
			}
		}
	})
}

// date finds the time of a match in the log. What has been evicted has none.
func (s *search) date(m *Match) error {
	r, err := s.p.Log().ReadOffset(m.Offset - 1)
	if err != nil {
		return ignoreEvicted(err)
	}
	defer r.Close()
	f, err := r.Next()
	if err != nil {
		return ignoreEvicted(err)
	}
	at := wallTime(f)
	m.Time = &at
	return nil
}

func ignoreEvicted(err error) error {
	if errors.Is(err, store.ErrEvicted) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
