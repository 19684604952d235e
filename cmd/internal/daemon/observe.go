package daemon

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
	"looptape/recorder"
)

// newEvent makes an event of what happened to an object.
func newEvent(o grant.Object, kind string, at time.Time, data eventData) event {
	id := map[manifest.Kind]string{manifest.Session: o.Session, manifest.Window: o.Window, manifest.Pane: o.Pane}[o.Kind]
	return event{TS: at, Event: kind, Resource: string(o.Kind) + ":" + id, Data: &data, about: o}
}

// maxName is how long the name of a session may be, as JSON, to be in an event: an
// event has to fit the smallest frame, and 8192 of them are kept.
const maxName = 1024

// shortName is a name for an event, empty if it is too long for one.
func shortName(name string) string {
	if wire.StringLen(name) > maxName {
		return ""
	}
	return name
}

// paneEvents tells what happens to one pane, and counts for doctor. A pane has it
// as long as the daemon runs.
type paneEvents struct {
	hub   *hub
	pane  grant.Object
	queue queue

	gaps     atomic.Uint64 // of the log, since the daemon started
	gapBytes atomic.Uint64
	evicted  atomic.Uint64 // bytes of the stream, since the daemon started
}

// tell tells an event of the pane.
func (p *paneEvents) tell(kind string, at time.Time, data eventData) {
	p.hub.add(&p.queue, newEvent(p.pane, kind, at, data))
}

// created announces a window and its pane; both events wait for show.
func (p *paneEvents) created(w *window) {
	p.hub.add(&p.queue,
		newEvent(w.object(manifest.Window), evCreated, w.Created, eventData{Session: p.pane.Session, Pane: p.pane.Pane}),
		newEvent(p.pane, evCreated, w.Created, eventData{Session: p.pane.Session, Window: p.pane.Window, Cols: w.Pane.Cols, Rows: w.Pane.Rows}))
}

// show tells what created and what came behind it, once everybody can look it up.
func (p *paneEvents) show() { p.hub.allow(&p.queue, evCreated, 2) }

// exitKnown tells the exit that was observed, once it is on disk.
func (p *paneEvents) exitKnown() { p.hub.allow(&p.queue, evExited, 1) }

// respawnKnown tells the respawn that was observed, once it is on disk.
func (p *paneEvents) respawnKnown() { p.hub.allow(&p.queue, evRespawned, 1) }

// lost counts a gap of the log.
func (p *paneEvents) lost(bytes uint64) {
	p.gaps.Add(1)
	p.gapBytes.Add(bytes)
}

// marks are the names of OSC 133 A to D.
var marks = map[recorder.ObservationKind]string{
	recorder.PromptStart: "prompt", recorder.CommandStart: "input", recorder.OutputStart: "output", recorder.CommandEnd: "end",
}

// observe is recorder.Config's Observe.
func (p *paneEvents) observe(o recorder.Observation) {
	data := eventData{Offset: &o.Offset}
	if o.Count > 1 {
		data.Count = o.Count
	}
	kind := ""
	switch o.Kind {
	case recorder.Bell:
		kind = evBell
	case recorder.TitleChanged:
		kind, data.Title = evTitle, &o.Text
	case recorder.CwdChanged:
		kind, data.Cwd = evCwd, &o.Text
	case recorder.PromptStart, recorder.CommandStart, recorder.OutputStart, recorder.CommandEnd:
		kind, data.Mark = evCommand, marks[o.Kind]
		if o.Kind == recorder.CommandEnd {
			data.Exit = markExit(o.Text)
		}
	case recorder.Resized:
		kind, data.Cols, data.Rows, data.Epoch = evResized, o.Cols, o.Rows, o.Epoch
	case recorder.Exited:
		kind, data.Exit = evExited, newExit(o.Exit)
	case recorder.Closed:
		kind = evClosed
	case recorder.GapOpened:
		kind, data.Gap = evGap, "open"
	case recorder.GapClosed:
		kind, data.Gap, data.Bytes = evGap, "closed", &o.Lost
		if o.Lost > 0 {
			p.lost(o.Lost)
		}
	case recorder.Respawned:
		kind = evRespawned
	}
	p.tell(kind, o.Time, data)
}

// markExit reads the exit code at the beginning of what OSC 133 D says; nil if
// there is none.
func markExit(text string) *exit {
	digits, _, _ := strings.Cut(text, ";")
	code, err := strconv.Atoi(digits)
	if err != nil {
		return nil
	}
	return &exit{Code: &code}
}
