package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// ExportRequest says what to export, in which format: text, raw, asciicast or asciicast-v2.
type ExportRequest struct {
	Pane   string     `json:"pane"`
	Format string     `json:"format"`
	To     *uint64    `json:"to"` // offset to end at; nil is the end of the log
	Header CastHeader `json:"-"`  // of an asciicast: of the program that runs, or ran last
	// Begin is called before anything is written, with the offsets at which the
	// export begins and ends.
	Begin func(from, to uint64) error `json:"-"`
}

// ExportResult says which part of the stream an export holds.
type ExportResult struct {
	Pane        string `json:"pane"`
	From        uint64 `json:"from"`
	Offset      uint64 `json:"offset"`
	MissedBytes uint64 `json:"missed_bytes"`
}

// format writes one format of export. begin is called with the state of the
// terminal in front of the first frame, frame with each frame, end at the end.
type format interface {
	begin(t *replay.Terminal, at store.Frame) error
	frame(f store.Frame) error
	end() error
}

// Export writes the log of p, up to q.To or as far as it reached when Export was
// called, to w, in a few pieces at a time. Its memory does not depend on the
// length of the log. With the same beginning of the log and the same q.To it
// writes the same again.
func Export(ctx context.Context, p Pane, q ExportRequest, w io.Writer) (*ExportResult, error) {
	var format format
	switch q.Format {
	case "raw":
		format = &rawExport{w}
	case "asciicast":
		format = &asciicast{w: w, version: 3, header: q.Header}
	case "asciicast-v2":
		format = &asciicast{w: w, version: 2, header: q.Header}
	default:
		format = &transcript{w: w}
	}
	end := p.Log().End()
	if cast, ok := format.(*asciicast); ok {
		var err error
		if cast.generation, err = generationAt(p.Log(), end); err != nil {
			cast.header.Command = ""
		}
	}
	first, err := firstCheckpoint(p.Log())
	if err != nil {
		return nil, err
	}
	if q.To != nil && *q.To < end.Offset {
		end.Offset = *q.To
	}
	if end.Offset < first.Offset {
		return nil, store.ErrEvicted
	}
	result := &ExportResult{Pane: q.Pane, From: first.Offset, Offset: end.Offset}
	if q.Begin != nil {
		if err := q.Begin(result.From, result.Offset); err != nil {
			return nil, err
		}
	}
	if err := run(ctx, p.Log(), first, end, format, result); err != nil {
		return nil, err
	}
	return result, format.end()
}

// firstCheckpoint is what the log begins with.
func firstCheckpoint(log *store.Log) (store.Checkpoint, error) {
	for c, err := range log.Checkpoints(store.Pos{}) {
		return c, err
	}
	return store.Checkpoint{}, store.ErrNoCheckpoint
}

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

// run hands the frames from first on to format, to the frame before end.Seq and
// to what lies before end.Offset. Marks at that offset belong to it.
func run(ctx context.Context, log *store.Log, first store.Checkpoint, end store.Pos, format format, result *ExportResult) error {
	state, err := checkpoint.Decode(first.Blob)
	if err != nil {
		return &store.DamagedError{Pane: log.Pane(), Offset: first.Offset, Err: err}
	}
	t, err := replay.Restore(state)
	if err != nil {
		return &store.DamagedError{Pane: log.Pane(), Offset: first.Offset, Err: err}
	}
	r, err := log.Read(first.Pos)
	if err != nil {
		return err
	}
	defer r.Close()
	for begun := false; ; {
		f, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && (f.Seq >= end.Seq || !cut(&f, end.Offset)) {
			if !begun {
				return format.begin(t, store.Frame{Pos: first.Pos})
			}
			return nil
		}
		if err != nil {
			return err
		}
		if !begun {
			if err := format.begin(t, f); err != nil {
				return err
			}
			begun = true
		}
		if f.Kind == store.Gap {
			result.MissedBytes += f.Lost
		}
		if err := format.frame(f); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
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

// rawExport writes the bytes of the stream. Where bytes are missing it writes
// nothing: the result counts them.
type rawExport struct{ w io.Writer }

func (e *rawExport) begin(*replay.Terminal, store.Frame) error { return nil }
func (e *rawExport) end() error                                { return nil }

func (e *rawExport) frame(f store.Frame) error {
	if f.Kind != store.Output {
		return nil
	}
	_, err := e.w.Write(f.Data)
	return err
}

// transcript writes every logical line once, when it leaves the screen for
// good, and what is on the screen at the end (contract.md, section 9). A rule
// line marks gaps, respawns, and restarts that something follows.
type transcript struct {
	w    io.Writer
	t    *replay.Terminal
	rule []byte // of a restart that nothing has followed yet
	line []byte
	err  error
}

func (e *transcript) begin(t *replay.Terminal, _ store.Frame) error {
	e.t = t
	e.history()
	t.SetLineSink(func(l replay.Line) { e.write(l.Text) })
	return e.err
}

// history writes the lines that were history already where the log begins.
func (e *transcript) history() {
	b := e.t.Bounds()
	var line []byte
	for row := range e.t.Rows(b.Oldest, b.Active) {
		line = append(line, row.Text...)
		if row.Wrapped {
			continue
		}
		n := len(line)
		for n > 0 && line[n-1] == ' ' {
			n--
		}
		e.write(line[:n])
		line = line[:0]
	}
}

func (e *transcript) write(line []byte) {
	if e.err != nil {
		return
	}
	e.line = e.line[:0]
	if e.rule != nil {
		e.line, e.rule = append(append(e.line, e.rule...), '\n'), nil
	}
	e.line = append(append(e.line, line...), '\n')
	_, e.err = e.w.Write(e.line)
}

func (e *transcript) frame(f store.Frame) error {
	at := time.Unix(0, f.Time.Wall).UTC().Format(time.RFC3339)
	switch f.Kind {
	case store.Gap:
		e.t.FlushLines()
		e.write(fmt.Appendf(nil, "---- looptape: up to %d bytes from offset %d on are missing ----", f.Lost, f.Offset))
	case replay.MarkRestart:
		e.t.FlushLines()
		e.rule = fmt.Appendf(nil, "---- looptape: the recording ended at offset %d, %s ----", f.Offset, at)
	case replay.MarkRespawn:
		e.t.FlushLines()
		e.write(fmt.Appendf(nil, "---- looptape: respawned at offset %d, %s ----", f.Offset, at))
	}
	if e.err == nil {
		e.err = replay.Apply(e.t, f)
	}
	e.t.TakeReplies()
	return e.err
}

func (e *transcript) end() error {
	e.t.FlushLines()
	return e.err
}
