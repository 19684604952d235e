package daemon

import (
	"sync"
	"time"

	"looptape/cmd/internal/grant"
)

// Kinds of events (contract.md, section 11).
const (
	evCreated   = "created"
	evExited    = "exited"
	evResized   = "resized"
	evTitle     = "title"
	evBell      = "bell"
	evCwd       = "cwd"
	evCommand   = "command"
	evArchived  = "archived"
	evGap       = "gap"
	evEvicted   = "evicted"
	evRespawned = "respawned"
	evClosed    = "closed"
	evDeleted   = "deleted"
	evMissed    = "missed" // told in place of events that are no longer kept
)

// keptEvents is how many events are kept for those who read later. With titles of
// 1 KiB, the longest, they take 10 MiB.
const keptEvents = 8192

// event is something that happened, as the verb events tells it.
type event struct {
	Seq      uint64     `json:"seq"`
	TS       time.Time  `json:"ts"`
	Event    string     `json:"event"`
	Resource string     `json:"resource"`
	Data     *eventData `json:"data"` // does not change

	about grant.Object // who may read that may hear of it
}

// eventData is what the manifest says of data; each kind has some of it.
type eventData struct {
	Session   string  `json:"session,omitempty"`
	Window    string  `json:"window,omitempty"`
	Pane      string  `json:"pane,omitempty"`
	Name      string  `json:"name,omitempty"`
	Offset    *uint64 `json:"offset,omitempty"`
	Count     int     `json:"count,omitempty"`
	Title     *string `json:"title,omitempty"`
	Cwd       *string `json:"cwd,omitempty"`
	Mark      string  `json:"mark,omitempty"`
	Exit      *exit   `json:"exit,omitempty"`
	Cols      int     `json:"cols,omitempty"`
	Rows      int     `json:"rows,omitempty"`
	Epoch     uint32  `json:"epoch,omitempty"`
	Gap       string  `json:"gap,omitempty"`
	Bytes     *uint64 `json:"bytes,omitempty"`
	Oldest    *uint64 `json:"oldest,omitempty"`
	Missed    *uint64 `json:"missed,omitempty"`
	Restarted bool    `json:"restarted,omitempty"`
}

// hub numbers events and keeps the newest. Nobody who tells it something waits for
// those who read: these come and take, and what was dropped before they came they
// are told as a number.
//
// The first number is the microsecond at which the daemon started. So numbers go on
// growing over restarts without anything being written, and one of an earlier
// daemon is known for what it is; a clock that was set back shows in a number that
// is yet to come.
type hub struct {
	first uint64 // number of the first event

	mu   sync.Mutex
	ring []event       // event n is at (n-first) % keptEvents
	next uint64        // number of the next event
	news chan struct{} // closed by the next event; nil while nobody waits for it
}

func newHub(born time.Time) *hub {
	first := uint64(born.UnixMicro())
	return &hub{first: first, next: first}
}

// publish tells an event.
func (h *hub) publish(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishLocked(e)
}

func (h *hub) publishLocked(e event) {
	e.Seq, e.TS = h.next, e.TS.UTC()
	if len(h.ring) < keptEvents {
		h.ring = append(h.ring, e)
	} else {
		h.ring[(e.Seq-h.first)%keptEvents] = e
	}
	h.next++
	if h.news != nil {
		close(h.news)
		h.news = nil
	}
}

// place is where a reader stands who has read up to the number after; 0 is the
// beginning. stale says that it is no number of this daemon's.
func (h *hub) place(after uint64) (at uint64, stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after+1 >= h.first && after < h.next {
		return after, false
	}
	return h.first - 1, after != 0
}

// newest is the place behind everything.
func (h *hub) newest() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next - 1
}

// since returns up to n events behind the place at, and how many before them are
// no longer kept. If there are none, news is closed when there are.
func (h *hub) since(at uint64, n int) (events []event, missed uint64, news <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := max(at+1, h.next-uint64(len(h.ring)))
	missed = from - (at + 1)
	for ; from < h.next && len(events) < n; from++ {
		events = append(events, h.ring[(from-h.first)%keptEvents])
	}
	if len(events) == 0 {
		if h.news == nil {
			h.news = make(chan struct{})
		}
		news = h.news
	}
	return events, missed, news
}

// queue holds the events of one pane that others have to come before: nobody is to
// hear of a pane that cannot be looked up yet, or of an exit that a crash would
// undo. The hub's mutex guards it.
type queue struct {
	events  []event
	allowed map[string]int // how many events of a gated kind may be told
}

// gated are the kinds that wait for hub.allow, and everything of their pane behind
// them.
var gated = map[string]bool{evCreated: true, evRespawned: true, evExited: true}

// add tells events of q, or queues them.
func (h *hub) add(q *queue, events ...event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q.events = append(q.events, events...)
	h.pumpLocked(q)
}

// allow lets n gated events of a kind pass.
func (h *hub) allow(q *queue, kind string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.allowed == nil {
		q.allowed = make(map[string]int)
	}
	q.allowed[kind] += n
	h.pumpLocked(q)
}

func (h *hub) pumpLocked(q *queue) {
	for len(q.events) > 0 {
		e := q.events[0]
		if gated[e.Event] {
			if q.allowed[e.Event] == 0 {
				return
			}
			q.allowed[e.Event]--
		}
		h.publishLocked(e)
		q.events = q.events[1:]
	}
	q.events = nil
}
