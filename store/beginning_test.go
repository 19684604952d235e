package store

import (
	"errors"
	"io"
	"sync"
	"testing"
)

// A reader that asks for the beginning of a log at the moment in which that
// becomes durable gets it: from memory before, from disk after, and never what
// comes behind it.
func TestReadBeginning(t *testing.T) {
	s := mustOpen(t, "s", Options{FS: MemFS(), Pace: -1})
	defer mustClose(t, s)
	for pane := range uint64(300) {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		l.AppendCheckpoint([]byte("start"), true)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range uint64(40) {
				l.Append(Output, Time{}, numbered(1, i))
			}
		})
		for seen := 0; seen < 20; {
			r, err := l.ReadOffset(0)
			if err != nil {
				t.Fatal(err)
			}
			f, err := r.Next()
			r.Close()
			switch {
			case errors.Is(err, io.EOF):
			case err != nil || f.Seq != 0:
				t.Fatalf("pane %d begins at %v: %v", pane, f.Pos, err)
			default:
				seen++
			}
		}
		wg.Wait()
	}
}
