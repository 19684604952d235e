package daemon

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// longHold is how long a read may hold up the loop of a pane before doctor warns
// (seed 000, section 6).
const longHold = 50 * time.Millisecond

// tally counts the calls of one verb, since the daemon started. All that it can
// count is there from the start: a client adds nothing to it but numbers, and who
// counts waits for nobody.
type tally struct {
	calls      atomic.Uint64
	unfinished atomic.Uint64 // results that say that there is more
	longest    atomic.Int64  // time that a call held up the loop of a pane, in ns
	failures   map[failure]*atomic.Uint64
}

// failure is a kind of error.
type failure struct {
	Code   string `json:"code"`
	Reason string `json:"reason,omitempty"`
}

// otherFailure stands for the errors that neither the verb declares nor
// manifest.Common has.
var otherFailure = failure{Code: "other"}

// reasons are the errors that are counted by reason.
var reasons = map[string][]string{"not_found.rows": {"evicted", "future"}}

// newTallies makes one for each verb.
func newTallies() map[string]*tally {
	all := make(map[string]*tally)
	for i := range manifest.Verbs {
		v := &manifest.Verbs[i]
		t := &tally{failures: map[failure]*atomic.Uint64{otherFailure: {}}}
		for _, f := range slices.Concat(manifest.Common, v.Failures) {
			t.failures[failure{Code: f.Code}] = &atomic.Uint64{}
			for _, reason := range reasons[f.Code] {
				t.failures[failure{f.Code, reason}] = &atomic.Uint64{}
			}
		}
		all[v.Name] = t
	}
	return all
}

// failed counts an error that a call was answered with.
func (t *tally) failed(e *wire.Error) {
	f := failure{Code: e.Code}
	if reasons[e.Code] != nil {
		f.Reason = reasonOf(e)
	}
	n := t.failures[f]
	if n == nil {
		n = t.failures[otherFailure]
	}
	n.Add(1)
}

// reasonOf is the reason in the data of an error.
func reasonOf(e *wire.Error) string {
	var data struct {
		Reason string `json:"reason"`
	}
	raw, err := json.Marshal(e.Data)
	if err == nil {
		err = json.Unmarshal(raw, &data)
	}
	if err != nil {
		return ""
	}
	return data.Reason
}

// held notes how long a call held up the loop of a pane.
func (t *tally) held(d time.Duration) {
	for {
		longest := t.longest.Load()
		if int64(d) <= longest || t.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// answered counts a result.
func (t *tally) answered(result any) {
	if unfinished(result) {
		t.unfinished.Add(1)
	}
}

// unfinished says whether a result says that there is more, as those do that come in
// pages: by a field More or Done.
func unfinished(result any) bool {
	if l, ok := result.(list); ok {
		return l.more
	}
	v := reflect.Indirect(reflect.ValueOf(result))
	if v.Kind() != reflect.Struct {
		return false
	}
	if more := v.FieldByName("More"); more.Kind() == reflect.Bool {
		return more.Bool()
	}
	done := v.FieldByName("Done")
	return done.Kind() == reflect.Bool && !done.Bool()
}

// verbHealth is one verb's part of doctor.
type verbHealth struct {
	Verb       string         `json:"verb"`
	Calls      uint64         `json:"calls"`
	Unfinished uint64         `json:"unfinished"`
	LongestMS  float64        `json:"longest_hold_ms"`
	Warn       bool           `json:"warn,omitempty"`
	Errors     []failureCount `json:"errors"`
}

// failureCount is how often a verb failed so.
type failureCount struct {
	failure
	Count uint64 `json:"count"`
}

// verbsHealth says how the verbs were used that were called, in the manifest's
// order.
func (s *Server) verbsHealth() (all []verbHealth) {
	for i := range manifest.Verbs {
		name := manifest.Verbs[i].Name
		t := s.tallies[name]
		if t.calls.Load() == 0 {
			continue
		}
		longest := time.Duration(t.longest.Load())
		h := verbHealth{
			Verb: name, Calls: t.calls.Load(), Unfinished: t.unfinished.Load(),
			LongestMS: float64(longest.Microseconds()) / 1000, Warn: longest > longHold, Errors: []failureCount{},
		}
		for f, n := range t.failures {
			if count := n.Load(); count > 0 {
				h.Errors = append(h.Errors, failureCount{f, count})
			}
		}
		slices.SortFunc(h.Errors, func(a, b failureCount) int {
			return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Reason, b.Reason))
		})
		all = append(all, h)
	}
	return all
}
