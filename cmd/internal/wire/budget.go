package wire

import (
	"context"
	"slices"
	"sync"
)

// budget is a number of bytes that claims share, first come, first served. Who
// waits for a claim holds nothing of the same budget, so that no two can wait
// for each other.
type budget struct {
	size int

	mu      sync.Mutex
	used    int
	waiting []*claim // oldest first
}

// claim is a part of a budget that somebody waits for.
type claim struct {
	n       int
	granted chan struct{} // closed when the part is taken
}

func newBudget(size int) *budget { return &budget{size: size} }

// acquire takes n bytes, all of the budget if it is smaller than that, and
// waits for them as long as ctx allows.
func (b *budget) acquire(ctx context.Context, n int) error {
	b.mu.Lock()
	c := &claim{min(n, b.size), make(chan struct{})}
	b.waiting = append(b.waiting, c)
	b.grantLocked()
	b.mu.Unlock()
	select {
	case <-c.granted: // even if ctx has ended too
		return nil
	default:
	}
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.used -= c.n
	}
	b.grantLocked()
	return ctx.Err()
}

// release gives n bytes back, clipped as acquire clips them.
func (b *budget) release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= min(n, b.size)
	b.grantLocked()
}

func (b *budget) grantLocked() {
	for len(b.waiting) > 0 && b.used+b.waiting[0].n <= b.size {
		b.used += b.waiting[0].n
		close(b.waiting[0].granted)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// short says whether somebody waits.
func (b *budget) short() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}
