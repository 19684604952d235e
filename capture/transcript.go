package capture

import (
	"fmt"
	"io"
	"time"

	"looptape/replay"
	"looptape/store"
)

// transcript writes every logical line once, when it leaves the screen for
// good, and what is on the screen at the end (contract.md, section 9). A rule
// line marks gaps, respawns, and restarts that something follows.
type transcript struct {
	w    io.Writer
	rule []byte // of a restart that nothing has followed yet
	buf  []byte
	err  error
}

func (e *transcript) begin(*replay.Terminal, store.Frame) error { return nil }

// line takes a line that was shown.
func (e *transcript) line(l replay.Line) { e.write(l.Text) }

func (e *transcript) write(line []byte) {
	if e.err != nil {
		return
	}
	e.buf = e.buf[:0]
	if e.rule != nil {
		e.buf, e.rule = append(append(e.buf, e.rule...), '\n'), nil
	}
	e.buf = append(append(e.buf, line...), '\n')
	_, e.err = e.w.Write(e.buf)
}

func (e *transcript) before(f store.Frame) error {
	if f.Kind == store.Output {
		return e.err
	}
	at := time.Unix(0, f.Time.Wall).UTC().Format(time.RFC3339)
	switch f.Kind {
	case store.Gap:
		e.write(fmt.Appendf(nil, "---- looptape: up to %d bytes from offset %d on are missing ----", f.Lost, f.Offset))
	case replay.MarkRestart:
		e.rule = fmt.Appendf(nil, "---- looptape: the recording ended at offset %d, %s ----", f.Offset, at)
	case replay.MarkRespawn:
		e.write(fmt.Appendf(nil, "---- looptape: respawned at offset %d, %s ----", f.Offset, at))
	}
	return e.err
}

func (e *transcript) frame(*replay.Terminal, store.Frame) error { return e.err }

func (e *transcript) end() error { return e.err }
