package store

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Readers that follow a log while it is written see every frame exactly once,
// in order, from wherever they begin.
func TestReadersFollow(t *testing.T) {
	s := mustOpen(t, "s", Options{FS: MemFS(), SegmentBytes: 4 << 10, MemTable: 64 << 10, Pace: -1})
	defer mustClose(t, s)
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	l.AppendCheckpoint([]byte("start"), true)
	total := uint64(60000)
	if testing.Short() || raceEnabled {
		total /= 10
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() { follow(t, l, i, total, &stop) })
	}
	rng := rngFor(8)
	for i := range total {
		for l.Room() <= 0 {
			<-l.RoomC()
		}
		l.Append(Output, Time{int64(i), int64(i)}, numbered(1, i))
		switch rng.IntN(3000) {
		case 0:
			l.AppendCheckpoint([]byte("full"), true)
		case 1:
			time.Sleep(time.Millisecond)
		}
		if stop.Load() {
			break
		}
	}
	wg.Wait()
}

// follow reads total frames of 16 bytes each, starting anew now and then.
func follow(t *testing.T, l *Log, seed, total uint64, stop *atomic.Bool) {
	rng := rand.New(rand.NewPCG(seed, 4))
	var r *Reader
	for next := uint64(0); next < total; {
		var err error
		if r == nil {
			if rng.IntN(2) == 0 {
				r, err = l.Read(Pos{next * 16, next})
			} else {
				r, err = l.ReadOffset(next*16 + rng.Uint64N(16))
			}
			if err != nil {
				t.Errorf("at %d: %v", next, err)
				stop.Store(true)
				return
			}
		}
		f, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			if stop.Load() {
				return
			}
			time.Sleep(100 * time.Microsecond)
			continue
		case err != nil || f.Seq != next || f.Offset != next*16 || !bytes.Equal(f.Data, numbered(1, next)):
			t.Errorf("at %d: frame %v, %v", next, f.Pos, err)
			stop.Store(true)
			return
		}
		next++
		if rng.IntN(500) == 0 {
			r.Close()
			r = nil
		}
	}
}

// Who walks the checkpoints of a log while it is written gets each of them once, in
// order, whether it is on disk yet or becomes so at that moment.
func TestCheckpointsFollow(t *testing.T) {
	s := mustOpen(t, "s", Options{FS: MemFS(), SegmentBytes: 4 << 10, MemTable: 64 << 10, Pace: -1})
	defer mustClose(t, s)
	l, err := s.Create(1)
	if err != nil {
		t.Fatal(err)
	}
	l.AppendCheckpoint([]byte("0"), true)
	var last atomic.Uint64
	var wg sync.WaitGroup
	const spans = 2000
	for range 3 {
		wg.Go(func() {
			for from := uint64(0); from < spans && !t.Failed(); {
				n := last.Load()
				at := Pos{Offset: from * 16, Seq: from}
				next := from
				for cp, err := range l.Checkpoints(at) {
					if err != nil || cp.Seq != next || !cp.Full {
						t.Errorf("checkpoint %v (%v), where %d should be", cp.Pos, err, next)
						return
					}
					next++
				}
				if next <= n {
					t.Errorf("the checkpoints end at %d of %d", next, n)
				}
				from = max(next-1, from) // the last one again
				if n == spans {
					return
				}
			}
		})
	}
	for i := uint64(1); i <= spans; i++ {
		for l.Room() <= 0 {
			<-l.RoomC()
		}
		l.Append(Output, Time{int64(i), int64(i)}, numbered(1, i))
		l.AppendCheckpoint(numbered(2, i), true)
		last.Store(i)
	}
	wg.Wait()
}

// Of a log that is removed while a program writes to it nothing stays.
func TestRemoveWhileWriting(t *testing.T) {
	s := mustOpen(t, "s", Options{FS: vfs.NewMem(), Pace: -1, EvictPace: time.Hour})
	defer mustClose(t, s)
	last, err := s.Create(1000)
	if err != nil {
		t.Fatal(err)
	}
	last.AppendCheckpoint(nil, true)
	for pane := range uint64(100) {
		l, err := s.Create(pane)
		if err != nil {
			t.Fatal(err)
		}
		l.AppendCheckpoint(nil, true)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					if l.Room() > 0 {
						l.Append(Output, Time{}, words(rngFor(pane), 9000))
					}
				}
			}
		}()
		for l.Durable() < 50_000 {
			time.Sleep(time.Millisecond)
		}
		if err := s.Remove(pane); err != nil {
			t.Fatal(err)
		}
		close(stop)
		<-stopped
		last.Append(Output, Time{}, []byte("behind"))
		mustSync(t, last) // the committer has done with the others
		err = s.view(pane, func(it *pebble.Iterator) error {
			if it.First() {
				t.Errorf("of pane %d stays %x", pane, it.Key())
			}
			return it.Error()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
