package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A small tail and the full checkpoint of the next span in one batch, as at
// stop: nothing is left unmerged, and nothing is said about it.
func TestTailAndFullInOneBatch(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 1, 3} {
		var said bytes.Buffer
		s := mustOpen(t, "s", Options{FS: vfs.NewMem(), Logger: slog.New(slog.NewTextHandler(&said, nil)), Pace: 100 * time.Millisecond})
		l, err := s.Create(1)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{pane: 1}
		m.checkpoint(l, []byte("first"), true)
		for range before { // tails that are in the database
			m.output(l, []byte("quiet\n"))
			mustSync(t, l)
		}
		mustSync(t, l)
		// Now the next commit is some time off, and takes both.
		commits := s.Stats().Commits
		m.output(l, []byte("tail\n"))
		m.checkpoint(l, []byte("second"), true)
		mustSync(t, l)
		if n := s.Stats().Commits - commits; n != 1 {
			t.Fatalf("%d commits", n)
		}
		m.output(l, []byte("more\n"))
		mustSync(t, l)
		if err := m.verify(l, m.end.Offset, true); err != nil {
			t.Error(err)
		}
		mustClose(t, s)
		s.reports.Wait()
		if strings.Contains(said.String(), "level=WARN") {
			t.Errorf("%d tails before: it says:\n%s", before, said.String())
		}
	}
}
