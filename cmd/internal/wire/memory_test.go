package wire

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestBudget: claims never exceed the budget, are served in their order, and a
// claim that is given up takes nothing along.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		var used atomic.Int64
		var all sync.WaitGroup
		for i := range 200 {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			n, hold, patience := 1+r.IntN(10), time.Duration(r.IntN(5)), time.Duration(r.IntN(300))
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if b.acquire(ctx, n) != nil {
					return
				}
				if used.Add(int64(n)) > 10 {
					t.Error("more than there is")
				}
				time.Sleep(hold)
				used.Add(int64(-n))
				b.release(n)
			})
		}
		all.Wait()
		if b.used != 0 || b.short() {
			t.Errorf("%d bytes left, %d waiting", b.used, len(b.waiting))
		}
		b.acquire(t.Context(), 6)
		ctx, giveUp := context.WithCancel(t.Context())
		go b.acquire(ctx, 8)
		synctest.Wait()
		small := make(chan struct{})
		go func() { b.acquire(t.Context(), 4); close(small) }()
		synctest.Wait()
		select {
		case <-small:
			t.Error("a claim has overtaken an older one")
		default:
		}
		giveUp()
		<-small
		if err := b.acquire(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a budget that is used up: %v", err)
		}
	})
}

// TestHoarders: a client that reads nothing while others wait for the memory
// that its answers take is dropped at once; one that is in nobody's way is not.
func TestHoarders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newBudget(10 << 20)
		connect := func() (*peer, *atomic.Bool) {
			near, far := net.Pipe()
			ended := &atomic.Bool{}
			go func() { serveConn(t.Context(), far, &large{}, memory); ended.Store(true) }()
			return greet(t, near, 4<<20), ended
		}
		modest, modestEnded := connect()
		defer modest.nc.Close()
		hoarder, hoarderEnded := connect()
		defer hoarder.nc.Close()
		hoarder.say(`{"id":1,"verb":"x"}`)
		hoarder.say(`{"id":2,"verb":"x"}`)
		time.Sleep(10 * time.Second)
		if hoarderEnded.Load() {
			t.Error("dropped without need")
		}
		began := time.Now()
		reader, _ := connect()
		defer reader.nc.Close()
		reader.say(`{"id":1,"verb":"x"}`)
		if got := len(reader.hear()); got != 4<<20 {
			t.Errorf("an answer of %d bytes", got)
		}
		d := time.Since(began)
		synctest.Wait() // the hoarder's connection may still be ending
		if d > 2*time.Second || !hoarderEnded.Load() || modestEnded.Load() {
			t.Errorf("answered after %v; the hoarder is gone: %t, the modest one: %t", d, hoarderEnded.Load(), modestEnded.Load())
		}
	})
}

// TestStreamsShareMemory: streams and large answers of many connections that all
// read finish, however little memory there is for them.
func TestStreamsShareMemory(t *testing.T) {
	memory := newBudget(64<<10 + 2*frameOverhead)
	h := handlerFunc(func(ctx context.Context, c *Call) (any, error) {
		for range 20 {
			if err := c.Item(ctx, strings.Repeat("i", c.Room/8)); err != nil {
				return nil, err
			}
			if err := c.Wait(ctx, func() error { return nil }); err != nil {
				return nil, err
			}
		}
		return strings.Repeat("x", c.Room-2), nil
	})
	var all sync.WaitGroup
	for range 6 {
		near, far := net.Pipe()
		defer near.Close()
		go serveConn(t.Context(), far, h, memory)
		near.SetDeadline(time.Now().Add(30 * time.Second))
		p := greet(t, near, 64<<10)
		all.Go(func() {
			for id := range 8 {
				if _, err := near.Write([]byte(`{"id":` + string(rune('0'+id)) + `,"verb":"x"}` + "\n")); err != nil {
					t.Error(err)
					return
				}
			}
			for n := range 8 * 21 {
				if _, err := p.in.ReadString('\n'); err != nil {
					t.Errorf("after %d frames: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
	until(t, "the rest of the memory", func() bool { // given back just after the last frame is read
		memory.mu.Lock()
		defer memory.mu.Unlock()
		return memory.used == 0
	})
}

// TestSilentClient: a client that makes the reader answer and reads nothing of it
// is not read any more, and dropped.
func TestSilentClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, ended := pipe(t.Context(), &echo{})
		defer nc.Close()
		greet(t, nc, 1<<20)
		n := 0
		for nc.SetWriteDeadline(time.Now().Add(time.Second)); ; n++ {
			if _, err := nc.Write([]byte(`{"id":1,"verb":"cancel","params":{"id":9}}` + "\n")); err != nil {
				break
			}
		}
		if n < 100 || n > 1000 {
			t.Errorf("%d answers are queued", n)
		}
		<-ended
	})
}

// TestWaiting: requests that wait take no memory and keep nobody from running;
// when they go on, they stand in line like the others.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		h := handlerFunc(func(ctx context.Context, c *Call) (any, error) {
			err := c.Wait(ctx, func() error {
				time.Sleep(10 * time.Second)
				return context.DeadlineExceeded
			})
			if n := running.Add(1); n > 2 {
				t.Errorf("%d requests produce answers", n)
			}
			defer running.Add(-1)
			time.Sleep(time.Second)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			return nil, nil
		})
		near, far := net.Pipe()
		defer near.Close()
		go serveConn(t.Context(), far, h, newBudget(8<<20+2*frameOverhead))
		p := greet(t, near, 4<<20)
		began := time.Now()
		for id := range 20 {
			p.say(`{"id":%d,"verb":"x"}`, id)
		}
		for range 20 {
			p.hear()
		}
		if d := time.Since(began); d != 20*time.Second { // one wait, and ten turns of two
			t.Errorf("%v", d)
		}
	})
}
