package capture

import (
	"context"
	"fmt"
	"testing"

	"looptape/replay"
	"looptape/store"
)

// losing is a tape whose log takes nothing for a while, and which a wait waits for.
type losing struct {
	*tape
	archive *replay.Terminal // of what the log has; nil while the pane is there
	looks   int              // how often the pane was looked at
	// then are what happens, one after the other, when the wait waits for something.
	then []func()
}

func (p *losing) View(_ context.Context, read func(*replay.Terminal, bool)) error {
	if p.looks++; p.looks > 100 {
		p.t.Fatal("the pane is looked at again and again")
	}
	if p.archive != nil {
		read(p.archive, true)
		return nil
	}
	read(p.term, p.closed)
	return nil
}

// Await is that of a pane: what there is already behind the place ends it at once.
func (p *losing) Await(ctx context.Context, at store.Pos) error {
	for p.archive == nil && !p.closed && p.term.Offset() <= at.Offset && p.log.End().Seq <= at.Seq {
		if len(p.then) == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		p.then[0]()
		p.then = p.then[1:]
	}
	return nil
}

// lost is output that the log does not take.
func (p *losing) lost(text string) func() { return func() { p.term.Feed([]byte(text)) } }

// closeGap has the log take output again.
func (p *losing) closeGap() {
	p.log.AppendGap(store.Time{}, p.term.Offset()-p.log.End().Offset, nil)
	p.checkpoint()
}

// TestWaitInOpenGap: while the log takes nothing a wait looks at the pane when there is
// something new, and not again and again; it goes on behind the gap; and it ends with
// the pane, also with one that stopped in the gap.
func TestWaitInOpenGap(t *testing.T) {
	pattern, quiet := "found", 50
	for i, c := range []struct {
		q    WaitRequest
		then func(p *losing) []func()
		want string // reason, offset, bytes missed, looks
	}{
		{WaitRequest{QuietMS: &quiet}, func(p *losing) []func() { return nil }, "quiet 6 3 3"},
		{WaitRequest{QuietMS: &quiet}, func(p *losing) []func() { return []func(){p.lost("two"), p.lost("more")} }, "quiet 13 10 5"},
		{WaitRequest{Pattern: &pattern}, func(p *losing) []func() {
			return []func(){p.lost("more"), p.closeGap, func() { p.write([]byte("found")) }}
		}, "pattern 15 7 4"},
		{WaitRequest{Pattern: &pattern}, func(p *losing) []func() {
			return []func(){p.lost("more"), func() { p.closed = true }}
		}, "exit 10 7 4"},
		{WaitRequest{}, func(p *losing) []func() {
			return []func(){func() { p.archive = replay.New(20, 5, 100); p.archive.Feed([]byte("one")) }}
		}, "exit 6 3 3"},
	} {
		p := &losing{tape: newTape(t, newStore(t), i, 20, 5)}
		p.write([]byte("one"))
		p.lost("two")()
		p.then = c.then(p)
		from := uint64(0)
		c.q.Pane, c.q.Since, c.q.TimeoutMS = "p3", &from, 60000
		r, err := Wait(t.Context(), p, c.q)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %d %d %d", r.Reason, r.Offset, r.MissedBytes, p.looks); got != c.want {
			t.Errorf("%d: %s, not %s", i, got, c.want)
		}
	}
}
