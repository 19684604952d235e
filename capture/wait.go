package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"time"
	"unicode/utf8"

	"looptape/replay"
	"looptape/store"
)

// WaitRequest says what to wait for, from where on. Nil is a parameter not given;
// the ranges of the values are the manifest's.
type WaitRequest struct {
	Pane      string  `json:"pane"`
	Cursor    *string `json:"cursor"`
	Since     *uint64 `json:"since"`
	Pattern   *string `json:"pattern"` // RE2, matched against each line of the filtered text
	Exit      bool    `json:"exit"`
	Command   bool    `json:"command"`
	QuietMS   *int    `json:"quiet_ms"`
	TimeoutMS int     `json:"timeout_ms"`

	Frame int      `json:"-"` // bounds the size of the result as JSON, in bytes; 0 does not
	Store [16]byte `json:"-"` // id of the store
}

// WaitResult says why a wait ended. The Cursor, at Offset, is where the next one goes
// on without missing or repeating a match.
type WaitResult struct {
	Pane        string   `json:"pane"`
	Reason      string   `json:"reason"` // pattern, exit, command, quiet or timeout
	Matched     *Matched `json:"matched,omitempty"`
	Exit        *int     `json:"exit,omitempty"` // of the command
	Cursor      string   `json:"cursor"`
	Offset      uint64   `json:"offset"`
	Missed      bool     `json:"missed"`
	MissedBytes uint64   `json:"missed_bytes"`
}

// Matched is the place in the stream that a wait ended with: the bytes [Start, End) of
// what matches the pattern, in Line; or the output of the command, and what it was.
type Matched struct {
	Start uint64 `json:"start"`
	End   uint64 `json:"end"`
	Line  string `json:"line"`
}

// wait is a wait under way: a reader of the stream, which has looked at everything in
// front of a position.
type wait struct {
	p       Pane
	q       WaitRequest
	r       *WaitResult
	pattern *pattern // nil without one

	generation uint32 // of the program that is waited for

	at     uint64    // everything in front of this offset was looked at
	next   store.Pos // the frame to look at next
	filter filter
	text   []byte // reused
	line   []byte // text since the last LF, at most replay.MaxLine
	begin  anchor // where line begins
	marks  markScan
	ran    *mark  // the last beginning of a command
	ended  *mark  // the end of a command
	placed uint64 // marks were looked for from this offset on
	blind  bool   // what is in front of it began nothing that can end

	active   time.Time // when the pane last wrote something that was waited for
	deadline time.Time
	scanned  uint64 // bytes looked at, the more with a pattern that is large
}

// anchor is a place in the stream: skip bytes of text behind an offset, at which the
// filter was in a state.
type anchor struct {
	offset uint64
	filter []byte
	skip   int
}

// Wait returns when something happens behind a place in the stream, or the time is
// over: the first that happens there, be it long past. The program's exit ends every
// wait once nothing more can come.
//
// A pattern is matched against each line of the text of capture_since, as soon as it
// is there; the last line also while it is incomplete. Once the time is over at most
// 16 MiB of the stream are looked at: the next wait goes on there. The errors are those
// of Since, invalid_params.pattern, and invalid_params.wait.
func Wait(ctx context.Context, p Pane, q WaitRequest) (*WaitResult, error) {
	w := &wait{p: p, q: q, r: &WaitResult{Pane: q.Pane}}
	if q.Pattern != nil {
		var err error
		if w.pattern, err = compile(*q.Pattern); err != nil {
			return nil, err
		}
	}
	if q.QuietMS != nil && *q.QuietMS > q.TimeoutMS {
		return nil, &Error{"invalid_params.wait", "quiet_ms is above timeout_ms: the wait could never end by it", nil}
	}
	if err := w.place(ctx); err != nil {
		return nil, err
	}
	return w.r, w.run(ctx)
}

// run looks at what there is, and then waits for more, until something is found.
func (w *wait) run(ctx context.Context) error {
	w.active = time.Now()
	w.deadline = w.active.Add(time.Duration(w.q.TimeoutMS) * time.Millisecond)
	for {
		done, err := w.step(ctx)
		if errors.Is(err, store.ErrEvicted) {
			// Again from where the line begins, or from what is left of it.
			err = w.filter.setState(w.begin.filter)
			if err == nil {
				err = w.enter(w.begin.offset)
			}
		}
		if err != nil || done {
			return err
		}
	}
}

// step looks at what there is, and waits until there is more, or ends the wait.
func (w *wait) step(ctx context.Context) (done bool, err error) {
	before := w.at
	if done, err = w.look(ctx); done || err != nil {
		return done, err
	}
	closed, err := w.skipOpenGap(ctx)
	if err != nil {
		return false, err
	}
	if closed {
		return true, w.end("exit", w.at, w.filter.appendState(nil))
	}
	now := time.Now()
	if w.at > before {
		w.active = now
	}
	until := w.deadline
	if w.q.QuietMS != nil {
		if quiet := w.active.Add(time.Duration(*w.q.QuietMS) * time.Millisecond); !now.Before(quiet) {
			return true, w.unfound("quiet")
		} else if quiet.Before(until) {
			until = quiet
		}
	}
	if !now.Before(w.deadline) {
		return true, w.unfound("timeout")
	}
	limited, cancel := context.WithDeadline(ctx, until)
	// While a gap is open the stream is ahead of the log: what it has come to is no news.
	err = w.p.Await(limited, store.Pos{Offset: max(w.at, w.next.Offset), Seq: w.next.Seq})
	cancel()
	if err != nil && (ctx.Err() != nil || limited.Err() == nil) {
		return false, err
	}
	return false, nil
}

// skipOpenGap passes over what the pane has written, and the log has not. closed says
// that the wait has looked at all that there can be: a pane that stopped in a gap ends
// where its log does, in front of what the wait has passed over.
func (w *wait) skipOpenGap(ctx context.Context) (closed bool, err error) {
	err = w.p.View(ctx, func(t *replay.Terminal, over bool) {
		end := t.Offset()
		if end > w.p.Log().End().Offset && end > w.at {
			w.miss(end - w.at)
			w.at = end
			w.filter.lexer.SetState(t.AppendLexerState(nil)) // that AppendLexerState made: it cannot fail
			w.restart()
		}
		closed = over && w.at >= end
	})
	return closed, err
}

// look looks at the frames that there are, until something is found or the time is over
// and there are too many.
func (w *wait) look(ctx context.Context) (done bool, err error) {
	r, err := w.p.Log().Read(w.next)
	if err != nil {
		return false, err
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.match(ctx, w.line, math.MaxUint64)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
		if w.scanned >= scanBytes && time.Now().After(w.deadline) {
			return true, w.unfound("timeout")
		}
		from := max(w.at, f.Offset)
		w.next = f.End()
		switch f.Kind {
		case store.Output:
			if done, err = w.output(ctx, from, f.Data[min(from-f.Offset, uint64(len(f.Data))):], f.Time); done || err != nil {
				return done, err
			}
		case store.Gap:
			if f.End().Offset <= from {
				continue
			}
			if done, err = w.match(ctx, w.line, math.MaxUint64); done || err != nil {
				return done, err
			}
			w.at = from
			if err := w.passGap(f.End()); err != nil {
				return false, err
			}
		case replay.MarkExit, replay.MarkClosed, replay.MarkRestart, replay.MarkRespawn:
			if f.Kind == replay.MarkExit && !w.q.Exit {
				continue
			}
			if done, err = w.match(ctx, w.line, math.MaxUint64); done || err != nil {
				return done, err
			}
			return true, w.end("exit", f.Offset, w.filter.appendState(nil))
		}
	}
}

// output looks at bytes of the stream.
func (w *wait) output(ctx context.Context, at uint64, p []byte, t store.Time) (done bool, err error) {
	w.marks.feed(at, p, t)
	w.at = at + uint64(len(p))
	w.scanned += uint64(len(p))
	before := anchor{offset: at, filter: w.filter.appendState(nil)}
	w.filter.bytes, w.filter.lines = unlimited, unlimited
	w.text, _ = w.filter.feed(w.text[:0], p)
	limit := uint64(math.MaxUint64)
	if w.q.Command && w.ended != nil {
		limit = w.ended.start
	}
	for text := w.text; w.pattern != nil; {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		if len(w.line) == 0 {
			w.begin = before
			w.begin.skip = len(w.text) - len(text)
		}
		w.line = append(w.line, line...)
		if !whole && len(w.line) < replay.MaxLine {
			break
		}
		if done, err = w.match(ctx, w.line, limit); done || err != nil {
			return done, err
		}
		w.line, text = w.line[:0], rest
		w.begin = before
		w.begin.skip = len(w.text) - len(rest)
	}
	if w.q.Command && w.ended != nil {
		if done, err = w.match(ctx, w.line, limit); done || err != nil {
			return done, err
		}
		return true, w.command()
	}
	if w.pattern == nil {
		w.restart()
	}
	return false, nil
}

// match ends the wait if the pattern is in a line, which begins at w.begin, and ends
// there in front of a limit.
func (w *wait) match(ctx context.Context, line []byte, limit uint64) (done bool, err error) {
	if w.pattern == nil || len(line) == 0 {
		return false, nil
	}
	w.scanned += w.pattern.cost(uint64(len(line))) - uint64(len(line))
	m, err := w.pattern.find(ctx, line)
	if m == nil || err != nil {
		return false, err
	}
	start, end, state, err := w.locate(m[0], m[1])
	if err != nil || end > limit {
		return false, err
	}
	w.r.Matched = &Matched{Start: start, End: end, Line: string(line)}
	return true, w.end("pattern", end, state)
}

// locate finds the bytes of the stream that the text [i, j) of the line stands in, and
// the state of the filter behind them.
func (w *wait) locate(i, j int) (start, end uint64, state []byte, err error) {
	i, j = i+w.begin.skip, j+w.begin.skip
	f := filter{bytes: unlimited, lines: unlimited}
	if err := f.setState(w.begin.filter); err != nil {
		return 0, 0, nil, err
	}
	start, end, state = w.begin.offset, w.begin.offset, w.begin.filter
	if j == 0 {
		return start, end, state, nil
	}
	clean, text, given := start-uint64(len(f.lexer.Held())), []byte(nil), 0 // a character that is cut
	s := since{pane: w.p, until: w.at}
	_, err = s.scan(w.begin.offset, unlimited, func(p []byte) int {
		for k := range p {
			text, _ = f.feed(text[:0], p[k:k+1])
			end++
			if given <= i && given+len(text) > i {
				start = clean
				// With a character may come what was due before it: a CR's LF, U+FFFD.
				if c, n := utf8.DecodeRune(text[i-given:]); i-given+n == len(text) && c != utf8.RuneError {
					start = end - uint64(n)
				}
			}
			if given += len(text); given >= j {
				if i == j {
					start = end
				}
				state = f.appendState(nil)
				return k
			}
			if f.lexer.Ground() {
				clean = end - uint64(len(f.lexer.Held()))
			}
		}
		return len(p)
	})
	return start, end, state, err
}

// mark notes what a shell says of its commands.
func (w *wait) mark(m mark) {
	switch {
	case w.ended != nil:
	case m.kind == outputStart:
		w.ran = &m
	case m.kind == commandEnd:
		w.ended = &m
	}
}

// command ends the wait with the end of a command.
func (w *wait) command() error {
	if err := w.lookForBegin(); err != nil {
		return err
	}
	m := &Matched{Start: w.ended.start, End: w.ended.start}
	var c Command
	if w.ran != nil {
		m.Start, m.Line = w.ran.end, commandLine(w.ran.text)
		c.finish(w.ran, w.ended)
	} else {
		c.finish(w.ended, w.ended)
	}
	w.r.Matched, w.r.Exit = m, c.Exit
	return w.end("command", w.ended.end, (&filter{}).appendState(nil)) // behind a sequence
}

// unfound ends the wait without a match. What has been begun of a line is looked at
// again by the next one.
func (w *wait) unfound(reason string) error {
	if w.pattern == nil || len(w.line) == 0 {
		return w.end(reason, w.at, w.filter.appendState(nil))
	}
	_, at, state, err := w.locate(0, 0)
	if err != nil {
		return err
	}
	return w.end(reason, at, state)
}

func (w *wait) end(reason string, offset uint64, state []byte) error {
	w.r.Reason, w.r.Offset = reason, offset
	w.r.Cursor = Cursor{Store: w.q.Store, Pane: w.p.Log().Pane(), Generation: w.generation, Offset: offset, Filter: state}.String()
	return nil
}
