package daemon

import (
	"testing"
	"time"
)

// TestExpires: what counts is how long a pane has been here, not what times its
// recording says: those of an import are its file's.
func TestExpires(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for created, want := range map[time.Duration]bool{-time.Second: false, -time.Hour: false, -time.Hour - 1: true, -48 * time.Hour: true, time.Hour: false} {
		w := window{Created: now.Add(created), Pane: paneRecord{Started: time.Unix(1_600_000_000, 0), Imported: &imported{}}}
		if w.expires(now.Add(-time.Hour)) != want {
			t.Errorf("an import of %v ago expires: %v", -created, !want)
		}
	}
}
