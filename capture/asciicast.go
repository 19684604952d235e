package capture

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"looptape/replay"
	"looptape/store"
)

// asciicast writes asciicast v3: a header line, then one event a line, with the
// seconds since the event before it. The format holds UTF-8 only: what is none becomes
// U+FFFD as the terminal shows it, and a character that is cut between two frames goes
// into the event of the second one.
//
// A player starts with a blank screen and knows output and sizes only. So where the
// stream does not begin, or the terminal changes by itself (a restart, a respawn), the
// screen and modes come as output too: a snapshot without history. A player that
// reflows at a resize brings back no rows from before it.
type asciicast struct {
	w          io.Writer
	command    []string // of the program that ran last; its generation is that:
	generation uint32
	t          *replay.Terminal // behind the last frame
	last       int64            // monotonic time of the last event, ns
	held       []byte           // the beginning of a character
	raw        []byte           // scratch
	text       []byte           // scratch
	line       []byte           // scratch
}

func (e *asciicast) begin(t *replay.Terminal, first store.Frame) error {
	b := t.Bounds()
	if t.Generation() != e.generation {
		e.command = nil // the recording begins with another program
	}
	type term struct {
		Cols int    `json:"cols"`
		Rows int    `json:"rows"`
		Type string `json:"type"`
	}
	header, err := json.Marshal(struct {
		Version   int    `json:"version"`
		Term      term   `json:"term"`
		Timestamp int64  `json:"timestamp"`
		Command   string `json:"command,omitempty"`
	}{3, term{b.Cols, b.Rows, "xterm-256color"}, first.Time.Wall / 1e9, shellQuote(e.command)})
	if err != nil {
		return err
	}
	e.t, e.last = t, first.Time.Mono
	if _, err = e.w.Write(append(header, '\n')); err != nil || t.Offset() == 0 {
		return err
	}
	return e.snapshot(e.last)
}

// snapshot writes what the terminal shows and is.
func (e *asciicast) snapshot(mono int64) error {
	e.held = e.held[:0]
	return e.output(mono, e.t.AppendSnapshot(nil, 0))
}

func (e *asciicast) frame(f store.Frame) error {
	if err := replay.Apply(e.t, f); err != nil {
		return err
	}
	e.t.TakeReplies()
	mono := f.Time.Mono
	switch f.Kind {
	case store.Output:
		return e.output(mono, f.Data)
	case store.Gap:
		if err := e.event(mono, "m", fmt.Sprintf("looptape: up to %d bytes from offset %d on are missing", f.Lost, f.Offset)); err != nil {
			return err
		}
		e.held = e.held[:0]
		return e.event(mono, "o", "\x18") // CAN: an unfinished sequence has no end
	case replay.MarkResize:
		b := e.t.Bounds()
		return e.event(mono, "r", fmt.Sprintf("%dx%d", b.Cols, b.Rows))
	case replay.MarkExit:
		exit, err := replay.ParseExit(f.Data)
		if err != nil {
			return err
		}
		status := exit.Number
		if exit.Signaled {
			status += 128
		}
		return e.event(mono, "x", strconv.Itoa(status))
	case replay.MarkRestart:
		if err := e.event(mono, "m", fmt.Sprintf("looptape: the recording ended at offset %d", f.Offset)); err != nil {
			return err
		}
		return e.snapshot(mono)
	case replay.MarkRespawn:
		if err := e.event(mono, "m", fmt.Sprintf("looptape: respawned at offset %d", f.Offset)); err != nil {
			return err
		}
		return e.snapshot(mono)
	}
	return nil
}

// output writes the complete characters that there are so far.
func (e *asciicast) output(mono int64, data []byte) error {
	e.raw = append(append(e.raw[:0], e.held...), data...)
	var rest []byte
	e.text, rest = replay.AppendValidUTF8(e.text[:0], e.raw)
	e.held = append(e.held[:0], rest...)
	if len(e.text) == 0 {
		return nil
	}
	return e.event(mono, "o", string(e.text))
}

func (e *asciicast) end() error {
	if len(e.held) == 0 {
		return nil
	}
	e.held = nil
	return e.event(e.last, "o", "\uFFFD")
}

func (e *asciicast) event(mono int64, code, data string) error {
	interval := max(0, mono-e.last) / 1000 * 1000 // what is printed, so that the sum does not drift
	e.last += interval
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	e.line = fmt.Appendf(e.line[:0], "[%d.%06d, %q, %s]\n", interval/1e9, interval%1e9/1e3, code, text)
	_, err = e.w.Write(e.line)
	return err
}

// shellQuote writes argv as a shell would take it.
func shellQuote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		if a != "" && strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%") == "" {
			quoted[i] = a
		} else {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
