package daemon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// TestAdvice: what is said of each thing that can be wrong, and nothing of what is
// not; however many panes there are, it is as long.
func TestAdvice(t *testing.T) {
	now := time.Now()
	since, offset := now.Add(-90*time.Second), uint64(7)
	ok := storeHealth{State: "ok", Disk: 1 << 30, Cap: 4 << 30, Free: 1 << 40, measured: true, dir: "/state"}
	well := paneHealth{Pane: "p0", State: "running", Offset: 100, Durable: 100, Retain: 1 << 20}
	many := make([]paneHealth, 9)
	for i := range many {
		many[i] = paneHealth{Pane: fmt.Sprint("p", i), NotRecorded: &offset}
	}
	for _, c := range []struct {
		what  string
		store func(*storeHealth)
		panes []paneHealth
		verbs []verbHealth
		want  []string // each begins or holds so
	}{
		{what: "nothing is wrong", panes: []paneHealth{well}},
		{what: "a disk that is full", store: func(h *storeHealth) { h.State, h.FullSince = "full", &since }, panes: many, want: []string{
			"The disk has been full for 1m30s: free some space on the disk of /state, and the recording resumes by itself.",
			"Nothing is recorded of p0, p1, p2, p3, p4 and 4 more: ",
		}},
		{what: "a store that failed", store: func(h *storeHealth) { h.State, h.Error = "failed", "EIO" }, want: []string{"The store has failed (EIO): "}},
		{what: "a full disk at the start", store: func(h *storeHealth) { h.State = "read-only" }, want: []string{"free some space on the disk of /state, then start the daemon again"}},
		{what: "damaged tables", store: func(h *storeHealth) { h.Damaged = 1 }, want: []string{"restart the daemon when its programs may end, and it mends them"}},
		{what: "little space", store: func(h *storeHealth) { h.Free = 10 << 20 }, want: []string{"The disk of /state has only 10.0 MiB left"}},
		{what: "no space", store: func(h *storeHealth) { h.Free = 0 }, want: []string{"The disk of /state has only 0 B left"}},
		{what: "a system that does not say", store: func(h *storeHealth) { h.Free, h.measured = 0, false }},
		{what: "a damaged log", panes: []paneHealth{{Pane: "p3", Fault: "x", damaged: true}}, want: []string{"The recording of p3 is damaged: 'looptape verify --pane p3' says what is lost"}},
		{what: "a loop that ended", panes: []paneHealth{{Pane: "p3", Fault: "x"}}, want: []string{"looptape failed on p3, "}},
		{what: "a slow disk", panes: []paneHealth{{Pane: "p3", Lag: 5, LagSeconds: 7.2}}, want: []string{"What p3 printed has waited for the disk of /state for up to 7s"}},
		{what: "a disk cap", store: func(h *storeHealth) { h.Disk = 4 << 30 }, panes: []paneHealth{{Pane: "p3", Offset: 100, Oldest: 90, Retain: 20}}, want: []string{"p3 have less of their output than they are to retain, since recordings may take 4.0 GiB on disk"}},
		{what: "less than retain of a new pane", panes: []paneHealth{{Pane: "p3", Offset: 10, Retain: 20}}},
		{what: "long holds", verbs: []verbHealth{{Verb: "pane.capture_rows", LongestMS: 83.4, Warn: true}, {Verb: "pane.capture", LongestMS: 1}}, want: []string{"Calls of pane.capture_rows held up a pane for up to 83 ms"}},
	} {
		h := ok
		if c.store != nil {
			c.store(&h)
		}
		got := advise(&h, c.panes, c.verbs, now)
		fits := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			fits = fits && strings.Contains(got[i], c.want[i])
		}
		if !fits {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	if got := advise(nil, []paneHealth{well}, nil, now); got == nil || len(got) != 0 {
		t.Errorf("without the store: %q", got)
	}
}

// TestTally: calls are counted by what became of them, by many at once; there is
// room for the errors that are declared, and one place for all others.
func TestTally(t *testing.T) {
	all := newTallies()
	rows := all["pane.capture_rows"]
	places := len(rows.failures)
	evicted := &wire.Error{Code: "not_found.rows", Data: map[string]string{"reason": "evicted"}}
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for j := range 100 {
				rows.failed(evicted)
				rows.failed(&wire.Error{Code: "not_found.rows", Data: json.RawMessage(`{"reason":"future"}`)})
				rows.failed(&wire.Error{Code: fmt.Sprintf("made.up%d", j)})
				rows.failed(&wire.Error{Code: "denied.read"})
				rows.answered(&capture.RowsResult{Done: j%4 != 0})
				rows.held(time.Duration(i*100+j) * 100 * time.Microsecond)
			}
		})
	}
	callers.Wait()
	rows.calls.Store(5)
	s := &Server{tallies: all}
	got := s.verbsHealth()
	if len(got) != 1 || len(rows.failures) != places || len(all) != len(manifest.Verbs) {
		t.Fatalf("%d verbs called, %d kinds of errors, %d before; %+v", len(got), len(rows.failures), places, got)
	}
	want := []failureCount{
		{failure{"denied.read", ""}, 800}, {failure{"not_found.rows", "evicted"}, 800},
		{failure{"not_found.rows", "future"}, 800}, {failure{"other", ""}, 800},
	}
	if h := got[0]; h.Unfinished != 200 || h.LongestMS != 79.9 || !h.Warn || !slices.Equal(h.Errors, want) {
		t.Errorf("%+v", h)
	}
}

// TestUnfinished: results that come in pages say so in several ways.
func TestUnfinished(t *testing.T) {
	for _, c := range []struct {
		result any
		want   bool
	}{
		{&capture.RowsResult{Done: false}, true}, {&capture.RowsResult{Done: true}, false},
		{&capture.SinceResult{More: true}, true}, {&capture.SinceResult{}, false},
		{&capture.SearchResult{More: true}, true}, {&capture.CommandsResult{More: true}, true},
		{list{more: true}, true}, {list{}, false}, {doctorResult{More: true}, true}, {eventsResult{More: true}, true},
		{map[string]string{"More": "x"}, false}, {paneInfo{}, false}, {nil, false}, {(*capture.RowsResult)(nil), false}, {json.RawMessage("1"), false},
	} {
		if got := unfinished(c.result); got != c.want {
			t.Errorf("%T %+v: unfinished %v", c.result, c.result, got)
		}
	}
}

// TestDoctorFrame: in the smallest frame doctor shows what fits, and says so.
func TestDoctorFrame(t *testing.T) {
	d := startSubject(t)
	var made struct{ Session string }
	for range 40 {
		d.must("session.create", nil, &made)
		d.must("window.create", map[string]any{"session": made.Session, "argv": []string{"true"}}, nil)
	}
	for i := range manifest.Verbs { // an error or two of each
		if v := &manifest.Verbs[i]; !v.Binary && !v.Streams {
			d.clients[0].Call(t.Context(), v.Name, map[string]any{"x": 1})
			d.clients[1].Call(t.Context(), v.Name, map[string]any{"x": 1})
		}
	}
	raw, err := d.clients[2].Call(t.Context(), "doctor", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Verbs, Panes []any
		More         bool
	}
	if err := json.Unmarshal(raw, &got); err != nil || !got.More || len(got.Verbs) == 0 {
		t.Errorf("%d verbs, %d panes, more %v: %v", len(got.Verbs), len(got.Panes), got.More, err)
	}
	d.must("doctor", nil, &got)
	if got.More = false; len(got.Panes) != 40 {
		t.Errorf("%d panes", len(got.Panes))
	}
}
