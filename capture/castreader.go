package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxCastLine is the longest line of an asciicast that is read, in bytes.
	maxCastLine = 16 << 20
	// maxCastText bounds the command, the title and a marker, in bytes.
	maxCastText = 64 << 10
	// maxCastSide is the widest or highest screen.
	maxCastSide = 1<<16 - 1
	// maxSeconds is what 64 bits of ns hold.
	maxSeconds = math.MaxInt64 / 1_000_000_000
)

// CastError says what is wrong in which line of an asciicast, counted from 1.
type CastError struct {
	Line int
	What string
}

func (e *CastError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// CastHead is what an asciicast says of itself.
type CastHead struct {
	CastHeader
	Cols, Rows int   // 1..65535 each
	Wall       int64 // when it begins, ns since the Unix epoch
}

// CastEvent is an event of an asciicast. Those of other kinds are left out.
type CastEvent struct {
	At         int64  // ns since the beginning
	Code       byte   // o (output), r (resize), m (marker) or x (exit)
	Data       string // of o and m
	Cols, Rows int    // of r: 1..65535 each
	Status     int    // of x: 0..255
}

// CastReader reads an asciicast of version 2 or 3 in pieces, of any size. Head and Event
// are called in the order of the file; an error of theirs ends the reading.
type CastReader struct {
	Head  func(CastHead) error
	Event func(CastEvent) error
	Wall  int64 // when one begins that does not say it, ns since the Unix epoch

	Line    int // complete lines so far
	Ignored int // events so far that have no meaning for a recording: input, for one

	version int    // 0 before the header
	part    []byte // of a line that is not complete
	wall    int64
	at      int64 // time of the last event, ns since the beginning
}

// Feed reads the next piece. A *CastError says what is wrong with the file.
func (r *CastReader) Feed(data []byte) error {
	for {
		line, rest, complete := bytes.Cut(data, []byte{'\n'})
		if len(r.part)+len(line) > maxCastLine {
			return &CastError{r.Line + 1, fmt.Sprintf("longer than %d bytes", maxCastLine)}
		}
		if !complete {
			r.part = append(r.part, line...)
			return nil
		}
		if len(r.part) > 0 {
			line = append(r.part, line...)
			r.part = line[:0]
		}
		if err := r.read(line); err != nil {
			return err
		}
		data = rest
	}
}

// End says that no more pieces come.
func (r *CastReader) End() error {
	if len(r.part) > 0 {
		if err := r.read(r.part); err != nil {
			return err
		}
	}
	if r.version == 0 {
		return &CastError{max(r.Line, 1), "no asciicast: there is no header"}
	}
	return nil
}

// read reads one line.
func (r *CastReader) read(line []byte) error {
	r.Line++
	line = bytes.TrimSpace(line)
	if !utf8.Valid(line) {
		return r.wrong("not UTF-8")
	}
	switch {
	case r.version == 0:
		return r.header(line)
	case len(line) == 0, line[0] == '#' && r.version == 3: // a comment
		return nil
	}
	var fields []json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil || len(fields) != 3 {
		return r.wrong("not an event, as in [1.5, \"o\", \"text\"]")
	}
	at, err := r.time(string(fields[0]))
	if err != nil {
		return err
	}
	r.at = at
	var code, data string
	if json.Unmarshal(fields[1], &code) != nil || string(fields[1]) == "null" {
		return r.wrong("its second field must be a string: o, r, m or x")
	}
	if code != "o" && code != "r" && code != "m" && code != "x" {
		r.Ignored++
		return nil
	}
	if json.Unmarshal(fields[2], &data) != nil || string(fields[2]) == "null" {
		return r.wrong("its third field must be a string")
	}
	return r.event(CastEvent{At: at, Code: code[0]}, data)
}

// event hands on an event with its data.
func (r *CastReader) event(e CastEvent, data string) error {
	switch e.Code {
	case 'r':
		cols, rows, ok := strings.Cut(data, "x")
		var err error
		if e.Cols, err = strconv.Atoi(cols); ok && err == nil {
			e.Rows, err = strconv.Atoi(rows)
		}
		if !ok || err != nil || !fits(e.Cols, e.Rows) {
			return r.wrong(fmt.Sprintf("%s is no size, as in 80x24: columns and rows are 1 to %d", clip(data), maxCastSide))
		}
	case 'x':
		var err error
		if e.Status, err = strconv.Atoi(data); err != nil || e.Status < 0 || e.Status > 255 {
			return r.wrong(fmt.Sprintf("%s is no exit status, which is 0 to 255", clip(data)))
		}
	case 'm':
		if len(data) > maxCastText {
			return r.wrong(fmt.Sprintf("a marker of more than %d bytes", maxCastText))
		}
		e.Data = data
	default:
		e.Data = data
	}
	return r.Event(e)
}

// header reads the first line.
func (r *CastReader) header(line []byte) error {
	var version struct{ Version json.RawMessage }
	if err := json.Unmarshal(line, &version); err != nil || len(line) == 0 || line[0] != '{' {
		return r.wrong("no asciicast: its first line is no header")
	}
	switch string(version.Version) {
	case "2", "3":
		r.version = int(version.Version[0] - '0')
	case "":
		return r.wrong("no asciicast: its header has no version")
	default:
		return r.wrong(fmt.Sprintf("asciicast version %.40s: 2 and 3 can be read", version.Version))
	}
	var h struct {
		Width, Height int
		Term          struct {
			Cols, Rows int
			Type       string
		}
		Timestamp      json.RawMessage
		Command, Title string
		Env            map[string]any
	}
	if err := json.Unmarshal(line, &h); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return r.wrong(fmt.Sprintf("%s of the header must not be a %.60s", strings.ToLower(kind.Field), kind.Value))
		}
		return r.wrong("its header cannot be read")
	}
	head := CastHead{CastHeader{h.Command, h.Title, h.Term.Type}, h.Term.Cols, h.Term.Rows, 0}
	if r.version == 2 {
		head.Cols, head.Rows = h.Width, h.Height
		head.Term, _ = h.Env["TERM"].(string)
	}
	if !fits(head.Cols, head.Rows) {
		return r.wrong(fmt.Sprintf("a screen of %dx%d: columns and rows are 1 to %d", head.Cols, head.Rows, maxCastSide))
	}
	if max(len(head.Command), len(head.Title), len(head.Term)) > maxCastText {
		return r.wrong(fmt.Sprintf("a command, title or terminal of more than %d bytes", maxCastText))
	}
	if text := string(h.Timestamp); text != "" && text != "null" {
		var ok bool
		if head.Wall, ok = parseSeconds(text); !ok || head.Wall < 0 {
			return r.wrong(fmt.Sprintf("the timestamp %s is none between 1970 and 2262", clip(text)))
		}
	}
	if head.Wall == 0 {
		head.Wall = r.Wall
	}
	r.wall = head.Wall
	return r.Head(head)
}

// time reads the time of an event, and returns it in ns since the beginning.
func (r *CastReader) time(text string) (int64, error) {
	at, ok := parseSeconds(text)
	switch {
	case text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9'):
		return 0, r.wrong("its first field must be a number: seconds")
	case !ok:
		return 0, r.wrong(fmt.Sprintf("%.40s seconds are too many", text))
	case at < 0:
		return 0, r.wrong(fmt.Sprintf("its time, %.40s s, is negative", text))
	case r.version == 2 && at < r.at:
		return 0, r.wrong(fmt.Sprintf("its time, %.40s s, is before that of the event before it", text))
	case r.version == 3:
		if at > math.MaxInt64-r.at {
			return 0, r.wrong(fmt.Sprintf("%.40s seconds are too many", text))
		}
		at += r.at
	}
	if at > math.MaxInt64-r.wall {
		return 0, r.wrong("it is beyond the year 2262")
	}
	return at, nil
}

func (r *CastReader) wrong(what string) error { return &CastError{r.Line, what} }

func fits(cols, rows int) bool {
	return cols >= 1 && rows >= 1 && cols <= maxCastSide && rows <= maxCastSide
}

// clip shortens what is quoted in a message.
func clip(s string) string {
	const longest = 40
	if len(s) <= longest {
		return strconv.Quote(s)
	}
	n := longest
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return strconv.Quote(s[:n]) + "..."
}

// parseSeconds reads a number of JSON, seconds, as ns, exactly as far as ns go. ok is
// false for one that 64 bits do not hold.
func parseSeconds(text string) (ns int64, ok bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if strings.ContainsAny(digits, "eE") {
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil || f >= maxSeconds {
			return 0, false
		}
		ns = int64(math.Round(f * 1e9))
	} else {
		seconds, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || seconds >= maxSeconds {
			return 0, false
		}
		rest, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
		if err != nil {
			return 0, false
		}
		ns = seconds*1e9 + rest
	}
	if negative {
		ns = -ns
	}
	return ns, true
}
