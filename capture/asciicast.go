package capture

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"looptape/replay"
	"looptape/store"
)

// asciicast writes asciicast v3: a header line, then one event a line, with the
// seconds since the event before it. Output that is no UTF-8 becomes U+FFFD, as
// the format cannot hold it; a character that is cut between two frames goes
// into the event of the second one.
type asciicast struct {
	w       io.Writer
	command []string
	last    int64 // monotonic time of the last event, ns
	held    []byte
	line    []byte
}

func (e *asciicast) begin(t *replay.Terminal, first store.Frame) error {
	b := t.Bounds()
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
	e.last = first.Time.Mono
	_, err = e.w.Write(append(header, '\n'))
	return err
}

func (e *asciicast) frame(f store.Frame) error {
	switch f.Kind {
	case store.Output:
		return e.output(f)
	case store.Gap:
		e.held = nil
		return e.event(f.Time.Mono, "m", fmt.Sprintf("looptape: up to %d bytes from offset %d on are missing", f.Lost, f.Offset))
	case replay.MarkResize:
		cols, rows, err := replay.ParseResize(f.Data)
		if err != nil {
			return err
		}
		return e.event(f.Time.Mono, "r", fmt.Sprintf("%dx%d", cols, rows))
	case replay.MarkExit:
		exit, err := replay.ParseExit(f.Data)
		if err != nil {
			return err
		}
		status := exit.Number
		if exit.Signaled {
			status += 128
		}
		return e.event(f.Time.Mono, "x", strconv.Itoa(status))
	case replay.MarkRestart:
		return e.event(f.Time.Mono, "m", fmt.Sprintf("looptape: the recording ended at offset %d", f.Offset))
	}
	return nil
}

// output writes the complete characters that there are so far.
func (e *asciicast) output(f store.Frame) error {
	data := append(e.held, f.Data...)
	n := len(data)
	for back := 1; back < utf8.UTFMax && back <= n; back++ {
		if c := data[n-back]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(data[n-back:]) {
				n -= back
			}
			break
		}
	}
	e.held = append([]byte(nil), data[n:]...)
	if n == 0 {
		return nil
	}
	return e.event(f.Time.Mono, "o", strings.ToValidUTF8(string(data[:n]), "\uFFFD"))
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
