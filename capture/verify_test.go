package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

const (
	verifyFrames = 48
	verifyFrame  = 32 << 10 // bytes of a frame
	verifySpan   = 16       // frames of a span; in its middle stands another checkpoint
)

func openVerified(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(dir, store.Options{Logger: slog.New(slog.DiscardHandler), Ballast: -1, SegmentBytes: 64 << 10})
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return nil // of what all logs need
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// recordVerified records pane 7 in dir: coloured lines that do not compress. spoil may
// change the state that becomes checkpoint number i.
func recordVerified(t *testing.T, dir string, spoil func(i int, s *checkpoint.State)) {
	t.Helper()
	st := openVerified(t, dir)
	log, err := st.Create(7)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 3))
	term := replay.New(80, 24, 20000)
	row, n := uint64(0), 0
	put := func(s *checkpoint.State, full bool) {
		if spoil != nil {
			spoil(n, s)
		}
		n++
		log.AppendCheckpoint(checkpoint.Encode(nil, s), full)
		row = term.Bounds().Active
	}
	for i := range verifyFrames {
		switch i % verifySpan {
		case 0:
			put(term.State(), true)
		case verifySpan / 2:
			put(term.StateSince(row), false)
		}
		frame := make([]byte, 0, verifyFrame+80)
		for len(frame) < verifyFrame {
			frame = fmt.Appendf(frame, "%016x\x1b[3%dm%016x\x1b[m%016x\r\n", r.Uint64(), r.IntN(8), r.Uint64(), r.Uint64())
		}
		frame = append(frame[:verifyFrame-2], "\r\n"...)
		log.Append(store.Output, store.Time{}, frame)
		term.Feed(frame)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// verifyDir verifies the recording in dir and returns what was found; no result if
// the store or the log cannot be opened.
func verifyDir(t *testing.T, dir string) (*VerifyResult, []VerifyItem) {
	t.Helper()
	st := openVerified(t, dir)
	if st == nil {
		return nil, nil
	}
	defer st.Close()
	log, err := st.Log(7)
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return nil, nil // in front of or behind all
	}
	if err != nil {
		t.Fatal(err)
	}
	var found []VerifyItem
	done := uint64(0)
	result, err := Verify(t.Context(), log, "p7", func(item VerifyItem) error {
		if item.Kind == VerifyProgress {
			done = item.Offset
		} else {
			found = append(found, item)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if done != result.Offset {
		t.Errorf("the last progress is %d of %d", done, result.Offset)
	}
	return result, found
}

func TestVerifySound(t *testing.T) {
	dir := t.TempDir()
	recordVerified(t, dir, nil)
	result, found := verifyDir(t, dir)
	want := VerifyResult{Pane: "p7", Offset: verifyFrames * verifyFrame, Frames: verifyFrames,
		Checkpoints: 2 * verifyFrames / verifySpan, Compared: 2*verifyFrames/verifySpan - 1, Sound: true}
	if *result != want || len(found) > 0 {
		t.Errorf("%+v, found %+v; want %+v", *result, found, want)
	}
}

// TestVerifyDrift: a checkpoint that is not what the log leads to is found, alone,
// and named by what is wrong with it.
func TestVerifyDrift(t *testing.T) {
	for _, c := range []struct {
		checkpoint int
		spoil      func(s *checkpoint.State)
		what       string
	}{
		{2, func(s *checkpoint.State) { s.Main.Rows[3].Text[0] ^= 1 }, "the screen"},
		{3, func(s *checkpoint.State) { s.Main.Rows[3].Text[0] ^= 1 }, "the screen"},
		{3, func(s *checkpoint.State) { s.History.Rows[5].Text[0] ^= 1 }, "the history"},
		{4, func(s *checkpoint.State) { s.History.Rows[9000].Text[0] ^= 1 }, "the history"},
		{5, func(s *checkpoint.State) { s.Cursor.Y-- }, "the cursor"},
		{1, func(s *checkpoint.State) { s.Names.Title = "x" }, "names"},
		{4, func(s *checkpoint.State) { s.Clock.Epoch++ }, "the place in the stream"},
	} {
		dir := t.TempDir()
		recordVerified(t, dir, func(i int, s *checkpoint.State) {
			if i == c.checkpoint {
				c.spoil(s)
			}
		})
		result, found := verifyDir(t, dir)
		at := uint64(c.checkpoint * verifySpan / 2 * verifyFrame)
		// What a checkpoint has wrong, the log behind it goes on with: as far as the
		// next checkpoint, which is told apart from it once more.
		if result.Sound || result.Drifts < 1 || result.Drifts > 2 || result.Damages > 0 || len(found) != result.Drifts {
			t.Fatalf("checkpoint %d, %s: %+v, found %+v", c.checkpoint, c.what, *result, found)
		}
		if found[0].Kind != VerifyDrift || found[0].Offset != at || !strings.Contains(found[0].What, c.what) {
			t.Errorf("checkpoint %d, %s: found %+v", c.checkpoint, c.what, found[0])
		}
	}
	dir := t.TempDir() // of another version: not compared
	recordVerified(t, dir, func(i int, s *checkpoint.State) {
		if i == 2 {
			s.Semantics, s.Cursor.Y = 0, 3
		}
	})
	if result, found := verifyDir(t, dir); result.Compared != 4 || result.Drifts > 1 || result.Drifts == 1 && found[0].Offset == 2*verifySpan/2*verifyFrame {
		t.Errorf("another version: %+v, found %+v", *result, found)
	}
}

// record is where a record begins in a table of a store.
type record struct {
	table string
	place int
	typ   byte // 'S' a segment, 'C' a checkpoint
	frame uint64
	bytes uint64 // of the stream
}

// records finds the records in the tables of a store by their headers.
func records(t *testing.T, dir string) (found []record) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+72 <= len(b); i++ {
			u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[i+at:]) }
			if b[i] != 'S' && b[i] != 'C' || b[i+1] != 1 || u64(16) != u64(8)*verifyFrame || u64(8) > verifyFrames {
				continue
			}
			r := record{table: table, place: i, typ: b[i], frame: u64(8)}
			if r.typ == 'S' {
				r.bytes = u64(56)
			}
			found = append(found, r)
		}
	}
	return found
}

// verifySpoiled verifies a copy of the recording in which one bit of a record is
// flipped.
func verifySpoiled(t *testing.T, dir string, r record) (*VerifyResult, []VerifyItem) {
	t.Helper()
	spoiled := filepath.Join(t.TempDir(), "s")
	if err := os.CopyFS(spoiled, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(spoiled, "db", filepath.Base(r.table))
	b, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	b[r.place+4] ^= 4 // in the header's checksum
	if err := os.WriteFile(table, b, 0o600); err != nil {
		t.Fatal(err)
	}
	result, found := verifyDir(t, spoiled)
	if err := os.RemoveAll(spoiled); err != nil {
		t.Fatal(err)
	}
	return result, found
}

// TestVerifyDamagedFiles flips bits in the tables of a store, one at a time, and
// the damage is found and costs what lies in the same block of the table (32 KiB
// and a record) at most: a segment its bytes and the screens up to the next
// checkpoint; a checkpoint that is not the first of its span nothing but time, and once
// the table is mended nothing tells that there was one.
func TestVerifyDamagedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and all of it in one goroutine")
	}
	dir := t.TempDir()
	recordVerified(t, dir, nil)
	const half = verifySpan / 2
	all, unopened := records(t, dir), 0
	for _, r := range all {
		result, found := verifySpoiled(t, dir, r)
		if result == nil && r.frame > half && r.frame < verifyFrames-2 {
			t.Errorf("%+v: the log cannot be opened", r)
		}
		if result == nil {
			unopened++
			continue
		}
		whole := result.Frames == verifyFrames && result.Checkpoints < 2*verifyFrames/verifySpan
		if result.Sound && whole && r.typ == 'C' && r.frame%verifySpan != 0 {
			continue
		}
		if result.Sound || len(found) == 0 || len(found) != result.Damages || result.Drifts > 0 {
			t.Errorf("%+v: %+v, found %+v", r, result, found)
			continue
		}
		at, last := r.frame*verifyFrame, r.frame >= verifyFrames-4
		hit := false
		for _, f := range found {
			hit = hit || f.Offset <= at && f.Offset+f.LostBytes >= at+r.bytes ||
				r.typ == 'C' && f.Offset <= at && f.Offset+half*verifyFrame >= at // its own place may be unreadable
			behind := (f.Offset+f.LostBytes)/verifyFrame + half - 1
			if next := behind / half * half * verifyFrame; !last && f.End > next && r.typ == 'S' {
				t.Errorf("%+v: found %+v", r, f)
			}
		}
		if lost := result.LostBytes; !hit || !last && (lost > 3*64<<10 || result.Frames*verifyFrame+lost != verifyFrames*verifyFrame) {
			t.Errorf("%+v: %+v, found %+v", r, result, found)
		}
	}
	t.Logf("%d records, of which %d are needed to open the log", len(all), unopened)
	if len(all) < 20 || unopened > 4 {
		t.Errorf("%d records, of which %d are needed to open the log", len(all), unopened)
	}
}
