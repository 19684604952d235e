package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spanOf appends a span: a full checkpoint and n frames of size bytes.
func (m *model) spanOf(l *Log, n, size int) {
	m.checkpoint(l, fmt.Appendf(nil, "full at %d", m.end.Offset), true)
	for i := range n {
		m.output(l, words(rngFor(m.end.Seq+uint64(i)), size))
	}
}

// A log keeps at least what it was told, loses whole spans, always begins at a
// full checkpoint, and what is gone is told apart from what never was.
func TestRetain(t *testing.T) {
	mem := vfs.NewMem()
	o := Options{FS: mem, EvictPace: time.Hour, minRetain: 1, Retain: 50_000, MemTable: 256 << 10}
	s := mustOpen(t, "s", o)
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{pane: 1}
	for range 20 {
		m.spanOf(l, 10, 1000) // 10,000 bytes each
	}
	mustSync(t, l)
	if err := s.evict(); err != nil {
		t.Fatal(err)
	}
	if got := l.Oldest(); got != 150_000 {
		t.Fatalf("oldest %d", got)
	}
	m.oldest = Pos{150_000, 150}
	if _, err := l.Read(Pos{140_000, 140}); !errors.Is(err, ErrEvicted) {
		t.Error(err)
	}
	if _, err := l.ReadOffset(149_999); !errors.Is(err, ErrEvicted) {
		t.Error(err)
	}
	if _, err := l.Checkpoint(Pos{140_000, 140}); !errors.Is(err, ErrEvicted) {
		t.Error(err)
	}
	if cp, err := l.Checkpoint(m.oldest); err != nil || string(cp.Blob) != "full at 150000" {
		t.Error(cp, err)
	}
	check := func(l *Log) {
		t.Helper()
		var kept []Checkpoint
		for _, cp := range m.cps {
			if !cp.Pos.Before(m.oldest) {
				kept = append(kept, cp)
			}
		}
		m.cps = kept
		if err := m.verify(l, m.end.Offset, true); err != nil {
			t.Error(err)
		}
	}
	check(l)
	mustClose(t, s)
	s = mustOpen(t, "s", o)
	if l, err = s.Log(1); err != nil {
		t.Fatal(err)
	}
	check(l)
	l.SetRetain(20_000)
	if err := s.evict(); err != nil {
		t.Fatal(err)
	}
	if got := l.Oldest(); got != 180_000 {
		t.Errorf("oldest %d", got)
	}
	mustClose(t, s)
}

// Two spans may begin at one offset, with marks between them. Where the first goes,
// what stands in it is gone, though the log still begins at its offset.
func TestEvictWithinOffset(t *testing.T) {
	s := mustOpen(t, "s", Options{FS: vfs.NewMem(), EvictPace: time.Hour, minRetain: 1, Retain: 1})
	defer mustClose(t, s)
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	l.AppendCheckpoint([]byte("start"), true)
	l.Append(Output, Time{}, []byte("0123456789"))
	ended := l.AppendCheckpoint([]byte("ended"), true)
	l.Append(Kind(20), Time{}, []byte("before"))
	begun := l.AppendCheckpoint([]byte("begun"), true)
	l.Append(Kind(21), Time{}, []byte("behind"))
	l.Append(Output, Time{}, []byte("more"))
	l.AppendCheckpoint([]byte("last"), true)
	l.Append(Output, Time{}, []byte("and more"))
	mustSync(t, l)
	old, err := l.Read(ended)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.evictBefore(l, begun); err != nil {
		t.Fatal(err)
	}
	if l.Oldest() != 10 {
		t.Errorf("oldest %d", l.Oldest())
	}
	if f, err := old.Next(); !errors.Is(err, ErrEvicted) {
		t.Errorf("a reader in what is gone: %v, %v", f, err)
	}
	if _, err := l.Read(ended); !errors.Is(err, ErrEvicted) {
		t.Errorf("a new one: %v", err)
	}
	if cp, err := l.Checkpoint(ended); !errors.Is(err, ErrEvicted) {
		t.Errorf("its checkpoint: %v, %v", cp.Pos, err)
	}
	r, err := l.ReadOffset(10)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := r.Next(); err != nil || f.Kind != 21 || f.Pos != begun {
		t.Errorf("the first frame at the offset: %v of kind %d, %v", f.Pos, f.Kind, err)
	}
	for cp, err := range l.Checkpoints(Pos{}) {
		if err != nil || string(cp.Blob) != "begun" {
			t.Errorf("the first checkpoint: %q, %v", cp.Blob, err)
		}
		break
	}
}

// A busy pane among quiet ones: the store stays under its cap plus slack, and
// the quiet panes lose nothing.
func TestDiskCap(t *testing.T) {
	const memTable, diskCap = 256 << 10, 4 << 20
	s := mustOpen(t, "s", Options{
		FS: vfs.NewMem(), EvictPace: 10 * time.Millisecond, DiskCap: diskCap,
		MemTable: memTable, Level: -1, garbage: 1 << 20, Pace: -1,
	})
	defer mustClose(t, s)
	logs := make([]*Log, 4)
	models := make([]*model, 4)
	for i := range logs {
		var err error
		if logs[i], err = s.Create(uint64(i)); err != nil {
			t.Fatal(err)
		}
		models[i] = &model{pane: uint64(i)}
		models[i].checkpoint(logs[i], []byte("start"), true)
	}
	data := words(rngFor(1), 64<<10)
	peak := uint64(0)
	rounds := 600 // 38 MB
	if testing.Short() || raceEnabled {
		rounds = 200
	}
	for i := range rounds {
		for logs[0].Room() <= 0 {
			<-logs[0].RoomC()
		}
		if i%8 == 0 {
			logs[0].AppendCheckpoint([]byte("full"), true)
		}
		logs[0].Append(Output, Time{}, data)
		for j := 1; j < 4; j++ {
			models[j].output(logs[j], numbered(uint64(j), uint64(i)))
		}
		mustSync(t, logs[0])
		if i%20 == 0 {
			time.Sleep(10 * time.Millisecond) // let passes happen
			peak = max(peak, s.DiskBytes())
		}
	}
	for deadline := time.Now().Add(20 * time.Second); s.DiskBytes() > diskCap+4*memTable; {
		if time.Now().After(deadline) {
			t.Errorf("%d bytes on disk\n%s", s.DiskBytes(), s.db.Metrics())
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("peak %.1f of the cap, %d excises", float64(peak)/diskCap, s.Stats().Evictions)
	if logs[0].Oldest() == 0 {
		t.Error("nothing was evicted")
	}
	for j := 1; j < 4; j++ {
		mustSync(t, logs[j])
		if err := models[j].verify(logs[j], models[j].end.Offset, true); err != nil {
			t.Error(err)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

// Readers against eviction: what they read, with the gaps that ErrEvicted
// states, is the stream; never a hole that nobody told of.
func TestReadersAgainstEviction(t *testing.T) {
	s := mustOpen(t, "s", Options{
		FS: vfs.NewMem(), SegmentBytes: 4 << 10, EvictPace: time.Millisecond, Pace: -1,
		MemTable: 64 << 10, Retain: 64 << 10, minRetain: 1, garbage: 256 << 10,
	})
	defer mustClose(t, s)
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	l.AppendCheckpoint(binaryPos(Pos{}), true)
	total := uint64(150000)
	if testing.Short() || raceEnabled {
		total /= 10
	}
	var done atomic.Bool
	var evicted atomic.Int64
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() { chase(t, l, i, total, &done, &evicted) })
	}
	rng := rngFor(11)
	for i := range total {
		for l.Room() <= 0 {
			<-l.RoomC()
		}
		if i%500 == 499 {
			l.AppendCheckpoint(binaryPos(l.End()), true)
		}
		l.Append(Output, Time{int64(i), int64(i)}, numbered(1, i))
		if rng.IntN(2000) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	done.Store(true)
	wg.Wait()
	if s.Stats().Evictions == 0 || l.Oldest() == 0 {
		t.Error("nothing was evicted")
	}
	t.Logf("%d evictions, seen %d times by readers", s.Stats().Evictions, evicted.Load())
}

func binaryPos(p Pos) []byte { return fmt.Appendf(nil, "%d %d", p.Offset, p.Seq) }

// chase reads the log slowly, from the oldest place whenever it lost its own.
func chase(t *testing.T, l *Log, seed, total uint64, done *atomic.Bool, evicted *atomic.Int64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	next := uint64(0)
	var r *Reader
	for !t.Failed() {
		var err error
		if r == nil {
			r, err = l.ReadOffset(next * 16)
		}
		var f Frame
		if err == nil {
			f, err = r.Next()
		}
		switch {
		case errors.Is(err, ErrEvicted):
			evicted.Add(1)
			oldest := l.Oldest()
			if oldest/16 < next {
				t.Errorf("evicted at %d, but the oldest is %d", next, oldest/16)
			}
			next, r = oldest/16, nil
			if cp, err := l.FullCheckpoint(Pos{oldest, next}); err == nil && string(cp.Blob) != string(binaryPos(cp.Pos)) {
				t.Errorf("checkpoint at %v: %q", cp.Pos, cp.Blob)
			} else if err != nil && !errors.Is(err, ErrEvicted) {
				t.Errorf("checkpoint at %d: %v", oldest, err)
			}
		case errors.Is(err, io.EOF):
			if done.Load() && next == total {
				return
			}
			time.Sleep(time.Millisecond)
		case err != nil || f.Seq != next || !bytes.Equal(f.Data, numbered(1, next)):
			t.Errorf("at %d: %v %v", next, f.Pos, err)
		default:
			next++
		}
		if rng.IntN(200) == 0 {
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			r = nil
		}
	}
}

// The ballast goes when the disk is full and comes back.
func TestBallast(t *testing.T) {
	mem := vfs.NewMem()
	faults := NewFaults(mem)
	s := mustOpen(t, "s", Options{FS: faults.FS(), Ballast: 1 << 20, EvictPace: 5 * time.Millisecond, MemTable: 64 << 10, Pace: -1})
	defer mustClose(t, s)
	there := func() bool { _, err := mem.Stat("s/" + ballastFile); return err == nil }
	if !there() {
		t.Fatal("no ballast")
	}
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{pane: 1}
	m.checkpoint(l, nil, true)
	faults.Add(Fault{Op: FaultFull, Path: "*.sst"})
	faults.Add(Fault{Op: FaultFull, Path: ballastFile})
	wait := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	for i := range uint64(40) {
		m.output(l, words(rngFor(i), 9000))
	}
	wait("the ballast was not given up", func() bool { return !there() })
	if s.Stats().FullSince == 0 {
		t.Error("FullSince is not set")
	}
	faults.Clear()
	wait("the ballast was not taken back", there)
	mustSync(t, l)
	if err := m.verify(l, m.end.Offset, true); err != nil {
		t.Error(err)
	}
	wait("still full", func() bool { return s.Stats().FullSince == 0 })
}

// An eviction that waits for a full disk is no reason not to take the ballast back, for
// which everybody else waits.
func TestEvictOnFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	faults := NewFaults(mem)
	s := mustOpen(t, "s", Options{FS: faults.FS(), Ballast: 1 << 20, EvictPace: 5 * time.Millisecond, MemTable: 256 << 10, Pace: -1, minRetain: 1})
	defer mustClose(t, s)
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{pane: 1}
	for range 4 {
		m.spanOf(l, 10, 1000)
	}
	mustSync(t, l)
	faults.Add(Fault{Op: FaultFull}) // the ballast included
	s.fs.ballast.give()
	l.SetRetain(1)
	wait := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	wait("no eviction begins", func() bool { return l.Oldest() > 0 && faults.Failed() > 0 })
	m.oldest = Pos{30_000, 30}
	if l.Oldest() != m.oldest.Offset {
		t.Errorf("oldest %d", l.Oldest())
	}
	m.output(l, []byte("more"))
	faults.Clear()
	wait("the ballast was not taken back", func() bool { return s.fs.ballastBytes() > 0 })
	mustSync(t, l)
	m.cps = m.cps[3:]
	if err := m.verify(l, m.end.Offset, true); err != nil {
		t.Error(err)
	}
}

// A compaction takes space before it makes some: for it the ballast is not given up, nor
// may it use one that was. It fails after a while, and what it has read may go.
func TestCompactOnFullDisk(t *testing.T) {
	for _, given := range []bool{false, true} {
		t.Run(fmt.Sprint("given=", given), func(t *testing.T) {
			mem := vfs.NewMem()
			faults := NewFaults(mem)
			s := mustOpen(t, "s", Options{FS: faults.FS(), Ballast: 1 << 20, EvictPace: 5 * time.Millisecond, MemTable: 64 << 10, Pace: -1})
			defer mustClose(t, s)
			l, err := s.Create(1)
			if err != nil {
				t.Fatal(err)
			}
			m := &model{pane: 1}
			m.checkpoint(l, nil, true)
			for i := range uint64(2) {
				m.output(l, words(rngFor(i), 9000))
				mustSync(t, l)
				if err := s.db.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			faults.Add(Fault{Op: FaultFull, Path: ballastFile})
			if given {
				s.fs.ballast.give()
			} else {
				faults.Add(Fault{Op: FaultFull, Path: "*.sst"})
			}
			lo, hi := paneBounds(1)
			compact := func() error { return s.db.Compact(context.Background(), lo, hi, false) }
			if err := compact(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("on a full disk: %v", err)
			}
			if there := s.fs.ballastBytes() > 0; there == given {
				t.Errorf("the ballast is there: %t", there)
			}
			if !given && s.Stats().FullSince != 0 || s.Err() != nil { // nothing waits for a compaction
				t.Errorf("full since %d, %v", s.Stats().FullSince, s.Err())
			}
			faults.Clear()
			for deadline := time.Now().Add(20 * time.Second); s.fs.ballastBytes() == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the ballast was not taken back")
				}
			}
			if err := compact(); err != nil {
				t.Error(err)
			}
			if err := m.verify(l, m.end.Offset, true); err != nil {
				t.Error(err)
			}
		})
	}
}
