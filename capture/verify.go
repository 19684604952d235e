package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// verifyStep is how many bytes of the stream lie between two reports of progress.
const verifyStep = 4 << 20

// Kinds of a VerifyItem.
const (
	VerifyProgress = "progress"
	VerifyDamage   = "damage"
	VerifyDrift    = "drift"
)

// VerifyItem is what verifying reports on its way.
//
//	progress  everything below Offset was read, of End
//	damage    What is wrong at Offset. LostBytes of the stream from there on cannot
//	          be read, and no screen behind Offset and before End can be shown
//	drift     What differs at Offset between the checkpoint there and what the log
//	          before it replays to
type VerifyItem struct {
	Kind      string `json:"kind"`
	Offset    uint64 `json:"offset"`
	End       uint64 `json:"end"`
	LostBytes uint64 `json:"lost_bytes"`
	What      string `json:"what,omitempty"`
}

// VerifyResult sums up what was verified: the log from From to Offset.
type VerifyResult struct {
	Pane        string `json:"pane"`
	From        uint64 `json:"from"`
	Offset      uint64 `json:"offset"`
	Frames      uint64 `json:"frames"`
	Checkpoints int    `json:"checkpoints"`
	Compared    int    `json:"compared"` // checkpoints that a replay led up to
	Damages     int    `json:"damages"`
	Drifts      int    `json:"drifts"`
	LostBytes   uint64 `json:"lost_bytes"`
	Sound       bool   `json:"sound"` // no damage and no drift
}

// Verify reads all of a log, as far as it reached when Verify was called: every
// checksum of a segment or a checkpoint, every frame. It replays the frames from
// checkpoint to checkpoint and compares the states where both are of this version
// of the terminal and of its width table. What is wrong goes to report; it costs
// its own part only, and the rest is verified all the same. An error means that the
// verifying itself failed, or report.
func Verify(ctx context.Context, log *store.Log, pane string, report func(VerifyItem) error) (*VerifyResult, error) {
	v := verifier{log: log, send: report, end: log.End()}
	v.result = VerifyResult{Pane: pane, From: log.Oldest(), Offset: v.end.Offset}
	for {
		err := v.run(ctx, store.Pos{Offset: v.result.From})
		if errors.Is(err, store.ErrEvicted) && log.Oldest() > v.result.From {
			v.result.From = log.Oldest() // it lost its beginning meanwhile
			v.term, v.waiting = nil, nil
			continue
		}
		if err == nil {
			err = v.tell(v.end.Offset)
		}
		if err != nil {
			return nil, err
		}
		v.result.Sound = v.result.Damages+v.result.Drifts == 0
		return &v.result, v.send(VerifyItem{Kind: VerifyProgress, Offset: v.end.Offset, End: v.end.Offset})
	}
}

// verifier is one Verify under way.
type verifier struct {
	log    *store.Log
	send   func(VerifyItem) error
	end    store.Pos
	result VerifyResult

	term    *replay.Terminal // at the reader's position; nil if nobody knows
	gap     bool             // the last frame was a Gap
	waiting []VerifyItem     // damages whose End is not known yet
	told    uint64           // progress
}

// run verifies from the first checkpoint at or behind from on.
func (v *verifier) run(ctx context.Context, from store.Pos) error {
	cps := checkpoints{log: v.log}
	cps.seek(from)
	defer func() { cps.stop() }()
	r, err := v.reader(from, &cps)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	for {
		for cp, ok := cps.peek(); ok && !r.At().Before(cp.Pos); cp, ok = cps.peek() {
			if err := v.checkpoint(cp, r.At()); err != nil {
				return err
			}
			cps.next()
		}
		at := r.At()
		if at.Seq >= v.end.Seq {
			return nil
		}
		f, err := r.Next()
		var damaged *store.DamagedError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &damaged):
			v.lose(VerifyItem{Kind: VerifyDamage, Offset: at.Offset, LostBytes: r.At().Offset - at.Offset, What: firstLine(damaged.Err)})
		case err != nil:
			return err
		default:
			if err := v.frame(f); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// reader is a reader of the log from its first checkpoint on, nil if there is nothing.
func (v *verifier) reader(from store.Pos, cps *checkpoints) (*store.Reader, error) {
	if first, ok := cps.peek(); ok {
		return v.log.Read(first.Pos)
	}
	if from.Offset >= v.end.Offset {
		return nil, nil
	}
	r, err := v.log.ReadOffset(from.Offset)
	if err == nil {
		lost := max(r.At().Offset, from.Offset) - from.Offset
		v.lose(VerifyItem{Kind: VerifyDamage, Offset: from.Offset, LostBytes: lost, What: errNoCheckpoints.Error()})
	}
	return r, err
}

// frame replays one frame.
func (v *verifier) frame(f store.Frame) error {
	v.result.Frames++
	v.gap = f.Kind == store.Gap
	if v.term != nil {
		if err := replay.Apply(v.term, f); err != nil {
			v.lose(VerifyItem{Kind: VerifyDamage, Offset: f.Offset, What: err.Error()})
		} else {
			v.term.TakeReplies()
		}
	}
	if f.Offset-min(f.Offset, v.told) < verifyStep {
		return nil
	}
	v.told = f.Offset
	return v.send(VerifyItem{Kind: VerifyProgress, Offset: f.Offset, End: v.end.Offset})
}

// lose notes a damage behind which the screen is not known any more.
func (v *verifier) lose(damage VerifyItem) {
	v.term = nil
	v.waiting = append(v.waiting, damage)
}

// tell reports the damages that wait: from until on, screens are known again.
func (v *verifier) tell(until uint64) error {
	for _, damage := range v.waiting {
		damage.End = max(until, damage.Offset)
		v.result.Damages++
		v.result.LostBytes += damage.LostBytes
		if err := v.send(damage); err != nil {
			return err
		}
	}
	v.waiting = nil
	return nil
}

// checkpoint verifies one checkpoint; at is where the frames are, at it or, if
// those there cannot be read, behind it.
func (v *verifier) checkpoint(cp foundCheckpoint, at store.Pos) error {
	state, err := cp.state()
	if err != nil {
		damage := VerifyItem{Kind: VerifyDamage, Offset: cp.Offset, What: "checkpoint: " + firstLine(err)}
		if v.term == nil || v.gap {
			v.lose(damage)
			return nil
		}
		damage.What += "; an earlier one and the log lead to the same place, in more time"
		v.waiting = append(v.waiting, damage)
		return v.tell(cp.Offset)
	}
	v.result.Checkpoints++
	if cp.Pos != at {
		return nil // the frames behind it are damaged: it leads nowhere
	}
	if v.term != nil && !v.gap && state.Semantics == replay.Semantics && state.Widths == replay.WidthTable {
		v.result.Compared++
		what, err := compare(cp.Checkpoint, state, v.term)
		if err != nil || what == "" {
			return err
		}
		v.result.Drifts++
		if err := v.send(VerifyItem{Kind: VerifyDrift, Offset: cp.Offset, End: cp.Offset, What: what}); err != nil {
			return err
		}
	}
	// Each piece of the log is judged by the checkpoint that it begins with.
	v.gap = false
	t, err := replay.Hydrate(v.log, cp.Pos)
	if err != nil {
		v.term = nil // it builds on one that is damaged, which was reported
		return nil
	}
	v.term = t
	return v.tell(cp.Offset)
}

// firstLine is what an error says, without what a database adds for its makers.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Unopened reports a log that cannot even be opened.
func Unopened(pane string, damaged *store.DamagedError, report func(VerifyItem) error) (*VerifyResult, error) {
	return &VerifyResult{Pane: pane, Damages: 1}, report(VerifyItem{
		Kind: VerifyDamage, Offset: damaged.Offset, End: damaged.Offset,
		What: "the log cannot be opened, and all of it is lost: " + firstLine(damaged.Err),
	})
}

// compare says in what way the state of a checkpoint is not that of t, or "".
// Checkpoints inside a span leave out rows, which are taken from t.
func compare(cp store.Checkpoint, state *checkpoint.State, t *replay.Terminal) (string, error) {
	want := t.State()
	if !cp.Full {
		if err := state.Complete(t.State()); err != nil {
			return "it does not continue the rows before it", nil
		}
	}
	restored, err := replay.Restore(state)
	if err != nil {
		return err.Error(), nil
	}
	got := restored.State()
	if first := max(got.History.First, want.History.First); cp.Full && mayLackRows(want.Size) &&
		got.Clock.Epoch == want.Clock.Epoch {
		got, want = restored.StateSince(first), t.StateSince(first)
	}
	if bytes.Equal(checkpoint.Encode(nil, got), checkpoint.Encode(nil, want)) {
		return "", nil
	}
	return "the checkpoint and the log before it differ in " + difference(got, want), nil
}

// mayLackRows reports whether a whole state of that size may have been too large for a
// checkpoint, so that the oldest rows were left out of it: the text of a cell and its
// style take up to 85 bytes, on each of two screens.
func mayLackRows(size checkpoint.Size) bool {
	return 2*85*size.Cols*size.Rows+replay.MaxHistoryRow*size.Scrollback+replay.MaxHistoryBytes+replay.MaxLinkBytes > store.MaxCheckpoint/2
}

// difference names the first part in which two states differ.
func difference(a, b *checkpoint.State) string {
	parts := []struct {
		name string
		of   func(s *checkpoint.State) checkpoint.State
	}{
		{"the place in the stream", func(s *checkpoint.State) checkpoint.State { return checkpoint.State{Clock: s.Clock} }},
		{"the size", func(s *checkpoint.State) checkpoint.State { return checkpoint.State{Size: s.Size} }},
		{"the cursor", func(s *checkpoint.State) checkpoint.State { return checkpoint.State{Cursor: s.Cursor} }},
		{"the modes", func(s *checkpoint.State) checkpoint.State {
			return checkpoint.State{Modes: s.Modes, Region: s.Region, Tabs: s.Tabs, OnAlt: s.OnAlt}
		}},
		{"the screen", func(s *checkpoint.State) checkpoint.State {
			return checkpoint.State{Main: s.Main, Alt: s.Alt, Styles: s.Styles, Links: s.Links}
		}},
		{"the history", func(s *checkpoint.State) checkpoint.State { return checkpoint.State{History: s.History} }},
	}
	for _, p := range parts {
		x, y := p.of(a), p.of(b)
		if !bytes.Equal(checkpoint.Encode(nil, &x), checkpoint.Encode(nil, &y)) {
			return p.name
		}
	}
	return "names, colours or an unfinished sequence"
}

// foundCheckpoint is a checkpoint, or what came in its place.
type foundCheckpoint struct {
	store.Checkpoint
	err error
}

func (f *foundCheckpoint) state() (*checkpoint.State, error) {
	if f.err != nil {
		return nil, f.err
	}
	state, err := checkpoint.Decode(f.Blob)
	if err == nil && state.Clock.Offset != f.Offset {
		err = fmt.Errorf("it holds the state at offset %d", state.Clock.Offset)
	}
	return state, err
}

// checkpoints walks the checkpoints of a log, past those that cannot be read.
type checkpoints struct {
	log  *store.Log
	pull func() (store.Checkpoint, error, bool)
	stop func()
	head foundCheckpoint
	ok   bool
	// behind is what stands behind a head that hides its neighbours.
	behind *foundCheckpoint
}

// seek goes to the first checkpoint at or behind from.
func (c *checkpoints) seek(from store.Pos) {
	c.walk(from)
	c.next()
}

func (c *checkpoints) walk(from store.Pos) {
	if c.stop != nil {
		c.stop()
	}
	c.pull, c.stop = iter.Pull2(c.log.Checkpoints(from))
}

func (c *checkpoints) peek() (foundCheckpoint, bool) { return c.head, c.ok }

func (c *checkpoints) next() {
	if c.behind != nil {
		c.head, c.behind = *c.behind, nil
		return
	}
	was := c.head.Pos
	cp, err, ok := c.pull()
	c.head, c.ok = found(cp, err), ok
	if !ok || !hides(was, cp, err) {
		return
	}
	// What cannot be read is a block of the database, and with it the way on. Another
	// walk begins at the first offset from which there is one.
	c.head.Pos = store.Pos{Offset: was.Offset, Seq: was.Seq + 1}
	tryFrom := func(offset uint64) bool {
		c.walk(store.Pos{Offset: offset})
		cp, err, ok := c.pull()
		next := found(cp, err)
		if c.behind = nil; ok && !hides(was, cp, err) {
			c.behind = &next
		}
		return c.behind != nil
	}
	bad, good, end := was.Offset, was.Offset+1, c.log.End().Offset
	for ; good < end && !tryFrom(good); good += good - was.Offset {
		bad = good
	}
	if good >= end {
		c.pull = func() (store.Checkpoint, error, bool) { return store.Checkpoint{}, nil, false }
		return
	}
	for good-bad > 1 {
		if mid := bad + (good-bad)/2; tryFrom(mid) {
			good = mid
		} else {
			bad = mid
		}
	}
	tryFrom(good)
}

func found(cp store.Checkpoint, err error) foundCheckpoint {
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		err = damaged.Err
	}
	return foundCheckpoint{cp, err}
}

// hides says whether an error behind position was is not about one checkpoint, of
// which the position would be known.
func hides(was store.Pos, cp store.Checkpoint, err error) bool {
	var damaged *store.DamagedError
	return err != nil && (!errors.As(err, &damaged) || !cp.Full && !was.Before(cp.Pos))
}
