package capture

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// ExportRequest says what to export, in which format: text, raw, ansi,
// html, asciicast or asciicast-v2. Nil is a parameter not given.
type ExportRequest struct {
	Pane     string  `json:"pane"`
	Format   string  `json:"format"`
	From     *uint64 `json:"from"` // offset to begin at; nil is the beginning of the log
	To       *uint64 `json:"to"`   // offset to end at; nil is the end of the log
	FromTime *string `json:"from_time"`
	ToTime   *string `json:"to_time"` // see ParseTime
	Nth      *int    `json:"command"` // a command instead: -1 is the newest

	Header CastHeader `json:"-"` // of an asciicast: of the program that runs, or ran last
	Now    time.Time  `json:"-"` // which relative times count from
	// Begin is called before anything is written, with the offsets at which the
	// export begins and ends.
	Begin func(from, to uint64) error `json:"-"`
	// Progress is called with the offset that the export has come to; nil is not.
	Progress func(offset uint64) `json:"-"`
}

// ExportResult says which part of the stream an export holds.
type ExportResult struct {
	Pane        string `json:"pane"`
	From        uint64 `json:"from"`
	Offset      uint64 `json:"offset"`
	MissedBytes uint64 `json:"missed_bytes"` // of what was asked for, not in the log
}

// format writes one format of export. begin is called in front of the first frame,
// with the terminal there; before in front of each frame, before a gap, a restart or a
// respawn once the lines in front of it were reported; frame behind it, which t shows
// by then: behind a gap that is another Terminal, of the checkpoint there; end at the
// end. raw has no terminal.
type format interface {
	begin(t *replay.Terminal, first store.Frame) error
	before(f store.Frame) error
	frame(t *replay.Terminal, f store.Frame) error
	end() error
}

// export is an export under way.
type export struct {
	q      ExportRequest
	log    *store.Log
	format format
	w      *walk
	r      *ExportResult

	exportRange
}

// Export writes the log of p, as far as q says and it reached when Export was called,
// to w, in a few pieces at a time. Its memory does not depend on the length of the
// log. With the same beginning of the log and the same range it writes the same again.
//
// Transcripts have the lines whose last write lies in (From, To], raw the bytes [From,
// To), and an asciicast begins with the screen at From. Where retention overtakes it,
// it goes on at the new beginning of the log, as behind a gap.
//
// The errors, beside those of the log: invalid_params.export for a range that cannot
// be, invalid_params.time, not_found.offset for one that begins behind the end, and
// not_found.command.
func Export(ctx context.Context, p Pane, q ExportRequest, w io.Writer) (*ExportResult, error) {
	e := &export{q: q, log: p.Log(), r: &ExportResult{Pane: q.Pane}}
	if err := e.resolve(ctx, p, q); err != nil {
		return nil, err
	}
	e.choose(w)
	if err := e.open(); err != nil {
		return nil, err
	}
	defer func() { e.w.close() }()
	e.r.Offset = e.upTo
	if q.Begin != nil {
		if err := q.Begin(e.r.From, e.r.Offset); err != nil {
			return nil, err
		}
	}
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	return e.r, e.format.end()
}

// choose makes the format.
func (e *export) choose(w io.Writer) {
	switch e.q.Format {
	case "raw":
		e.format = &rawExport{w}
	case "asciicast", "asciicast-v2":
		cast := &asciicast{w: w, version: 3, header: e.q.Header}
		if e.q.Format == "asciicast-v2" {
			cast.version = 2
		}
		var err error
		if cast.generation, err = generationAt(e.log, e.log.End()); err != nil {
			cast.header.Command = ""
		}
		e.format = cast
	case "ansi":
		e.format = &transcript{w: w, look: ansi{}}
	case "html":
		e.format = &transcript{w: w, look: webPage{strings.TrimSuffix(e.q.Pane+": "+e.q.Header.Command, ": ")}}
	default:
		e.format = &transcript{w: w, look: plain{}}
	}
}

// open begins the walk where the range begins, or where the log does if that is
// behind it.
func (e *export) open() error {
	for {
		err := e.tryOpen()
		if !errors.Is(err, store.ErrEvicted) || e.upTo < e.log.Oldest() {
			return err
		}
	}
}

func (e *export) tryOpen() error {
	e.r.From, e.r.MissedBytes, e.beginning = e.from.Offset, 0, false
	at := e.from
	var err error
	switch oldest := e.log.Oldest(); {
	case e.whole || at.Offset < oldest:
		var c store.Checkpoint
		if c, err = firstCheckpoint(e.log); err != nil {
			return err
		}
		e.r.From, at, e.beginning = c.Offset, c.Pos, true
		e.r.MissedBytes = min(c.Offset, e.upTo) - e.from.Offset // from is 0 of the whole
	case at.Seq == 0:
		if at, err = frameAt(e.log, at.Offset); err != nil {
			return err
		}
	}
	if e.upTo < e.r.From {
		return store.ErrEvicted
	}
	if _, ok := e.format.(*rawExport); ok {
		e.w = &walk{log: e.log}
		e.w.r, err = e.log.Read(at)
		return err
	}
	var sink func(replay.Line)
	if lines, ok := e.format.(*transcript); ok {
		lines.evicted = e.r.MissedBytes
		above := uint64(0) // Offset of the line above
		sink = func(l replay.Line) {
			if len(l.Text) > 0 {
				above = l.Offset
			}
			if max(l.Offset, above) >= e.since { // a blank line belongs to what is above it
				lines.line(l)
			}
		}
	}
	if e.w, err = walkFrom(e.log, at, sink); err == nil && (e.q.Format == "ansi" || e.q.Format == "html") {
		e.w.styled = true
		e.w.t.StyleLines(true)
	}
	return err
}

// run hands the frames of the range on to the format. Marks at its end belong to it.
func (e *export) run(ctx context.Context) error {
	for begun := false; ; begun = true {
		f, err := e.next()
		done := errors.Is(err, io.EOF)
		if err != nil && !done {
			return err
		}
		if done = done || f.Seq >= e.end.Seq || !cut(&f, e.end.Offset); done {
			f = store.Frame{Pos: e.w.r.At()}
		}
		if !begun {
			if err := e.begin(&f); err != nil {
				return err
			}
		}
		if done {
			return e.finish()
		}
		if err := e.show(f); err != nil && !errors.Is(err, store.ErrEvicted) {
			return err
		}
		if e.q.Progress != nil {
			e.q.Progress(f.End().Offset)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// finish tells what is on the screen at the end of the range, and of the gap that is
// open there, behind which nothing is known yet.
func (e *export) finish() error {
	if e.w.t != nil {
		e.w.t.FlushLines()
	}
	at := e.w.r.At()
	at.Offset = max(e.end.Offset, e.r.From)
	if at.Offset >= e.upTo {
		return nil
	}
	gap := store.Frame{Pos: at, Kind: store.Gap, Lost: e.upTo - at.Offset}
	e.r.MissedBytes += gap.Lost
	return errors.Join(e.format.before(gap), e.format.frame(e.w.t, gap))
}

// next is the next frame, or the gap that stands for what retention has taken.
func (e *export) next() (store.Frame, error) {
	f, err := e.w.next()
	if errors.Is(err, store.ErrEvicted) {
		return e.w.overtaken()
	}
	return f, err
}

// begin begins the format in front of the first frame. What of that is in front of the
// range is only shown to the terminal.
func (e *export) begin(f *store.Frame) error {
	if n := e.r.From - min(f.Offset, e.r.From); n > 0 {
		switch f.Kind {
		case store.Output:
			if e.w.t != nil {
				e.w.t.Feed(f.Data[:n])
				e.w.t.TakeReplies()
			}
			f.Data = f.Data[n:]
		case store.Gap:
			f.Lost -= n
		}
		f.Offset += n
	}
	if err := e.format.begin(e.w.t, *f); err != nil {
		return err
	}
	if e.beginning && e.w.t != nil {
		e.w.t.ReportFrom(e.since)
	}
	return nil
}

// show shows a frame to the terminal and hands it on.
func (e *export) show(f store.Frame) error {
	if f.Kind == store.Gap {
		e.r.MissedBytes += f.Lost
	}
	if f.Kind == store.Gap || f.Kind == replay.MarkRestart || f.Kind == replay.MarkRespawn {
		if e.w.t != nil {
			e.w.t.FlushLines()
		}
	}
	if err := e.format.before(f); err != nil {
		return err
	}
	var overtaken error
	if e.w.t != nil {
		if overtaken = e.w.apply(f); overtaken != nil && !errors.Is(overtaken, store.ErrEvicted) {
			return overtaken
		}
	}
	return errors.Join(e.format.frame(e.w.t, f), overtaken)
}

// cut shortens a frame that goes beyond the offset to; false means that it begins
// there or later.
func cut(f *store.Frame, to uint64) bool {
	switch f.Kind {
	case store.Output:
		f.Data = f.Data[:min(uint64(len(f.Data)), to-min(to, f.Offset))]
		return f.Offset < to
	case store.Gap:
		f.Lost = min(f.Lost, to-min(to, f.Offset))
		return f.Offset < to
	}
	return f.Offset <= to
}

// firstCheckpoint is what the log begins with. Behind the loss of that, nothing can be
// shown before the next one.
func firstCheckpoint(log *store.Log) (store.Checkpoint, error) {
	for c, err := range log.Checkpoints(store.Pos{}) {
		return c, err
	}
	if oldest := log.Oldest(); oldest < log.Durable() {
		return store.Checkpoint{}, &store.DamagedError{Pane: log.Pane(), Offset: oldest, Err: errNoCheckpoints}
	}
	return store.Checkpoint{}, store.ErrNoCheckpoint
}

// errNoCheckpoints is what is wrong with a log of which no checkpoint is left.
var errNoCheckpoints = errors.New("all of its checkpoints are missing")

// generationAt is the generation of the last checkpoint at or in front of at: that
// of the place itself, since each respawn is followed by a checkpoint.
func generationAt(log *store.Log, at store.Pos) (uint32, error) {
	c, err := log.Checkpoint(at)
	if err != nil {
		return 0, err
	}
	state, err := checkpoint.Decode(c.Blob)
	if err != nil {
		return 0, &store.DamagedError{Pane: log.Pane(), Offset: c.Offset, Err: err}
	}
	return state.Clock.Generation, nil
}

// rawExport writes the bytes of the stream. Where bytes are missing it writes
// nothing: the result counts them.
type rawExport struct{ w io.Writer }

func (e *rawExport) begin(*replay.Terminal, store.Frame) error { return nil }
func (e *rawExport) before(store.Frame) error                  { return nil }
func (e *rawExport) end() error                                { return nil }

func (e *rawExport) frame(_ *replay.Terminal, f store.Frame) error {
	if f.Kind != store.Output {
		return nil
	}
	_, err := e.w.Write(f.Data)
	return err
}
