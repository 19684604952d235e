package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"looptape/replay"
	"looptape/store"
)

// CastHeader is what the header of an asciicast says beside size and time.
type CastHeader struct {
	Command string // as a shell takes it; "" is not known
	Title   string // "" is none
	Term    string // $TERM of the program
}

// asciicast writes asciicast v2 or v3: a header line, then one event a line, with the
// seconds since the beginning (v2) or since the event before it (v3), to the
// microsecond. The format holds UTF-8 only: what is none becomes U+FFFD as the terminal
// shows it, and a character that is cut between two frames goes into the event of the
// second one. v2 has no event for an exit: it is a marker.
//
// A player starts with a blank screen and knows output and sizes only. So where the
// stream does not begin, or the terminal changes by itself (a restart, a respawn), the
// screen and modes come as output too: a snapshot without history. A player that
// reflows at a resize brings back no rows from before it. A restart that nothing
// follows is left out: the recording ends with what the program showed last.
type asciicast struct {
	w          io.Writer
	version    int // 2 or 3
	header     CastHeader
	generation uint32           // that the command of the header ran in
	t          *replay.Terminal // behind the last frame
	start      int64            // monotonic time of the beginning, ns
	last       int64            // and of the last event, as it was written
	restart    string           // the marker of a restart that nothing has followed yet
	ended      int64            // when that was, by the monotonic clock
	held       []byte           // the beginning of a character
	raw        []byte           // scratch
	text       []byte           // scratch
	line       []byte           // scratch
}

// castEventText is the longest output of an event that is written, in bytes of UTF-8. An
// import makes one frame of it, so that its export is the same again.
const castEventText = 64 << 10

// castTerm is the terminal in the header of v3.
type castTerm struct {
	Cols int    `json:"cols"`
	Rows int    `json:"rows"`
	Type string `json:"type,omitempty"`
}

// castHeader is the header line of both versions.
type castHeader struct {
	Version   int               `json:"version"`
	Width     int               `json:"width,omitempty"`  // v2
	Height    int               `json:"height,omitempty"` // v2
	Term      *castTerm         `json:"term,omitempty"`   // v3
	Timestamp int64             `json:"timestamp,omitempty"`
	Command   string            `json:"command,omitempty"`
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"` // v2
}

func (e *asciicast) begin(t *replay.Terminal, first store.Frame) error {
	b := t.Bounds()
	if t.Generation() != e.generation {
		e.header.Command = "" // the recording begins with another program
	}
	h := castHeader{Version: e.version, Timestamp: first.Time.Wall / 1e9, Command: e.header.Command, Title: e.header.Title}
	if e.version == 2 {
		h.Width, h.Height = b.Cols, b.Rows
		if e.header.Term != "" {
			h.Env = map[string]string{"TERM": e.header.Term}
		}
	} else {
		h.Term = &castTerm{b.Cols, b.Rows, e.header.Term}
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line) // ends it with a newline
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(h); err != nil {
		return err
	}
	e.t, e.start, e.last = t, first.Time.Mono, first.Time.Mono
	if _, err := e.w.Write(line.Bytes()); err != nil || t.Offset() == 0 {
		return err
	}
	if err := e.snapshot(e.last); err != nil {
		return err
	}
	return e.marker(e.last, fmt.Sprintf("looptape: this begins at offset %d of the recording", t.Offset()))
}

// snapshot writes what the terminal shows and is.
func (e *asciicast) snapshot(mono int64) error {
	e.held = e.held[:0]
	return e.output(mono, e.t.AppendSnapshot(nil, 0))
}

// before writes what a restart left to be written, since something follows it.
func (e *asciicast) before(store.Frame) error {
	if e.restart == "" {
		return nil
	}
	if err := e.marker(e.ended, e.restart); err != nil {
		return err
	}
	e.restart = ""
	return e.snapshot(e.ended)
}

func (e *asciicast) frame(t *replay.Terminal, f store.Frame) error {
	other := t != e.t // behind a gap
	e.t = t
	mono := f.Time.Mono
	switch f.Kind {
	case store.Output:
		return e.output(mono, f.Data)
	case store.Gap:
		if err := e.marker(mono, fmt.Sprintf("looptape: up to %d bytes from offset %d on are missing", f.Lost, f.Offset)); err != nil {
			return err
		}
		e.held = e.held[:0]
		// CAN: an unfinished sequence has no end.
		if err := e.event(mono, 'o', []byte("\x18")); err != nil || !other {
			return err
		}
		return e.snapshot(mono)
	case replay.MarkResize:
		b := e.t.Bounds()
		return e.event(mono, 'r', fmt.Appendf(nil, "%dx%d", b.Cols, b.Rows))
	case replay.MarkExit:
		return e.exit(mono, f.Data)
	case replay.MarkMarker:
		return e.event(mono, 'm', f.Data)
	case replay.MarkRestart:
		e.ended = mono
		e.restart = fmt.Sprintf("looptape: the recording ended at offset %d", f.Offset)
	case replay.MarkRespawn:
		if err := e.marker(mono, fmt.Sprintf("looptape: respawned at offset %d", f.Offset)); err != nil {
			return err
		}
		return e.snapshot(mono)
	}
	return nil
}

// exit writes how a program ended, as a shell says it: 128+n for a signal.
func (e *asciicast) exit(mono int64, data []byte) error {
	exit, err := replay.ParseExit(data)
	if err != nil {
		return err
	}
	status := exit.Number
	if exit.Signaled {
		status += 128
	}
	if e.version == 2 {
		return e.marker(mono, fmt.Sprintf("looptape: the program exited with status %d", status))
	}
	return e.event(mono, 'x', strconv.AppendInt(nil, int64(status), 10))
}

// output writes the complete characters that there are so far.
func (e *asciicast) output(mono int64, data []byte) error {
	e.raw = append(append(e.raw[:0], e.held...), data...)
	var rest []byte
	e.text, rest = replay.AppendValidUTF8(e.text[:0], e.raw)
	e.held = append(e.held[:0], rest...)
	for text := e.text; len(text) > 0; {
		n := len(text)
		if n > castEventText {
			for n = castEventText; !utf8.RuneStart(text[n]); n-- {
			}
		}
		if err := e.event(mono, 'o', text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func (e *asciicast) end() error {
	if len(e.held) == 0 {
		return nil
	}
	e.held = nil
	return e.event(e.last, 'o', []byte("\uFFFD"))
}

func (e *asciicast) marker(mono int64, label string) error {
	return e.event(mono, 'm', []byte(label))
}

// event writes an event, whose data is UTF-8.
func (e *asciicast) event(mono int64, code byte, data []byte) error {
	interval := max(0, mono-e.last) / 1000 * 1000 // what is printed, so that the sum does not drift
	e.last += interval
	if e.version == 2 {
		interval = e.last - e.start
	}
	e.line = fmt.Appendf(e.line[:0], "[%d.%06d, \"%c\", ", interval/1e9, interval%1e9/1e3, code)
	e.line = append(appendQuoted(e.line, data), "]\n"...)
	_, err := e.w.Write(e.line)
	return err
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends UTF-8 as a string of JSON, with no more escapes than it takes.
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, b := range text {
		if b >= 0x20 && b != '"' && b != '\\' && b != 0x7F {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}

// ShellQuote writes argv as a shell would take it.
func ShellQuote(argv []string) string {
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
