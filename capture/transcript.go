package capture

import (
	"fmt"
	"io"
	"time"

	"looptape/replay"
	"looptape/store"
)

// transcript writes every logical line once, when it leaves the screen for
// good, and what is on the screen at the end (contract.md, section 9). A rule line marks
// what was evicted in front of it, gaps, respawns, and restarts that something follows.
type transcript struct {
	w       io.Writer
	look    look
	evicted uint64 // bytes of the range in front of the log
	rule    string // of a restart that nothing has followed yet
	buf     []byte
	err     error
}

// look is how lines are written. Each function appends to dst.
type look interface {
	head(dst []byte) []byte
	line(dst []byte, l replay.Line) []byte
	rule(dst []byte, text string) []byte
	tail(dst []byte) []byte
}

func (e *transcript) begin(_ *replay.Terminal, first store.Frame) error {
	e.write(e.look.head(e.buf[:0]))
	if e.evicted > 0 {
		e.ruleLine(fmt.Sprintf("---- looptape: %d bytes in front of offset %d are no longer retained ----", e.evicted, first.Offset))
	}
	return e.err
}

// line takes a line that was shown.
func (e *transcript) line(l replay.Line) {
	e.buf = e.buf[:0]
	if e.rule != "" {
		e.buf = e.look.rule(e.buf, e.rule)
		e.rule = ""
	}
	e.write(e.look.line(e.buf, l))
}

func (e *transcript) write(b []byte) {
	if e.buf = b; e.err == nil && len(b) > 0 {
		_, e.err = e.w.Write(b)
	}
}

// ruleLine writes a rule line, and before it the one that waits.
func (e *transcript) ruleLine(text string) {
	e.buf = e.buf[:0]
	if e.rule != "" {
		e.buf = e.look.rule(e.buf, e.rule)
		e.rule = ""
	}
	e.write(e.look.rule(e.buf, text))
}

func (e *transcript) before(f store.Frame) error {
	if f.Kind == store.Output {
		return e.err
	}
	at := time.Unix(0, f.Time.Wall).UTC().Format(time.RFC3339)
	switch f.Kind {
	case store.Gap:
		e.ruleLine(fmt.Sprintf("---- looptape: up to %d bytes from offset %d on are missing ----", f.Lost, f.Offset))
	case replay.MarkRestart:
		e.rule = fmt.Sprintf("---- looptape: the recording ended at offset %d, %s ----", f.Offset, at)
	case replay.MarkRespawn:
		e.ruleLine(fmt.Sprintf("---- looptape: respawned at offset %d, %s ----", f.Offset, at))
	}
	return e.err
}

func (e *transcript) frame(*replay.Terminal, store.Frame) error { return e.err }

func (e *transcript) end() error {
	e.write(e.look.tail(e.buf[:0]))
	return e.err
}

// plain is text without styles.
type plain struct{}

func (plain) head(dst []byte) []byte                { return dst }
func (plain) line(dst []byte, l replay.Line) []byte { return append(append(dst, l.Text...), '\n') }
func (plain) rule(dst []byte, text string) []byte   { return append(append(dst, text...), '\n') }
func (plain) tail(dst []byte) []byte                { return dst }

// ansi is text with SGR sequences and no others: each line sets what it needs, and
// leaves nothing behind. Nothing else in it is a control, so it is safe to show.
type ansi struct{ plain }

func (ansi) line(dst []byte, l replay.Line) []byte {
	text, styled := l.Text, false
	for _, run := range l.Runs {
		s := run.Style
		if s.Link = ""; s != (replay.Style{}) {
			dst, styled = s.AppendSGR(dst), true
		} else if styled {
			dst, styled = append(dst, "\x1b[0m"...), false
		}
		dst = append(dst, text[:run.Len]...)
		text = text[run.Len:]
	}
	if styled {
		dst = append(dst, "\x1b[0m"...)
	}
	return append(dst, '\n')
}
