package daemon

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"looptape/recorder"
)

// names are the kinds of events, in order.
func names(events []event) string {
	var list []string
	for _, e := range events {
		list = append(list, e.Event)
	}
	return strings.Join(list, " ")
}

// TestHub: numbers begin at the start of the daemon and grow by one; who reads finds
// what is kept, and how many events before that are not; a number of before the
// start, or of nobody's, is stale.
func TestHub(t *testing.T) {
	born := time.UnixMicro(1000000)
	h := newHub(born)
	if at := h.newest(); at != 999999 {
		t.Fatalf("nothing has happened, and the newest is %d", at)
	}
	for _, c := range []struct {
		after, at uint64
		stale     bool
	}{{0, 999999, false}, {999999, 999999, false}, {1, 999999, true}, {999998, 999999, true}, {1000000, 999999, true}, {1<<53 - 1, 999999, true}} {
		if at, stale := h.place(c.after); at != c.at || stale != c.stale {
			t.Errorf("after %d: place %d, stale %v", c.after, at, stale)
		}
	}
	_, _, news := h.since(999999, 10)
	h.publish(event{Event: evBell})
	select {
	case <-news:
	default:
		t.Error("nobody is woken")
	}
	for range keptEvents + 4 {
		h.publish(event{Event: evTitle})
	}
	// 1000000 to 1000000+8196 are published, the newest 8192 of them kept.
	events, missed, _ := h.since(999999, 3)
	if missed != 5 || len(events) != 3 || events[0].Seq != 1000005 || events[2].Seq != 1000007 || events[0].Event != evTitle {
		t.Errorf("missed %d, then %+v", missed, events)
	}
	events, missed, _ = h.since(1000004, keptEvents+1)
	if missed != 0 || len(events) != keptEvents || events[keptEvents-1].Seq != h.newest() {
		t.Errorf("missed %d, then %d events up to %d", missed, len(events), events[len(events)-1].Seq)
	}
	if events, missed, news = h.since(h.newest(), 1); len(events) != 0 || missed != 0 || news == nil {
		t.Errorf("behind everything: %d events, %d missed", len(events), missed)
	}
	if at, stale := h.place(h.newest()); at != 1008196 || stale {
		t.Errorf("the newest is at %d, stale %v", at, stale)
	}
}

// TestGates: nothing is told of a pane before it can be looked up, and nothing that
// comes behind an exit before that is on disk; the order stays that of the stream.
func TestGates(t *testing.T) {
	h := newHub(time.UnixMicro(1))
	p := &paneEvents{hub: h}
	told := func(what, want string) {
		t.Helper()
		events, _, _ := h.since(0, keptEvents)
		if got := names(events); got != want {
			t.Errorf("%s: told %q, want %q", what, got, want)
		}
	}
	see := func(kinds ...recorder.ObservationKind) {
		for i, kind := range kinds {
			p.observe(recorder.Observation{Kind: kind, Offset: uint64(i), Count: 1, Time: time.Now()})
		}
	}
	p.created(&window{})
	see(recorder.Bell, recorder.Exited, recorder.TitleChanged)
	told("a window that is being made", "")
	p.show()
	told("then", "created created bell")
	see(recorder.Closed)
	told("an exit that is not on disk", "created created bell")
	p.exitKnown()
	told("then", "created created bell exited title closed")
	see(recorder.Respawned, recorder.Exited)
	p.exitKnown()
	told("a respawn that is not on disk", "created created bell exited title closed")
	h.allow(&p.queue, evRespawned, 1)
	told("then", "created created bell exited title closed respawned exited")
}

// TestMarkExit: exit codes as shells write them.
func TestMarkExit(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "130": 130, "1;aid=7": 1, "-1": -1} {
		if got := markExit(text); got == nil || *got.Code != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, text := range []string{"", ";aid=7", "x", "err=1", "99999999999999999999"} {
		if got := markExit(text); got != nil {
			t.Errorf("%q: %d", text, *got.Code)
		}
	}
}

// TestEventFrame: the longest event fits the smallest frame.
func TestEventFrame(t *testing.T) {
	d := startSubject(t)
	d.must("session.create", map[string]any{"name": strings.Repeat(`"`, 3000)}, nil)
	argv := []string{"sh", "-c", `printf '\033]2;%s\a\033]7;%s\a' "$1" "$1"`, "sh", strings.Repeat(`"`, 1024)}
	d.must("window.create", map[string]any{"session": "s0", "argv": argv}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	longest := 0
	_, err := d.clients[2].Stream(ctx, "events", map[string]any{"after": 0}, func(raw json.RawMessage) error {
		var e event
		err := json.Unmarshal(raw, &e)
		if err == nil && e.Event == evCwd {
			longest = len(*e.Data.Cwd)
		}
		if err == nil && e.Event == evClosed {
			err = errEnough
		}
		return err
	})
	if err == nil || err.Error() != errEnough.Error() || longest != 1024 {
		t.Errorf("the longest is %d bytes: %v", longest, err)
	}
}
