package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableRig is a store of three panes in tables of several levels, some of which are
// parts of a file, closed in good order. Records are stored as they are, and each frame
// is one, of bytes that nothing else is like: so the test can tell where in a file each
// of them lies.
type tableRig struct {
	t      *testing.T
	mem    *vfs.MemFS
	o      Options
	models []*model
}

func newTableRig(t *testing.T) *tableRig {
	t.Helper()
	r := &tableRig{t: t}
	levels, parts := 0, 0
	for range 50 { // Pebble may compact all of it into one level meanwhile
		if levels, parts = r.make(); levels >= 2 && parts > 0 {
			return r
		}
	}
	t.Fatalf("tables in %d levels, %d of them parts of a file", levels, parts)
	return nil
}

// make makes the store anew, and says in how many levels it has tables, and how many of
// these are a part of a file.
func (r *tableRig) make() (levels, parts int) {
	r.t.Helper()
	r.mem, r.models = vfs.NewMem(), nil
	r.o = Options{
		FS: r.mem, MemTable: 128 << 10, SegmentBytes: 4 << 10, Level: -1,
		EvictPace: time.Hour, Pace: -1, Logger: quiet, Ballast: -1,
	}
	rng := rand.New(rand.NewPCG(5, 5))
	s := mustOpen(r.t, "s", r.o)
	defer mustClose(r.t, s)
	logs := make([]*Log, 3)
	for i := range logs {
		var err error
		if logs[i], err = s.Create(uint64(i)); err != nil {
			r.t.Fatal(err)
		}
		r.models = append(r.models, &model{pane: uint64(i)})
	}
	for round := range 7 {
		for i, l := range logs {
			if i == 2 {
				r.models[i].growSmall(l, rng)
			} else {
				r.models[i].grow(l, rng)
			}
			mustSync(r.t, l)
		}
		lo, _ := paneBounds(0)
		_, hi := paneBounds(2)
		if round < 4 {
			if err := s.db.Compact(r.t.Context(), lo, hi, false); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	m := r.models[1] // which loses its first two spans
	m.oldest = m.cps[8].Pos
	if err := s.evictBefore(logs[1], m.oldest); err != nil || !m.cps[8].Full {
		r.t.Fatal(err)
	}
	all, err := s.db.SSTables()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, tables := range all {
		levels += min(len(tables), 1)
		for _, table := range tables {
			if table.Virtual {
				parts++
			}
		}
	}
	return levels, parts
}

// grow appends a span of frames, the last of them small.
func (m *model) grow(l *Log, rng *rand.Rand) {
	m.checkpoint(l, noise(rng, 3000), true)
	for range 6 {
		m.output(l, noise(rng, 4100+rng.IntN(5000)))
	}
	for range 3 {
		m.checkpoint(l, noise(rng, 300), false)
		m.output(l, noise(rng, 200))
	}
}

// growSmall appends spans of which many lie in one block.
func (m *model) growSmall(l *Log, rng *rand.Rand) {
	for range 10 {
		m.checkpoint(l, noise(rng, 100), true)
		m.output(l, noise(rng, 300))
		m.output(l, noise(rng, 4100))
	}
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func (r *tableRig) bytes(name string) []byte {
	r.t.Helper()
	data, err := r.mem.UnsafeGetFileDataBuffer(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return bytes.Clone(data)
}

// blocks are the bounds of a table's blocks of records, as Pebble tells them.
func (r *tableRig) blocks(name string) (bounds [][2]int) {
	r.t.Helper()
	o := (&Store{opts: r.o}).pebbleOptions(true)
	o.EnsureDefaults()
	reader, err := sstable.NewMemReader(r.bytes(name), o.MakeReaderOptions())
	if err != nil {
		r.t.Fatal(err)
	}
	defer reader.Close()
	l, err := reader.Layout()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, b := range l.Data {
		bounds = append(bounds, [2]int{int(b.Offset), int(b.Offset+b.Length) + blockTrailer})
	}
	return bounds
}

// in are the frames of each pane that lie in a part of a file, by what they hold.
func (r *tableRig) in(name string, from, to int) (frames []map[uint64]bool) {
	r.t.Helper()
	data := r.bytes(name)[from:to]
	for _, m := range r.models {
		in := make(map[uint64]bool)
		for _, f := range m.frames {
			in[f.Seq] = bytes.Contains(data, f.Data)
		}
		frames = append(frames, in)
	}
	return frames
}

// lives opens a damaged store three times: in the first life it meets the damage, and
// tells nothing but the truth, if not all of it. Behind that, all is there that is not
// in lost, and each piece that is missing is reported at its place.
func (r *tableRig) lives(fsys *vfs.MemFS, what string, lost []map[uint64]bool) {
	r.t.Helper()
	o := r.o
	o.FS = fsys
	models := make([]*model, len(r.models))
	for i, m := range r.models {
		c := *m
		c.frames = append([]Frame(nil), m.frames...)
		models[i] = &c
	}
	for life := range 3 {
		s := mustOpen(r.t, "s", o)
		if n := s.Stats().Damaged; life == 1 && n > 0 {
			r.t.Errorf("%s: %d tables are still damaged", what, n)
		}
		for i, m := range models {
			l, err := s.Log(m.pane)
			if err != nil && (life > 0 || !errors.As(err, new(*DamagedError))) {
				r.t.Errorf("%s, life %d: pane %d: %v", what, life, m.pane, err)
			}
			if err != nil {
				continue
			}
			r.check(l, m, lost[i], fmt.Sprintf("%s, life %d", what, life), life > 0)
			count := 0
			for cp, err := range l.Checkpoints(Pos{}) { // so that all blocks are read
				if count++; count > 2*len(m.cps) {
					r.t.Errorf("%s, life %d: pane %d: no end of checkpoints: %v %v", what, life, m.pane, cp.Pos, err)
					break
				}
				if err == nil && !slices.ContainsFunc(m.cps, func(c Checkpoint) bool { return c.Pos == cp.Pos && bytes.Equal(c.Blob, cp.Blob) }) {
					r.t.Errorf("%s, life %d: pane %d: the checkpoint at %v was never written", what, life, m.pane, cp.Pos)
				}
			}
			if life > 0 || i == 1 { // one goes on before it is mended
				r.extend(l, m)
			}
		}
		if n := s.Stats().Damaged; life > 0 && n > 0 {
			r.t.Errorf("%s, life %d: %d tables are damaged", what, life, n)
		}
		mustClose(r.t, s)
	}
}

// check reads a log over its damage and compares it with what was written. strict says
// that what is not lost must be there.
func (r *tableRig) check(l *Log, m *model, lost map[uint64]bool, what string, strict bool) {
	r.t.Helper()
	if l.End().Before(m.end) {
		r.t.Fatalf("%s: pane %d: offsets from %v on would come again, up to %v", what, m.pane, l.End(), m.end)
	}
	got, damage := r.read(l, m, what)
	before := true
	for _, f := range m.frames {
		if f.Seq < m.oldest.Seq {
			continue // evicted
		}
		if strict && !got[f.Seq] && !lost[f.Seq] {
			r.t.Errorf("%s: pane %d: the good frame %d at %d is not there", what, m.pane, f.Seq, f.Offset)
		}
		if (strict || f.Offset >= l.Oldest()) && !got[f.Seq] && before && !damage[f.Offset] {
			r.t.Errorf("%s: pane %d: what is missing at %d is not reported", what, m.pane, f.Offset)
		}
		before = got[f.Seq] || !strict && f.Offset < l.Oldest()
	}
}

// read reads a log over its damage. It returns the frames that it got, and where
// damage was reported.
func (r *tableRig) read(l *Log, m *model, what string) (got, damage map[uint64]bool) {
	r.t.Helper()
	got, damage = make(map[uint64]bool), make(map[uint64]bool)
	rd, err := l.ReadOffset(l.Oldest())
	if errors.As(err, new(*DamagedError)) {
		rd, err = l.Read(Pos{l.Oldest(), l.beginning().Seq})
	}
	if err != nil {
		r.t.Fatalf("%s: pane %d: %v", what, m.pane, err)
	}
	defer rd.Close()
	for len(damage) < 100 {
		at := rd.At()
		f, err := rd.Next()
		var d *DamagedError
		switch {
		case errors.Is(err, io.EOF):
			return got, damage
		case errors.As(err, &d):
			if d.Pane != m.pane || d.Offset > at.Offset {
				r.t.Errorf("%s: damage of pane %d at %d is reported as %v", what, m.pane, at.Offset, d)
			}
			damage[at.Offset] = true
		case err != nil:
			r.t.Fatalf("%s: %v", what, err)
		case f.Seq >= uint64(len(m.frames)) || !sameFrame(f, m.frames[f.Seq]):
			r.t.Fatalf("%s: pane %d: frame %d at %d differs", what, m.pane, f.Seq, f.Offset)
		default:
			got[f.Seq] = true
		}
	}
	r.t.Fatalf("%s: no end of damage", what)
	return nil, nil
}

// extend appends to a log, as far as offsets go on where they should.
func (r *tableRig) extend(l *Log, m *model) {
	r.t.Helper()
	for m.end.Before(l.End()) { // what was passed over
		if l.End().Seq-m.end.Seq > 1 {
			return
		}
		m.frames = append(m.frames, Frame{Pos: m.end, Kind: Gap})
		m.end = l.End()
	}
	m.checkpoint(l, []byte("on"), true)
	m.output(l, noise(rand.New(rand.NewPCG(m.end.Offset, 1)), 1000))
	mustSync(r.t, l)
}

// A damaged bit in a table costs the records in its block, whoever's they are and
// whatever lies under them or above, and says so; in what all else is found by, it
// costs nothing. The log goes on, and no offset comes again.
func TestDamagedAnywhere(t *testing.T) {
	r := newTableRig(t)
	rng := rand.New(rand.NewPCG(9, 9))
	none := make([]map[uint64]bool, len(r.models))
	sizes := tables(t, r.mem)
	for _, name := range someTables(sizes) {
		size, blocks := sizes[name], r.blocks(name)
		for i, b := range blocks {
			for range 2 {
				at := b[0] + rng.IntN(b[1]-b[0])
				what := fmt.Sprintf("%s, block %d of %d, byte %d", name, i, len(blocks), at)
				r.lives(flipped(t, r.mem, name, at), what, r.in(name, b[0], b[1]))
			}
		}
		for range 6 {
			end := blocks[len(blocks)-1][1]
			at := end + rng.IntN(size-end)
			r.lives(flipped(t, r.mem, name, at), fmt.Sprintf("%s, byte %d of %d", name, at, size), none)
		}
		if t.Failed() {
			return
		}
	}
}

// someTables are the names of the tables; under the race detector, which makes them slow,
// one of them.
func someTables(sizes map[string]int) []string {
	names := sortedKeys(sizes)
	if raceEnabled {
		names = names[:1]
	}
	return names
}
