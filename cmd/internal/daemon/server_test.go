package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStopIsBounded: a verb that never ends does not keep the daemon from stopping, and
// the log says so.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		s := &Server{registry: &registry{}, logger: slog.New(slog.NewTextHandler(&log, nil)), endLife: func() {}}
		if !s.begin() {
			t.Fatal("a verb is refused")
		}
		defer s.calls.Done() // the stop's wait ends with the test
		began := time.Now()
		s.stop()
		if took := time.Since(began); took != callsPatience {
			t.Errorf("it took %v", took)
		}
		if s.begin() {
			t.Error("a verb begins after the stop")
		}
		if said := log.String(); !strings.Contains(said, "what=verbs") || strings.Count(said, "\n") != 1 {
			t.Errorf("the log:\n%s", said)
		}
	})
}
