package replay_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"looptape/replay"
)

// A recordingPlace is a line of testdata/recordings.jsonl: what both
// references show behind the first At bytes of testdata/recordings/NAME.raw,
// which a real program wrote to a terminal of that size.
type recordingPlace struct {
	termCase
	At int `json:"at"`
}

func readRecordings(tb testing.TB) []recordingPlace {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "recordings.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	var places []recordingPlace
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var p recordingPlace
		if err := json.Unmarshal(sc.Bytes(), &p); err != nil {
			tb.Fatal(err)
		}
		places = append(places, p)
	}
	return places
}

func recording(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "recordings", name+".raw"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestRecordings replays recordings of real programs and compares with what
// the references show at several places; fed whole, in pieces, and with a
// checkpoint at each place.
func TestRecordings(t *testing.T) {
	for _, p := range readRecordings(t) {
		t.Run(fmt.Sprintf("%s@%d", p.Name, p.At), func(t *testing.T) {
			in := recording(t, p.Name)
			term := p.feed(in, whole)
			if d := p.diff(look(t, term)); d != "" {
				t.Fatalf("whole:\n%s", d)
			}
			for i := range uint64(3) {
				same(t, "in pieces", p.feed(in, randomCuts(seedOf(p.Name)+i)), term)
			}
			rest := reopened(t, term)
			rest.Feed(in[p.At:])
			term.Feed(in[p.At:])
			same(t, "a checkpoint and the rest", rest, term)
		})
	}
}

func (p *recordingPlace) feed(in []byte, cut cutter) *replay.Terminal {
	t := replay.New(p.Cols, p.Rows, scrollback)
	feed(t, in[:p.At], cut)
	return t
}

// TestRecordingsNamed: every recording has expectations, and the other way
// round.
func TestRecordingsNamed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "recordings", "*.raw"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range readRecordings(t) {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	for _, f := range files {
		if name := filepath.Base(f[:len(f)-len(".raw")]); !slices.Contains(names, name) {
			t.Errorf("%s has no line in recordings.jsonl", f)
		}
	}
	if len(files) != len(names) {
		t.Errorf("%d recordings, %d named in recordings.jsonl", len(files), len(names))
	}
}
