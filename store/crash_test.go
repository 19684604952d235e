package store

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

var crashImages = flag.Int("crash.images", 2000, "images that TestCrashImages recovers")

// crashRig takes an image of a file system in memory at each sync, as a crash
// at that moment would leave it, along with what was durable then; of one whose
// syncs are put off also at each write, and with what was synced.
type crashRig struct {
	fs       *vfs.MemFS
	rng      *rand.Rand
	every    int
	deferred bool
	images   chan crashImage

	cloning sync.Mutex // held while an image is taken

	mu      sync.Mutex
	moments int
	logs    []*Log   // nil while the store is closed
	durable []uint64 // offsets, as last seen
	synced  []uint64
}

// rigFS has the WAL files that Pebble uses again watched, which errorfs does
// not, and keeps a clone from coming between the two read locks that
// MemFS.ReuseForWrite takes one inside the other, where it would wait for ever.
type rigFS struct {
	*errorfs.FS
	rig *crashRig
}

func (f rigFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.rig.cloning.Lock()
	defer f.rig.cloning.Unlock()
	file, err := f.rig.fs.ReuseForWrite(oldname, newname, c)
	if err != nil {
		return nil, err
	}
	return errorfs.WrapFile(file, errorfs.InjectorFunc(f.rig.inject)), nil
}

// crashImage is one image; floors are the offsets of the logs that it must have.
type crashImage struct {
	fs     *vfs.MemFS
	floors []uint64
	n      int
}

func (r *crashRig) inject(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpRemove, errorfs.OpRename:
	case errorfs.OpFileWrite:
		if !r.deferred {
			return nil
		}
	default:
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moments++
	if r.moments%r.every != 0 {
		return nil
	}
	// The offsets first: the image is at least as new.
	r.look()
	cfg, floors := vfs.CrashCloneCfg{RNG: r.rng}, r.durable
	if n := r.rng.IntN(4); n > 0 {
		cfg.UnsyncedDataPercent = 100 * n / 3
	}
	if r.deferred && cfg.UnsyncedDataPercent < 100 { // the machine, not only the process
		floors = r.synced
	}
	r.cloning.Lock()
	img := r.fs.CrashClone(cfg)
	r.cloning.Unlock()
	r.images <- crashImage{img, append([]uint64(nil), floors...), r.moments}
	return nil
}

// look notes what is durable and synced. r.mu is held.
func (r *crashRig) look() {
	for i, l := range r.logs {
		r.durable[i] = max(r.durable[i], l.Durable())
		r.synced[i] = max(r.synced[i], l.Synced())
	}
}

// The first of the three tiers of crash tests: an image at the syncs of a
// random workload recovers to an exact prefix, at least as long as durable
// said, with no checkpoint ahead of its log.
func TestCrashImages(t *testing.T) { testCrashImages(t, false) }

// With syncs put off, an image at the writes and syncs of a random workload in
// which any of the data that was not synced is missing recovers to an exact
// prefix, at least as long as what was synced; and what kill -9 leaves, which is
// all of the data, at least as long as what was durable.
func TestCrashImagesDeferred(t *testing.T) { testCrashImages(t, true) }

func testCrashImages(t *testing.T, deferred bool) {
	want := *crashImages
	if deferred {
		want /= 2
	}
	if testing.Short() || raceEnabled {
		want /= 20
	}
	done := 0
	for seed := uint64(1); done < want; seed++ {
		done += crashRun(t, seed, want-done, deferred)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d images", done)
}

// crashRun runs one workload and recovers up to limit images of it.
func crashRun(t *testing.T, seed uint64, limit int, deferred bool) int {
	rng := rand.New(rand.NewPCG(seed, 1))
	rig := &crashRig{
		fs: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(seed, 2)),
		every: 1, deferred: deferred, images: make(chan crashImage, 4),
	}
	o := Options{
		FS:           rigFS{errorfs.Wrap(rig.fs, errorfs.InjectorFunc(rig.inject)), rig},
		SegmentBytes: []int{256, 4 << 10, 64 << 10}[rng.IntN(3)],
		MemTable:     32 << 10, // so that it flushes and compacts
		Pace:         -1,
		Logger:       quiet,
		Retain:       uint64(20_000 + rng.IntN(200_000)),
		minRetain:    1,
		garbage:      1,
		EvictPace:    time.Hour, // when the workload says
	}
	if deferred {
		o.SyncEvery = time.Hour // when the workload says
		// A WAL of several blocks, and spans of which the next is not synced.
		o.MemTable = []int{32 << 10, 256 << 10}[rng.IntN(2)]
		o.Retain = uint64(1 + rng.IntN(30_000))
	}
	models := make([]*model, 3)
	rig.durable, rig.synced = make([]uint64, len(models)), make([]uint64, len(models))
	var mu sync.Mutex // the models; recovery looks at what was appended so far
	for i := range models {
		models[i] = &model{pane: uint64(i)}
	}

	var wg sync.WaitGroup
	n := 0
	var nMu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for img := range rig.images {
				nMu.Lock()
				skip := n >= limit || t.Failed()
				n++
				nMu.Unlock()
				if skip {
					continue
				}
				if err := recoverImage(img, models, &mu); err != nil {
					t.Errorf("image %d: %v", img.n, err)
				}
			}
		})
	}
	crashWorkload(t, rig, o, models, &mu, rng)
	close(rig.images)
	wg.Wait()
	return min(n, limit)
}

// crashWorkload appends at random to several panes, in two lives of the store.
func crashWorkload(t *testing.T, rig *crashRig, o Options, models []*model, mu *sync.Mutex, rng *rand.Rand) {
	for life := range 2 {
		s := mustOpen(t, "s", o)
		var logs []*Log
		for _, m := range models {
			l, err := s.Log(m.pane)
			if errors.Is(err, ErrNoLog) {
				l, err = s.Create(m.pane)
			}
			if err != nil {
				t.Fatal(err)
			}
			logs = append(logs, l)
		}
		rig.mu.Lock()
		rig.logs = logs
		rig.mu.Unlock()
		for range 120 {
			for range 1 + rng.IntN(10) {
				i := rng.IntN(len(models))
				mu.Lock()
				models[i].step(rng, logs[i], 2500)
				mu.Unlock()
			}
			switch rng.IntN(10) {
			case 2:
				if err := s.evict(); err != nil {
					t.Fatal(err)
				}
			case 3:
				if s.deferral == nil {
					continue
				}
				if err := s.deferral.sync(); err != nil {
					t.Fatal(err)
				}
			case 0:
				mustCommit(t, logs[rng.IntN(len(logs))])
			case 1:
				if err := s.Put(fmt.Sprint("key", rng.IntN(5)), words(rng, 100)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if life == 0 && rng.IntN(2) == 0 {
			for _, l := range logs {
				mustCommit(t, l)
			}
		}
		mustClose(t, s)
		rig.mu.Lock()
		for i, l := range logs {
			rig.durable[i], rig.synced[i] = l.End().Offset, l.End().Offset
		}
		rig.logs = nil
		rig.mu.Unlock()
	}
}

// oldestOf is where the log begins, which must be a full checkpoint of the
// model.
func oldestOf(l *Log, m *model) (Pos, error) {
	for cp, err := range l.Checkpoints(Pos{}) {
		if err != nil {
			return Pos{}, err
		}
		for _, want := range m.cps {
			if want.Pos == cp.Pos && want.Full && cp.Full && cp.Offset == l.Oldest() {
				return cp.Pos, nil
			}
		}
		return Pos{}, fmt.Errorf("pane %d: begins at %v, oldest %d", m.pane, cp.Pos, l.Oldest())
	}
	return Pos{}, nil
}

// recoverImage opens an image and compares it with the models.
func recoverImage(img crashImage, models []*model, mu *sync.Mutex) error {
	s, err := Open("s", Options{FS: img.fs, Logger: quiet, Ballast: -1, MemTable: 64 << 10})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	for i, m := range models {
		l, err := s.Log(m.pane)
		if errors.Is(err, ErrNoLog) && img.floors[i] == 0 {
			continue
		}
		if err != nil {
			return err
		}
		mu.Lock()
		snapshot := *m
		mu.Unlock()
		if snapshot.oldest, err = oldestOf(l, &snapshot); err != nil {
			return err
		}
		if err := snapshot.verify(l, img.floors[i], false); err != nil {
			return err
		}
		// And it goes on from there.
		if l.End().Seq > 0 && !l.NeedsFull() {
			end := l.Append(Output, Time{1, 1}, []byte("on"))
			r, err := l.Read(Pos{end.Offset - 2, end.Seq - 1})
			if err != nil {
				return err
			}
			if f, err := r.Next(); err != nil || string(f.Data) != "on" {
				return fmt.Errorf("appended after recovery: %v %v", f, err)
			}
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	return nil
}
