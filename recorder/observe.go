package recorder

import (
	"cmp"
	"slices"
	"time"

	"looptape/replay"
	"looptape/store"
)

// ObservationKind says what an Observation is.
type ObservationKind uint8

// Kinds of Observation. Those up to CommandEnd are what the program says, as often
// as it likes; they are told at a limited rate (watch).
const (
	Bell         ObservationKind = iota + 1
	TitleChanged                 // Text is the title
	CwdChanged                   // Text is the working directory as the program reports it (OSC 7)
	PromptStart                  // OSC 133 A
	CommandStart                 // OSC 133 B: behind the prompt
	OutputStart                  // OSC 133 C: the command runs
	CommandEnd                   // OSC 133 D; Text begins with its exit code, if it is given

	Resized   // to Cols, Rows, in Epoch
	Exited    // the program, with Exit; its own output ends at Offset
	Closed    // no more bytes can come
	GapOpened // from Offset on nothing is recorded
	GapClosed // at Offset the recording resumes; Lost bytes before it are missing
	Respawned // a new program begins at Offset

	limitedKinds = int(CommandEnd)
)

// Observation is something that happened to a pane, besides rows.
type Observation struct {
	Kind   ObservationKind
	Offset uint64    // of the stream, behind what was observed
	Time   time.Time // when the bytes were read, or the thing happened
	Count  int       // of so many of its kind it is the last, and the one that is told; at least 1
	Text   string

	Cols, Rows int
	Epoch      uint32
	Exit       replay.Exit
	Lost       uint64
}

// What a program says is told singly, up to watchBurst of a kind at once and ten a
// second. What comes faster is held: of each kind the newest, and how many it
// stands for. It is told with the next thing that is told, or watchPause later.
// So nothing is left out without its number, the last title is the last, and a
// flood costs the loop a few instructions a piece and its listener ten
// observations of a kind a second.
const (
	watchBurst = 64
	watchPause = 100 * time.Millisecond
)

// watch tells observations, in the order of the stream.
type watch struct {
	tell func(Observation) // must not block; nil is nobody
	held [limitedKinds]heldBack
	at   store.Time       // of the frame that the Terminal is fed
	due  <-chan time.Time // when what is held is told
}

// heldBack is what of one kind waits to be told, if count is not 0.
type heldBack struct {
	count  int
	offset uint64
	wall   int64
	text   string
	// spent is when (ns, as store.Time.Mono) all that was told of the kind would be
	// paid for at ten a second.
	spent int64
}

// observed maps what a Terminal says. It says more than is told.
var observed = [...]ObservationKind{
	replay.Bell:         Bell,
	replay.TitleChanged: TitleChanged,
	replay.CwdChanged:   CwdChanged,
	replay.PromptStart:  PromptStart,
	replay.CommandStart: CommandStart,
	replay.OutputStart:  OutputStart,
	replay.CommandEnd:   CommandEnd,
	replay.Notification: 0,
	replay.Hyperlink:    0,
}

// event is the Terminal's sink. In a flood it only counts.
func (w *watch) event(e replay.Event) {
	kind := observed[e.Kind]
	if kind == 0 {
		return
	}
	h := &w.held[kind-1]
	h.count++
	h.offset, h.wall, h.text = e.Offset, w.at.Wall, e.Text
	if h.count == 1 || w.due == nil {
		w.decide(h)
	}
}

// decide tells what came just now, or holds it.
func (w *watch) decide(h *heldBack) {
	if h.spent-w.at.Mono <= int64((watchBurst-1)*watchPause) {
		w.release(w.at.Mono)
	} else if w.due == nil {
		w.due = time.After(watchPause)
	}
}

// observe tells o, and before it what is held. at is the time of o.
func (w *watch) observe(o Observation, at store.Time) {
	if w.tell == nil {
		return
	}
	w.release(at.Mono)
	o.Time, o.Count = time.Unix(0, at.Wall), 1
	w.tell(o)
}

// release tells all that is held.
func (w *watch) release(mono int64) {
	w.due = nil
	var ready [limitedKinds]Observation
	n := 0
	for i := range w.held {
		h := &w.held[i]
		if h.count == 0 {
			continue
		}
		ready[n] = Observation{Kind: ObservationKind(i + 1), Offset: h.offset, Time: time.Unix(0, h.wall), Count: h.count, Text: h.text}
		n++
		h.spent = min(max(h.spent, mono)+int64(watchPause), mono+int64(watchBurst*watchPause))
		h.count, h.text = 0, ""
	}
	slices.SortFunc(ready[:n], func(a, b Observation) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, o := range ready[:n] {
		w.tell(o)
	}
}

// observe tells what the loop itself did, at the end of the stream.
func (l *loop) observe(o Observation) {
	o.Offset = l.term.Offset()
	l.watch.observe(o, l.now())
}
