package main_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"looptape/cmd/internal/attach"
)

// caseResized is case 8.
func caseResized(r *rig) {
	p := r.feed(20, 4, nil)
	var text strings.Builder
	for n := range 100 {
		fmt.Fprintf(&text, "%s %d\r\n", r.canary[:10], n)
	}
	p.write(text.String())
	a := r.s.attach(attach.Params{Pane: p.pane, Mode: "write", Cols: 20, Rows: 4})
	// During paging, and between two reads.
	page := r.rows(obj{"pane": p.pane, "max_rows": 10})
	for i, size := range [][2]int{{30, 6}, {30, 4}, {25, 4}} {
		if err := a.Viewport(size[0], size[1]); err != nil {
			r.Fatal(err)
		}
		a.until("the resize", func() bool { return a.count(attach.Resize) == i+1 })
		pinned := obj{"pane": p.pane, "epoch": page.Epoch, "start": *page.Next, "end": page.End, "max_rows": 10}
		tail := r.rows(obj{"pane": p.pane, "tail": 2})
		r.fails("conflict.epoch", tail.bounds(""), "pane.capture_rows", pinned)
		if tail.Cols != size[0] || tail.Rows != size[1] || tail.Epoch <= page.Epoch {
			r.Errorf("after a resize to %v: %.300s", size, tail.text)
		}
		if f := a.last(attach.Resize); f.Epoch != tail.Epoch || f.Cols != tail.Cols || f.Rows != tail.Rows {
			r.Errorf("the client was told %+v: %.300s", f, tail.text)
		}
		page = r.rows(obj{"pane": p.pane, "max_rows": 10})
		r.equal("after a resize", page.Lines, r.plain(text.String(), size[0], size[1])[:10])
	}
	r.resizedBusy()
}

// resizedBusy reads a pane a thousand times that never stops to write, while a
// writer changes its size.
func (r *rig) resizedBusy() {
	r.Helper()
	pane := r.s.run(r.c, 20, 4, "seq", "1", "1000000000000")
	r.s.until(r.c, pane, "writing", func(i paneInfo) bool { return i.Offset > 4893 })
	a := r.s.attachIdle(attach.Params{Pane: pane, Mode: "write", Cols: 20, Rows: 4})
	var followed sync.WaitGroup
	followed.Go(func() {
		for {
			if _, err := a.Next(); err != nil {
				return
			}
		}
	})
	defer followed.Wait()
	defer a.Close()
	m := &monotonic{r: r}
	sizes := [][2]int{{20, 4}, {30, 6}, {25, 10}, {40, 4}}
	deadline := time.Now().Add(patience)
	for i := 0; i < 1000 || m.epochs < 5; i++ {
		if time.Now().After(deadline) {
			r.Fatalf("%d reads, %d epochs", i, m.epochs)
		}
		// The pane takes sizes in its own time: of those that come too soon, the last.
		if size := sizes[i/50%len(sizes)]; i%50 == 0 {
			if err := a.Viewport(size[0], size[1]); err != nil {
				r.Fatal(err)
			}
		}
		var page rowsPage
		if i%100 == 0 {
			page = r.rows(obj{"pane": pane, "tail": 20})
		} else {
			page = call[rowsPage](r.s, r.c, "pane.capture_rows", obj{"pane": pane, "tail": 20})
		}
		m.check(page)
	}
}

// monotonic checks that pages of a pane that runs seq go on: bounds in an epoch
// never decrease, and its rows are numbered from the same line on.
type monotonic struct {
	r      *rig
	last   rowsPage
	line   int64 // of row 0 in this epoch
	epochs int
}

func (m *monotonic) check(p rowsPage) {
	m.r.Helper()
	var first int64
	if _, err := fmt.Sscan(p.Lines[0], &first); err != nil {
		m.r.Fatalf("%q: %v", p.Lines[0], err)
	}
	line := first - int64(p.Start)
	switch b, before := p.Bounds, m.last.Bounds; {
	case p.Epoch < m.last.Epoch || p.Offset < m.last.Offset:
		m.r.Fatalf("%+v behind %+v", p, m.last)
	case p.Epoch > m.last.Epoch:
		m.epochs++
		m.line = line
	case b.End < before.End || b.Oldest < before.Oldest || p.Cols != m.last.Cols || p.Rows != m.last.Rows || line != m.line:
		m.r.Fatalf("in one epoch %+v behind %+v", p, m.last)
	}
	for i, text := range p.Lines {
		want := fmt.Sprintf("%-*d", p.Cols, first+int64(i))
		if text != want && (i < len(p.Lines)-1 || len(text) != len(want) || !strings.HasPrefix(want, strings.TrimRight(text, " "))) {
			m.r.Fatalf("row %d is %q, not %q", p.Start+uint64(i), text, want)
		}
	}
	m.last = p
}

// viewer is an emulating client with what is local to it: where it has scrolled to,
// and what is selected.
type viewer struct {
	*attached
	top       uint64    // the first row that it shows
	selection [2]uint64 // rows, exclusive end
}

// rendered is all that a viewer knows and shows.
func (v *viewer) rendered() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var rows []string
	start := uint64(0)
	for _, f := range v.frames {
		if f.Type == attach.Scrollback && len(f.Data) > 0 { // the newest come first
			start = f.Start
			rows = append(strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n"), rows...)
		}
	}
	shown := rows[v.top-start:][:4]
	selected := rows[v.selection[0]-start : v.selection[1]-start]
	return fmt.Sprintf("top %d %q, selected %v %q, epoch %d, offset %d, %d frames, screen %q",
		v.top, shown, v.selection, selected, v.screen.Epoch, v.screen.Offset, len(v.frames), screenText(v.screen.Term))
}

// caseViewers is case 20: besides the two viewers a third client reads nothing, so
// that its backlog waits in the daemon.
func caseViewers(r *rig) {
	p := r.feed(20, 4, obj{"scrollback": 100})
	var text strings.Builder
	for n := range 60 {
		fmt.Fprintf(&text, "%s %d\r\n", r.canary[:10], n)
	}
	p.write(text.String())
	view := func(cols, rows int, top uint64, selection [2]uint64) *viewer {
		v := &viewer{r.s.attach(attach.Params{Pane: p.pane, Mode: "write", Cols: cols, Rows: rows, History: 100}), top, selection}
		v.until("the history", func() bool {
			n := v.count(attach.Scrollback)
			return n > 0 && len(v.frames[len(v.frames)-1].Data) == 0
		})
		return v
	}
	one := view(20, 4, 10, [2]uint64{20, 20})
	two := view(20, 4, 30, [2]uint64{35, 38}) // the active writer: it came last
	lazy := r.s.attachIdle(attach.Params{Pane: p.pane})
	p.write("for the backlog\r\n")
	text.WriteString("for the backlog\r\n")
	for _, v := range []*viewer{one, two} {
		v.until("what was written", func() bool { return v.screen.Offset == uint64(p.wrote) })
	}
	page := r.rows(obj{"pane": p.pane, "tail": 1})

	before := []string{one.rendered(), two.rendered()}
	p.untouched(func() { r.everyRead(page, false) })
	p.write("a fence")
	text.WriteString("a fence")
	for i, v := range []*viewer{one, two} {
		v.fenced(p, before[i])
	}
	r.stillActive(p, one, two)

	// The one that read nothing has everything, in its order, and was not reset.
	go lazy.follow()
	lazy.until("all", func() bool { return lazy.screen.Offset == uint64(p.wrote) && lazy.count(attach.Resize) == 2 })
	lazy.mu.Lock()
	defer lazy.mu.Unlock()
	lazy.checkStream([]byte(text.String()))
	if lazy.count(attach.Resync) != 0 {
		r.Errorf("the client that reads late got %s", lazy.told())
	}
}

// fenced checks that what a viewer gets next is what the program wrote last, "a
// fence", and that nothing else has changed since it rendered before.
func (v *viewer) fenced(p *program, before string) {
	v.t.Helper()
	v.until("the fence", func() bool { return v.screen.Offset == uint64(p.wrote) })
	v.mu.Lock()
	fence := v.frames[len(v.frames)-1]
	if fence.Type != attach.Output || string(fence.Data) != "a fence" || fence.Offset != uint64(p.wrote-len("a fence")) {
		v.t.Errorf("the client got %s", v.told())
	}
	v.frames = v.frames[:len(v.frames)-1]
	v.mu.Unlock()
	want := strings.ReplaceAll(before, fmt.Sprintf("offset %d", fence.Offset), fmt.Sprintf("offset %d", p.wrote))
	want = strings.Replace(want, padded(20, "")[0]+`"`, padded(20, "a fence")[0]+`"`, 1)
	if after := v.rendered(); after != want {
		v.t.Errorf("the client renders\n%s\nand should\n%s", after, want)
	}
}

// stillActive checks that reads do not make another writer the active one. Behind a
// viewport of the first one's own its typing changes no size; that of the other does.
func (r *rig) stillActive(p *program, one, two *viewer) {
	r.Helper()
	if err := one.Viewport(22, 5); err != nil {
		r.Fatal(err)
	}
	two.until("the first one's size", func() bool { return two.count(attach.Resize) == 1 })
	r.performFast(selections(r.rows(obj{"pane": p.pane, "tail": 1})), 5)
	if err := one.Input([]byte("1")); err != nil {
		r.Fatal(err)
	}
	p.arrives("1")
	if now := r.rows(obj{"pane": p.pane, "tail": 1}); now.Cols != 22 || now.Rows != 5 {
		r.Errorf("the active writer's size has changed: %.300s", now.text)
	}
	if err := two.Input([]byte("2")); err != nil {
		r.Fatal(err)
	}
	p.arrives("2")
	two.until("its own size", func() bool { return two.screen.Term.Bounds().Cols == 20 })
	two.until("no other size", func() bool { return two.count(attach.Resize) == 2 })
}
