package daemon

import (
	"context"
	"slices"
	"sync"

	"looptape/recorder"
)

// writers decides the sizes of panes. The size of a pane is what was asked for last:
// by pane.resize, or by a writer that became active, through its first viewport, a new
// one, or input after somebody else's turn. Where the writer whose viewport the pane
// has goes away, the one that was active before it takes its place; without any
// other the size stays.
type writers struct {
	mu    sync.Mutex
	crews map[*recorder.Pane]*crew
}

// crew is the writers of one pane.
type crew struct {
	size int // how many there are; guarded by writers.mu

	mu     sync.Mutex // held while a resize is asked for, so that the last one decides
	active []*writer  // those with a viewport, the one active last at the end
	holder *writer    // whose viewport the pane has; nil after pane.resize
}

// writer is a client that is attached for writing.
type writer struct {
	of   *writers
	crew *crew
	pane *recorder.Pane

	cols, rows int // its viewport; guarded by crew.mu
}

// join adds a writer without a viewport.
func (ws *writers) join(pane *recorder.Pane) *writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	c := ws.crews[pane]
	if c == nil {
		if ws.crews == nil {
			ws.crews = make(map[*recorder.Pane]*crew)
		}
		c = &crew{}
		ws.crews[pane] = c
	}
	c.size++
	return &writer{of: ws, crew: c, pane: pane}
}

// resize is pane.resize: the size is nobody's.
func (ws *writers) resize(ctx context.Context, pane *recorder.Pane, cols, rows int) (recorder.Size, error) {
	ws.mu.Lock()
	c := ws.crews[pane]
	ws.mu.Unlock()
	if c == nil {
		return pane.Resize(ctx, cols, rows)
	}
	c.mu.Lock()
	result, err := pane.RequestResize(ctx, cols, rows)
	if err == nil {
		c.holder = nil
	}
	c.mu.Unlock()
	if err != nil {
		return recorder.Size{}, err
	}
	return pane.AwaitResize(ctx, result)
}

// view gives w another viewport, which the pane takes. It returns when that has been
// asked for.
func (w *writer) view(ctx context.Context, cols, rows int) (<-chan recorder.Size, error) {
	w.crew.mu.Lock()
	defer w.crew.mu.Unlock()
	result, err := w.pane.RequestResize(ctx, cols, rows)
	if err != nil {
		return nil, err
	}
	w.cols, w.rows = cols, rows
	w.crew.holdLocked(w)
	return result, nil
}

// act says that w types something.
func (w *writer) act(ctx context.Context) error {
	w.crew.mu.Lock()
	defer w.crew.mu.Unlock()
	if w.cols == 0 || w.crew.holder == w {
		return nil
	}
	_, err := w.pane.RequestResize(ctx, w.cols, w.rows)
	if err == nil {
		w.crew.holdLocked(w)
	}
	return err
}

// holdLocked makes w the one that was active last.
func (c *crew) holdLocked(w *writer) {
	c.active = append(slices.DeleteFunc(c.active, func(o *writer) bool { return o == w }), w)
	c.holder = w
}

// leave removes w.
func (w *writer) leave(ctx context.Context) {
	w.of.mu.Lock()
	c := w.crew
	if c.size--; c.size == 0 {
		delete(w.of.crews, w.pane)
	}
	w.of.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = slices.DeleteFunc(c.active, func(o *writer) bool { return o == w })
	if c.holder != w {
		return
	}
	c.holder = nil
	if n := len(c.active); n > 0 {
		next := c.active[n-1]
		if _, err := w.pane.RequestResize(ctx, next.cols, next.rows); err == nil {
			c.holder = next
		}
	}
}
