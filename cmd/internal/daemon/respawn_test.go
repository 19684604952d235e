package daemon

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// TestSettle: a record that says what a pane was about to run is decided by the log:
// it runs that if the mark stands where it was to stand, and nothing else counts.
func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		behind []store.Kind // what the log has at the place
		less   int          // frames in front of the place that a crash cut off
		runs   string
	}{
		"before the mark":        {nil, 0, "old"},
		"before the log's end":   {nil, 2, "old"},
		"at the mark":            {[]store.Kind{replay.MarkRespawn}, 0, "new"},
		"after the program's":    {[]store.Kind{replay.MarkRespawn, store.Output, replay.MarkExit}, 0, "new"},
		"before, and recovered":  {[]store.Kind{replay.MarkRestart}, 0, "old"},
		"cut off, and recovered": {[]store.Kind{store.Output, store.Output, replay.MarkRespawn}, 2, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := store.MemFS()
			st, err := store.Open("s", store.Options{FS: fs, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			log, err := st.Create(0)
			if err != nil {
				t.Fatal(err)
			}
			log.AppendCheckpoint(checkpoint.Encode(nil, replay.New(80, 24, 0).State()), true)
			for range 5 - c.less {
				log.Append(store.Output, store.Time{}, []byte("four"))
			}
			for _, kind := range c.behind {
				log.Append(kind, store.Time{}, nil)
			}
			code, ended := 3, time.Unix(1, 0).UTC()
			record, err := json.Marshal(window{Pane: paneRecord{
				Argv: []string{"old"}, Cwd: "/old", Ended: &ended, Exit: &exit{Code: &code},
				Next: &program{Argv: []string{"new"}, Cwd: "/new", Started: time.Unix(2, 0).UTC(), Offset: 20, Seq: 5},
			}})
			if err == nil {
				err = st.Put(windowKey+"0", record)
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the decision is on disk
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				if st, err = store.Open("s", store.Options{FS: fs, Logger: slog.New(slog.DiscardHandler)}); err != nil {
					t.Fatal(err)
				}
				r, err := loadRegistry(st, newHub(time.Now()), func(err error) { t.Error(err) })
				if err != nil {
					t.Fatal(err)
				}
				w, ok := r.pane(0)
				p := w.Pane
				if !ok || p.Next != nil || p.Argv[0] != c.runs || p.Cwd != "/"+c.runs || (p.Exit == nil) != (c.runs == "new") || (p.Ended == nil) != (p.Exit == nil) {
					t.Errorf("the record: %+v", p)
				}
				raw, err := st.Get(windowKey + "0")
				var on window
				if err == nil {
					err = json.Unmarshal(raw, &on)
				}
				if err != nil || on.Pane.Next != nil || on.Pane.Argv[0] != c.runs {
					t.Errorf("on disk: %s, %v", raw, err)
				}
			}
			st.Close()
		})
	}
}
