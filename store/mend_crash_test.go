package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// spoil overwrites n bytes of a file with others.
func spoil(t *testing.T, fsys *vfs.MemFS, name string, at, n int) {
	t.Helper()
	data, err := fsys.UnsafeGetFileDataBuffer(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := at; i < min(at+n, len(data)); i++ {
		data[i] ^= byte(1 + i%255)
	}
}

// cloned is a copy of the rig's store; crashable says that images of crashes can be
// taken of it.
func (r *tableRig) cloned(crashable bool) *vfs.MemFS {
	r.t.Helper()
	out := vfs.NewMem()
	if crashable {
		out = vfs.NewCrashableMem()
	}
	if ok, err := vfs.Clone(r.mem, out, "s", "s", vfs.CloneSync); err != nil || !ok {
		r.t.Fatal(ok, err)
	}
	for _, dir := range []string{"", "s", "s/db"} {
		if err := syncDir(out, dir); err != nil {
			r.t.Fatal(err)
		}
	}
	return out
}

// A sector that is nothing but noise, or two of them, cost what lies in their blocks;
// one in a block and one in the index cost what lies behind.
func TestDamagedSectors(t *testing.T) {
	r := newTableRig(t)
	rng := rand.New(rand.NewPCG(2, 2))
	sizes := tables(t, r.mem)
	for _, name := range someTables(sizes) {
		blocks := r.blocks(name)
		for i, b := range blocks {
			at := b[0] + rng.IntN(b[1]-b[0])
			end := b
			for j := i; j < len(blocks) && blocks[j][0] < at+512; j++ {
				end = blocks[j]
			}
			if at+512 > end[1] {
				continue // it reaches into the index
			}
			img := r.cloned(false)
			spoil(t, img, name, at, 512)
			r.lives(img, fmt.Sprintf("%s, block %d of %d", name, i, len(blocks)), r.in(name, b[0], end[1]))

			img = r.cloned(false)
			spoil(t, img, name, at, 512)
			spoil(t, img, name, sizes[name]-100, 100)
			r.lives(img, fmt.Sprintf("%s, block %d of %d and the end", name, i, len(blocks)), r.in(name, b[0], sizes[name]))
		}
		img := r.cloned(false)
		spoil(t, img, name, blocks[len(blocks)-1][1], sizes[name])
		r.lives(img, name+", all but the blocks", make([]map[uint64]bool, len(r.models)))
		img = r.cloned(false)
		spoil(t, img, name, 0, sizes[name])
		r.lives(img, name+", all of it", r.in(name, 0, sizes[name]))
		if t.Failed() {
			return
		}
	}
}

// A crash at any moment of the mending leaves a store that is mended when it is opened
// the next time, as if there had been none.
func TestCrashWhileMending(t *testing.T) {
	r := newTableRig(t)
	sizes := tables(t, r.mem)
	images := 0
	for _, name := range someTables(sizes) {
		b := r.blocks(name)[0]
		lost := r.in(name, b[0], b[1])
		for n := 0; ; n++ {
			img := r.crashMending(name, b[0]+10, n)
			if img == nil {
				break
			}
			images++
			r.lives(img, fmt.Sprintf("%s, image %d", name, n), lost)
			if t.Failed() || raceEnabled && images == 20 {
				return
			}
		}
	}
	if images < 20 && !raceEnabled {
		t.Errorf("only %d images", images)
	}
}

// crashMending damages a byte of a table, opens the store, and crashes at change
// number n of the disk from the first change of a table that is being mended on; nil if
// there are not so many until the store is open.
func (r *tableRig) crashMending(name string, at, n int) (img *vfs.MemFS) {
	r.t.Helper()
	mem := r.cloned(true)
	spoil(r.t, mem, name, at, 1)
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	var mu sync.Mutex // Pebble works on the disk with several goroutines
	begun := false
	look := func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileClose, errorfs.OpRename, errorfs.OpRemove:
		default:
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		begun = begun || strings.HasSuffix(op.Path, tableTemp) && op.Kind != errorfs.OpRemove
		if !begun || img != nil {
			return nil
		}
		if n--; n < 0 {
			img = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100 * rng.IntN(3) / 2, RNG: rng})
		}
		return nil
	}
	o := r.o
	o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(look))
	for range 2 { // in the first life it may only be met
		s := mustOpen(r.t, "s", o)
		mu.Lock()
		if begun {
			n = math.MaxInt
		}
		mu.Unlock()
		for _, m := range r.models {
			if l, err := s.Log(m.pane); err == nil {
				r.read(l, m, name)
			}
		}
		mustClose(r.t, s)
	}
	return img
}

// A device that refuses to read says nothing of what is there: a log cannot be opened
// then, nothing is changed, and later it is as it was.
func TestRefusedReads(t *testing.T) {
	r := newTableRig(t)
	faults, met := NewFaults(r.cloned(false)), 0
	o := r.o
	o.FS = faults.FS()
	for _, op := range []FaultOp{FaultRead, FaultOpen} {
		for skip := range 6 {
			for _, m := range r.models {
				s := mustOpen(t, "s", o)
				forgetTables(t, s)
				faults.Add(Fault{Op: op, Path: "*.sst", Err: syscall.EIO, Skip: skip, Count: 1})
				l, err := s.Log(m.pane)
				if faults.Failed() > 0 {
					met++
					if !errors.Is(err, syscall.EIO) || errors.As(err, new(*DamagedError)) {
						t.Errorf("op %d, skip %d: %v", op, skip, err)
					}
				}
				faults.Clear()
				if err != nil {
					l, err = s.Log(m.pane)
				}
				if err == nil {
					err = m.verify(l, m.end.Offset, true)
				}
				if err != nil || l.NeedsFull() {
					t.Errorf("op %d, skip %d: %v", op, skip, err)
				}
				mustClose(t, s)
			}
		}
	}
	if met < 12 {
		t.Errorf("met %d times", met)
	}
}

// Without space for another table, a damaged one stays as it is until there is some.
func TestMendOnFullDisk(t *testing.T) {
	r := newTableRig(t)
	sizes, refused := tables(t, r.mem), 0
	none := make(map[uint64]bool)
	for _, name := range someTables(sizes) {
		b := r.blocks(name)[0]
		mem := r.cloned(false)
		spoil(t, mem, name, b[0]+10, 1)
		faults := NewFaults(mem)
		faults.Add(Fault{Op: FaultFull, Path: tableTemp})
		o := r.o
		o.FS = faults.FS()
		for range 2 {
			s := mustOpen(t, "s", o)
			for strict := range 2 { // all is there, if nothing that is there was damaged
				for _, m := range r.models {
					l, err := s.Log(m.pane)
					if err != nil && (strict > 0 || !errors.As(err, new(*DamagedError))) {
						t.Error(err)
					}
					if err == nil {
						r.check(l, m, none, name, strict > 0)
					}
				}
				if s.Stats().Damaged > 0 {
					break
				}
			}
			mustClose(t, s)
		}
		refused += faults.Failed()
		r.lives(mem, name, r.in(name, b[0], b[1]))
	}
	if refused == 0 {
		t.Error("nobody wanted to mend anything")
	}
}

// How far a log reached is known also if it was cut off by a crash, and nobody has
// opened it since: no offset comes again if its end is lost then.
func TestReachedBeforeCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := Options{FS: mem, Level: -1, Pace: -1, Logger: quiet, Ballast: -1}
	s := mustOpen(t, "s", o)
	l, err := s.Create(4)
	if err != nil {
		t.Fatal(err)
	}
	rng, m := rand.New(rand.NewPCG(1, 2)), &model{pane: 4}
	m.grow(l, rng)
	mustSync(t, l)
	img := mem.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, s)
	o.FS = img
	mustClose(t, mustOpen(t, "s", o)) // which makes a table of it

	last, hit := m.frames[len(m.frames)-1].Data, false
	for name := range tables(t, img) {
		data, err := img.UnsafeGetFileDataBuffer(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(data, last); i >= 0 {
			data[i] ^= 1
			hit = true
		}
	}
	if !hit {
		t.Fatal("the last frame is in no table")
	}
	s = mustOpen(t, "s", o)
	defer mustClose(t, s)
	if l, err = s.Log(4); err != nil || l.End() != m.end || !l.NeedsFull() {
		t.Errorf("%v, end %v, want %v", err, l.End(), m.end)
	}
}

// A log that is empty stays so beside one that is not.
func TestEmptyLogStaysEmpty(t *testing.T) {
	o := Options{FS: MemFS(), Logger: quiet, Ballast: -1}
	s := mustOpen(t, "s", o)
	for pane := uint64(1); pane < 4; pane++ {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		if pane != 2 {
			(&model{pane: pane}).grow(l, rngFor(pane))
			mustSync(t, l)
		}
	}
	mustClose(t, s)
	mustClose(t, mustOpen(t, "s", o))
	s = mustOpen(t, "s", o)
	defer mustClose(t, s)
	if l, err := s.Log(2); err != nil || l.End() != (Pos{}) || l.Oldest() != 0 {
		t.Errorf("%v, end %v", err, l.End())
	}
}
