package store

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What is reserved on a full disk, while nothing can be made durable, is there
// after a crash.
func TestReserveOnFullDisk(t *testing.T) {
	mem := vfs.NewCrashableMem()
	faults := NewFaults(mem)
	s, l, m := newFed(t, faults.FS(), Options{})
	mustSync(t, l)
	if o, e := l.Reserved(); o != 0 || e != 0 {
		t.Errorf("reserved %d %d in a new log", o, e)
	}
	faults.Add(Fault{Op: FaultFull})
	m.output(l, []byte("in gap mode"))
	const step = 64 << 20
	for i := range uint64(5) {
		if err := l.Reserve((i+1)*step, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Reserve(step, 7); err != nil { // never falls
		t.Fatal(err)
	}
	img := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rngFor(1)})
	faults.Clear()
	mustClose(t, s)
	for range 2 {
		s = mustOpen(t, "s", Options{FS: img})
		if l, err := s.Log(1); err != nil {
			t.Error(err)
		} else if o, e := l.Reserved(); o != 5*step || e != 7 {
			t.Errorf("reserved %d %d after the crash", o, e)
		}
		mustClose(t, s)
	}
}

// A crash inside Reserve, at each write and sync and with any part of what was
// not synced on the disk, leaves what was reserved before or what was to be; a
// torn slot is not taken for either.
func TestReserveTorn(t *testing.T) {
	for step := range 4 {
		for _, percent := range []int{0, 50, 100} {
			mem := vfs.NewCrashableMem()
			faults := NewFaults(mem)
			s, l, _ := newFed(t, faults.FS(), Options{})
			if err := l.Reserve(1000, 1); err != nil {
				t.Fatal(err)
			}
			op := [4]FaultOp{FaultWrite, FaultSync, FaultWrite, FaultSync}[step]
			faults.Add(Fault{Op: op, Path: reserveFile, Skip: step / 2, Err: syscall.EIO})
			if err := l.Reserve(2000, 2); !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("step %d: %v", step, err)
			}
			if o, e := l.Reserved(); o != 1000 || e != 1 {
				t.Errorf("step %d: reserved %d %d", step, o, e)
			}
			img := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rngFor(uint64(step))})
			faults.Clear()
			if err := l.Reserve(2000, 2); err != nil { // the disk has recovered
				t.Error(err)
			}
			mustClose(t, s)
			// And the half of a slot that was being written.
			data, err := img.UnsafeGetFileDataBuffer("s/" + reserveFile)
			if err != nil {
				t.Fatal(err)
			}
			torn := (&slot{1, 99, 3000, 3}).encode(s.ID())
			place := slotPlaces(s.reserve.get(1).place)[step/2]
			copy(data[place:], torn[:20+step])
			s = mustOpen(t, "s", Options{FS: img})
			if l, err = s.Log(1); err != nil {
				t.Fatal(err)
			}
			if o, e := l.Reserved(); o != 1000*e || e != 1 && e != 2 {
				t.Errorf("step %d, %d %%: reserved %d %d", step, percent, o, e)
			}
			mustClose(t, s)
		}
	}
}

// A store that failed can still reserve, if only that works.
func TestReserveInFailedStore(t *testing.T) {
	mem := vfs.NewCrashableMem()
	faults := NewFaults(mem)
	s, l, m := newFed(t, faults.FS(), Options{})
	mustSync(t, l)
	faults.Add(Fault{Op: FaultSync, Path: "*.log", Err: syscall.EIO})
	m.output(l, []byte("lost"))
	for deadline := time.Now().Add(10 * time.Second); s.Err() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the store has not failed")
		}
	}
	if err := l.Reserve(12345, 6); err != nil {
		t.Fatal(err)
	}
	img := mem.CrashClone(vfs.CrashCloneCfg{RNG: rngFor(1)})
	_ = s.Close()
	if err := l.Reserve(1<<40, 7); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	s = mustOpen(t, "s", Options{FS: img})
	defer mustClose(t, s)
	if l, err := s.Log(1); err != nil {
		t.Error(err)
	} else if o, e := l.Reserved(); o != 12345 || e != 6 {
		t.Errorf("reserved %d %d", o, e)
	}
}

// Each log has its own slot, also when there are many and some were removed.
func TestReserveMany(t *testing.T) {
	mem := vfs.NewMem()
	s := mustOpen(t, "s", Options{FS: mem})
	want := make(map[uint64]uint64)
	for pane := range uint64(150) {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		want[pane] = pane*10 + 1
		if err := l.Reserve(want[pane], pane); err != nil {
			t.Fatal(err)
		}
		if pane%3 == 2 {
			if err := s.Remove(pane - 1); err != nil {
				t.Fatal(err)
			}
			delete(want, pane-1)
		}
	}
	for range 2 {
		if l, err := s.Create(1); err != nil { // made again: nothing of the old one
			t.Fatal(err)
		} else if o, _ := l.Reserved(); o != 0 {
			t.Errorf("a new log has %d reserved", o)
		} else if err := l.Reserve(5, 5); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		s = mustOpen(t, "s", Options{FS: mem})
		want[1] = 5
		for pane, offset := range want {
			if l, err := s.Log(pane); err != nil {
				t.Error(err)
			} else if o, _ := l.Reserved(); o != offset {
				t.Errorf("pane %d: %d reserved, want %d", pane, o, offset)
			}
		}
		if err := s.Remove(1); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	data, err := mem.UnsafeGetFileDataBuffer("s/" + reserveFile)
	if err != nil || len(data) != 2*2*pageSize {
		t.Errorf("%d bytes for 101 logs: %v", len(data), err)
	}
}
