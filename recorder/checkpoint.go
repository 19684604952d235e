package recorder

import (
	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// Distances between checkpoints, in work of the Terminal. They are a trade of
// three things: the work that a hydration replays at most (100 ms), what
// checkpoints add to the log (15 %), and what the loop spends on making them.
//
//	what is printed               checkpoint               behind the last one
//	a screen is redrawn, or       screen, and the rows     deltaWork
//	little scrolls                since the last one
//	lines scroll by               the whole state: begins  fullWork to mostWork
//	                              a span
//	lines scroll by, and the      screen, and the rows     half of fullWork
//	whole state is large          since the last one
//	either                        the whole state: begins  spanWork, or spanBytes of
//	                              a span                   the stream, behind the last
//	                                                       of this kind
//
// While lines scroll by, the rows since the last checkpoint are the stream once
// more, and replaying the stream is what makes them; soon no row of then is
// left. So nothing is written until a whole state is worth it, but where that is so
// large that it would take longer than four times mostWork.
var distances = distance{
	deltaWork: 4 << 20, deltaShare: 16,
	fullWork: 12 << 20, fullShare: 12, mostWork: 27 << 20,
	spanWork: 128 << 20,
}

// distance is a set of distances. Before compression a checkpoint inside a span is
// at most one deltaShare-th of the stream since the last one, and a whole state one
// fullShare-th; but behind fullWork in the one case, and mostWork in the other (or
// restoreWork for each byte of the state), it is written whatever it takes.
type distance struct {
	deltaWork, deltaShare uint64
	fullWork, fullShare   uint64
	mostWork              uint64
	spanWork              uint64
}

// largestWhole is up to how many bytes a state can be restored in time. It is what a
// history of 10,000 rows comes to at most; beyond it, nothing is gained by keeping the
// rest of a hydration short.
const largestWhole = 24 << 20

// restoreWork is the work in whose time a byte of a state is restored, roughly. It is no
// use to be closer to one another than that: a screen of millions of cells takes tens of
// MB.
const restoreWork = 4

// rowBytes is what a row is taken for before it is encoded.
const rowBytes = 64

// runBytes is what a run is taken for, when it has a style of its own.
const runBytes = 7

// schedule decides when a checkpoint is due and what it holds. It looks at the
// Terminal only, so that a stream has its checkpoints at the same places however
// fast it comes, cut into the same batches.
type schedule struct {
	distance
	spanBytes uint64 // the longest span, in bytes of the stream; 0 is any

	spanWork, spanOffset uint64 // where the span began
	work, offset         uint64 // of the Terminal at the last checkpoint
	tried                uint64 // of the Terminal when one was thought of last
	largest              int    // bytes of a checkpoint at most; 0 is store.MaxCheckpoint
	whole                uint64 // bytes of the last whole state,
	screens              uint64 // and of the screens in the last one of another kind, or less
	// The next checkpoint may leave out rows below row, if it is in epoch: the
	// last one has them. Epoch 0 is none.
	epoch uint32
	row   uint64

	leftOut, told bool // the last whole state lacks rows; somebody was told

	why  reason // there was a checkpoint last
	blob []byte // reused
}

// reason says by which rule of next there is a checkpoint. Nobody but tests asks.
type reason string

const (
	spanIsLong   reason = "the span is long"
	littleScroll reason = "little scrolled"
	wholeIsWorth reason = "a whole state is worth it"
	wholeIsLarge reason = "a whole state would be large"
	asked        reason = "asked for" // where something begins or ends
)

// next returns the checkpoint that is due after what t was fed last, if one is.
// blob is valid until the next call.
func (s *schedule) next(t *replay.Terminal) (blob []byte, full, ok bool) {
	work, bytes := t.Work(), t.Offset()-s.offset
	due := work-s.tried >= s.deltaWork
	switch since := work - s.work; {
	case work-s.spanWork >= s.distance.spanWork,
		s.spanBytes > 0 && t.Offset()-s.spanOffset >= s.spanBytes:
		blob = s.full(t)
		s.why = spanIsLong
		return blob, true, true
	case since < restoreWork*s.screens:
		return nil, false, false
	case (due || since >= s.fullWork) && s.fewRows(t, bytes):
		return s.delta(t, littleScroll, since < s.fullWork)
	case !due:
		return nil, false, false
	case since >= s.fullWork && (bytes >= s.whole*s.fullShare || since >= max(s.mostWork, restoreWork*min(s.whole, t.Weight()+s.screens))):
		blob = s.full(t)
		s.why = wholeIsWorth
		return blob, true, true
	case since >= s.fullWork/2 && restoreWork*s.whole > s.mostWork && s.whole <= largestWhole && s.rowsThere(t):
		return s.delta(t, wholeIsLarge, false)
	}
	s.tried = work
	return nil, false, false
}

// delta returns the state of t without the rows that the checkpoints before have. If it
// is to be small, it is due only where it takes at most its share of the output.
func (s *schedule) delta(t *replay.Terminal, why reason, small bool) (blob []byte, full, ok bool) {
	state := t.StateSince(s.row)
	full = state.History.Hidden > 0 || state.History.First > s.row
	s.blob = checkpoint.Encode(s.blob[:0], state)
	s.screens = uint64(len(s.blob)) - min(uint64(len(s.blob)), historyBytes(state.History.Rows))
	if len(s.blob) > s.most() || small && uint64(len(s.blob))*s.deltaShare > t.Offset()-s.offset {
		s.tried = t.Work()
		return nil, false, false
	}
	s.took(t, state, full)
	s.why = why
	return s.blob, full, true
}

// historyBytes is about what rows of a history take in an encoded state.
func historyBytes(rows []checkpoint.Row) (n uint64) {
	for i := range rows {
		n += uint64(len(rows[i].Text) + runBytes*len(rows[i].Runs))
	}
	return n
}

// rowsThere reports whether the checkpoints before have all rows that t still has
// above s.row.
func (s *schedule) rowsThere(t *replay.Terminal) bool {
	b := t.Bounds()
	return b.Epoch == s.epoch && (b.Screen == replay.Alternate || b.Oldest <= s.row)
}

// fewRows reports whether the rows since the last checkpoint are so few that they
// are kept for less than it takes to replay them.
func (s *schedule) fewRows(t *replay.Terminal, bytes uint64) bool {
	// The alternate screen has no rows of its own; while it is shown, nothing
	// changes behind it.
	b := t.Bounds()
	return s.rowsThere(t) &&
		(b.Screen == replay.Alternate || (b.Active-min(b.Active, s.row))*rowBytes*s.deltaShare <= bytes)
}

// most is the largest checkpoint, in bytes.
func (s *schedule) most() int {
	if s.largest > 0 {
		return s.largest
	}
	return store.MaxCheckpoint
}

// full returns the whole state of t, which is to begin a span. Of a history that is too
// large for a checkpoint it has the newest rows.
func (s *schedule) full(t *replay.Terminal) []byte {
	var state *checkpoint.State
	var whole bool
	s.blob, state, whole = t.EncodeState(s.blob[:0], s.most())
	s.leftOut = !whole
	s.took(t, state, true)
	s.why = asked
	return s.blob
}

// took notes that state is a checkpoint.
func (s *schedule) took(t *replay.Terminal, state *checkpoint.State, full bool) {
	s.work, s.tried, s.offset = t.Work(), t.Work(), t.Offset()
	if full {
		s.spanWork, s.spanOffset = t.Work(), t.Offset()
		s.whole = uint64(len(s.blob))
		s.screens = min(s.screens, s.whole)
	}
	h := &state.History
	if h.Hidden > 0 {
		s.epoch = 0
		return
	}
	// What follows may still join or close the newest line, if that is open.
	n := len(h.Rows)
	for n > 0 && h.Rows[n-1].Flags&checkpoint.RowWrapped != 0 {
		n--
	}
	s.epoch, s.row = state.Clock.Epoch, h.First+uint64(n)
}

// maybeCheckpoint appends the checkpoint that is due, if one is.
func (l *loop) maybeCheckpoint() {
	if blob, full, ok := l.schedule.next(l.term); ok {
		l.putCheckpoint(blob, full)
	}
}

// checkpoint begins a span: a full checkpoint at the end of the log.
func (l *loop) checkpoint() {
	l.putCheckpoint(l.schedule.full(l.term), true)
}

// putCheckpoint appends a checkpoint. A whole state whose oldest rows had to be left out
// is said once in the log of the daemon.
func (l *loop) putCheckpoint(blob []byte, full bool) {
	if l.schedule.leftOut && !l.schedule.told {
		l.schedule.told = true
		l.pane.logger.Warn("the history is too large for a checkpoint: its oldest rows are not kept for later reads",
			"offset", l.term.Offset(), "most", l.schedule.most())
	}
	l.pane.log.AppendCheckpoint(blob, full)
}
