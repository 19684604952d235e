package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// afterCut opens what a power cut leaves of a store: nothing but what was
// synced.
func afterCut(t *testing.T, mem *vfs.MemFS) (*Store, *Log) {
	t.Helper()
	s := mustOpen(t, "s", Options{FS: mem.CrashClone(vfs.CrashCloneCfg{}), Ballast: -1})
	l, err := s.Log(1)
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

// inBubble runs f with a clock that stands still while anything happens.
func inBubble(t *testing.T, f func(t *testing.T)) {
	if _, err := decompress(nil, nil, 0); err != nil { // made once for all
		t.Fatal(err)
	}
	synctest.Test(t, f)
}

// The WAL is synced when SyncEvery has passed since something was written, and
// not at all while nothing is.
func TestSyncEvery(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		mem := vfs.NewCrashableMem()
		faults := NewFaults(mem)
		const never = 1 << 40
		faults.Add(Fault{Op: FaultSync, Path: "*.log", Skip: never}) // counts
		syncs := func() int {
			faults.mu.Lock()
			defer faults.mu.Unlock()
			return never - faults.rules[0].Skip
		}
		s, l, m := newFed(t, faults.FS(), Options{SyncEvery: 10 * time.Second})
		defer mustClose(t, s)
		mustCommit(t, l)
		time.Sleep(time.Minute)
		began := syncs()
		for _, text := range []string{"one", "two"} {
			before := m.end.Offset
			m.output(l, []byte(text))
			mustCommit(t, l)
			if l.Durable() != m.end.Offset || l.Synced() != before {
				t.Errorf("written: durable %d, synced %d of %d", l.Durable(), l.Synced(), m.end.Offset)
			}
			time.Sleep(9 * time.Second)
			m.output(l, []byte("more"))
			mustCommit(t, l)
			if l.Synced() != before {
				t.Errorf("after 9 s: synced %d", l.Synced())
			}
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			if l.Synced() != m.end.Offset {
				t.Errorf("after 10 s: synced %d of %d", l.Synced(), m.end.Offset)
			}
			cut, log := afterCut(t, mem)
			if err := m.verify(log, m.end.Offset, true); err != nil {
				t.Error(err)
			}
			mustClose(t, cut)
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		if n := syncs() - began; n != 2 {
			t.Errorf("%d syncs", n)
		}
	})
}

// Sync does not put off: what it has returned for survives a power cut, also a
// checkpoint without frames.
func TestSyncIsNow(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, l, m := newFed(t, mem, Options{SyncEvery: time.Hour})
	check := func() {
		t.Helper()
		cut, log := afterCut(t, mem)
		if err := m.verify(log, m.end.Offset, true); err != nil {
			t.Error(err)
		}
		if cp, err := log.Checkpoint(m.end); err != nil || cp.Pos != m.cps[len(m.cps)-1].Pos {
			t.Error(cp, err)
		}
		mustClose(t, cut)
	}
	mustSync(t, l)
	check()
	for range 3 {
		m.output(l, []byte("text"))
		mustSync(t, l)
		check()
		m.checkpoint(l, []byte("state"), false)
		mustSync(t, l)
		check()
	}
	m.output(l, []byte("end"))
	mustClose(t, s)
	mustSync(t, l)
	check()
}

// While a sync that was put off hangs, what a power cut can take stays within
// the bound, which the stores that come after know, under whatever policy.
func TestDeferredBound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		mem := vfs.NewCrashableMem()
		var hang atomic.Bool
		hung := make(chan struct{})
		slow := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, walSuffix) && hang.Load() {
				<-hung
			}
			return nil
		}))
		s, l, m := newFed(t, slow, Options{SyncEvery: time.Hour, Pace: -1})
		m.output(l, []byte("this is synced"))
		mustCommit(t, l)
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		hang.Store(true)
		// It compresses well, so that all is in one WAL: when Pebble begins
		// another, it waits for the sync.
		data := bytes.Repeat([]byte("x"), 100<<10)
		for l.Durable() <= lagBytes+14 {
			for synctest.Wait(); l.Room() <= 0 && len(l.RoomC()) > 0; synctest.Wait() {
				<-l.RoomC()
			}
			if l.Room() <= 0 {
				break
			}
			for range 10 { // MaxBatch between two looks
				m.output(l, data)
			}
		}
		synced, end := l.Synced(), l.End()
		if n := l.Durable() - synced; synced != 14 || n < lagBytes/2 || n > lagBytes {
			t.Errorf("synced %d, durable %d", synced, l.Durable())
		}
		img := mem.CrashClone(vfs.CrashCloneCfg{})
		for range 2 { // also the one after that
			s := mustOpen(t, "s", Options{FS: img, Ballast: -1})
			l, err := s.Log(1)
			if err != nil {
				t.Fatal(err)
			}
			if s.LossBound() != 13<<20 || l.End().Offset+s.LossBound() < end.Offset {
				t.Errorf("the end is %v, was %v, and the bound is %d", l.End(), end, s.LossBound())
			}
			if err := m.verify(l, synced, false); err != nil {
				t.Error(err)
			}
			mustClose(t, s)
		}
		hang.Store(false)
		close(hung)
		mustCommit(t, l)
		if err := m.verify(l, m.end.Offset, true); err != nil {
			t.Error(err)
		}
		mustClose(t, s)
	})
}

// A gap runs on by more than any bound of bytes: it is synced before it is
// durable.
func TestDeferredGap(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, l, m := newFed(t, mem, Options{SyncEvery: time.Hour})
	defer mustClose(t, s)
	m.add(Frame{Pos: m.end, Kind: Gap, Lost: 1 << 40}, l.AppendGap(Time{}, 1<<40, nil))
	mustCommit(t, l)
	cut, log := afterCut(t, mem)
	defer mustClose(t, cut)
	if log.End() != m.end {
		t.Errorf("end %v", log.End())
	}
}

// Spans go only when what follows is synced, even where they themselves are.
func TestDeferredEviction(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, l, m := newFed(t, mem, Options{SyncEvery: time.Hour, EvictPace: time.Hour, SegmentBytes: 1000, Retain: 1, minRetain: 1})
	defer mustClose(t, s)
	m.spanOf(l, 10, 1000)
	mustCommit(t, l)
	if err := s.db.Flush(); err != nil { // the next span is in another WAL
		t.Fatal(err)
	}
	m.spanOf(l, 10, 1000)
	mustCommit(t, l)
	if err := s.evict(); err != nil {
		t.Fatal(err)
	}
	cut, log := afterCut(t, mem)
	defer mustClose(t, cut)
	if log.Oldest() != 10_000 || log.End().Offset < 10_000 {
		t.Errorf("%d to %d is left", log.Oldest(), log.End().Offset)
	}
}

// A sync that was put off and fails ends the store like any other.
func TestDeferredSyncFails(t *testing.T) {
	faults := NewFaults(vfs.NewMem())
	s, l, m := newFed(t, faults.FS(), Options{SyncEvery: 10 * time.Millisecond})
	mustCommit(t, l)
	faults.Add(Fault{Op: FaultSync, Path: "*.log", Err: syscall.EIO, Count: 1})
	m.output(l, []byte("lost, perhaps"))
	<-s.Failed()
	if err := s.Err(); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if err := s.Put("x", nil); !errors.Is(err, ErrFailed) {
		t.Errorf("Put: %v", err)
	}
	if err := m.verify(l, 0, true); err != nil {
		t.Errorf("reading: %v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrFailed) {
		t.Errorf("Close: %v", err)
	}
}

// What is damaged below what was synced is told from a torn end, as ever.
func TestDeferredDamage(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, l, m := newFed(t, mem, Options{SyncEvery: time.Hour, SegmentBytes: 1000, Level: -1})
	defer mustClose(t, s)
	write := func(n int) {
		for range n {
			m.output(l, words(rngFor(1), 3<<10))
			mustCommit(t, l) // Pebble takes it for synced
		}
	}
	for range 2 {
		write(12)
		if err := s.deferral.sync(); err != nil {
			t.Fatal(err)
		}
	}
	write(30)
	for _, damaged := range []bool{true, false} {
		img := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rngFor(1)})
		names, err := img.List("s/db")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := img.UnsafeGetFileDataBuffer("s/db/" + name)
			switch {
			case !strings.HasSuffix(name, walSuffix) || err != nil || len(data) < 100<<10:
			case damaged:
				data[20<<10] ^= 1
			default:
				data[len(data)-80<<10] ^= 1
			}
		}
		cut, err := Open("s", Options{FS: img, Logger: quiet, Ballast: -1})
		var d *DamagedError
		if errors.As(err, &d) != damaged {
			t.Errorf("damaged %v: %v", damaged, err)
		}
		if err == nil {
			mustClose(t, cut)
		}
	}
}

// Pebble itself reads what is restamped, and finds the synced offsets in it.
func TestRestamp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var file bytes.Buffer
	var want [][]byte
	stamp := &stampFile{w: &file}
	w := record.NewLogWriter(stamp, 7, record.LogWriterConfig{WriteWALSyncOffsets: func() bool { return true }})
	for range 400 {
		rec := words(rng, rng.IntN(3)*rng.IntN(30<<10)+1)
		want = append(want, rec)
		if _, err := w.WriteRecord(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(file.Bytes(), binary.LittleEndian.AppendUint64(nil, 0x1122334455667788)); n < file.Len()/walBlock || n < len(want) {
		t.Errorf("%d stamps in %d blocks", n, file.Len()/walBlock)
	}
	r := record.NewReader(&file, 7)
	for i := range want {
		rec, err := r.Next()
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if got, err := io.ReadAll(rec); err != nil || !bytes.Equal(got, want[i]) {
			t.Fatalf("record %d: %d bytes, %v", i, len(got), err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// stampFile restamps what is written.
type stampFile struct {
	w  *bytes.Buffer
	at int64
}

func (s *stampFile) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	restamp(b, s.at, 0x1122334455667788)
	s.at += int64(len(b))
	return s.w.Write(b)
}
