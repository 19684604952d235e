package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Limits of a frame, in bytes, its LF included (contract.md section 2).
const (
	DefaultMaxFrame = 1 << 20
	LowestMaxFrame  = 4096
	CeilingMaxFrame = 64 << 20
)

// Proto is the version of the protocol that this package speaks.
const Proto = 1

// Hello is what a client says first.
type Hello struct {
	Proto    int     `json:"proto"`
	Client   string  `json:"client"`
	Token    *string `json:"token,omitempty"`
	MaxFrame *int    `json:"max_frame,omitempty"`
}

// Welcome is what the server answers to hello.
type Welcome struct {
	Proto          int    `json:"proto"`
	Server         string `json:"server"`
	ManifestFormat int    `json:"manifest_format"`
	MaxFrame       int    `json:"max_frame"`
	Caller         string `json:"caller"`
}

// request is a frame from a client.
type request struct {
	ID     *int64  `json:"id"`
	Verb   *string `json:"verb"`
	Params params  `json:"params"`
}

// params are the parameters of a request, by name.
type params map[string]json.RawMessage

// maxParams is how many a request may have. Each takes many times what it takes in
// the line.
const maxParams = 64

// UnmarshalJSON is json.Unmarshaler's. It counts the names before it keeps one.
func (p *params) UnmarshalJSON(b []byte) error {
	if n := countNames(b); n > maxParams {
		return fmt.Errorf("it has %d parameters, of at most %d", n, maxParams)
	}
	*p = nil // of two objects the last one counts
	return json.Unmarshal(b, (*map[string]json.RawMessage)(p))
}

// countNames is how many names the object b has, each as often as it comes. b is
// valid JSON.
func countNames(b []byte) (n int) {
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ':' && depth == 1:
			n++
		}
	}
	return n
}

// reply is a frame to a client, as the client reads it; exactly one of OK, Item
// and Err is set. A null id belongs to no request.
type reply struct {
	ID   *int64          `json:"id"`
	OK   json.RawMessage `json:"ok"`
	Item json.RawMessage `json:"item"`
	Err  *Error          `json:"error"`
}

// frameHead is what a frame to a client begins with; its body, which is JSON,
// and }LF follow.
func frameHead(id *int64, name string) []byte {
	f := append(make([]byte, 0, 48), `{"id":`...)
	if id == nil {
		f = append(f, "null"...)
	} else {
		f = strconv.AppendInt(f, *id, 10)
	}
	f = append(f, `,"`...)
	f = append(f, name...)
	return append(f, `":`...)
}

const (
	shortCode    = 64  // bytes of a code
	shortMessage = 512 // bytes of a message: with every one escaped it fits LowestMaxFrame
)

// errorFrame is an error as a frame of at most limit bytes, which is at least
// LowestMaxFrame: one that does not fit loses its data and the end of its message.
func errorFrame(id *int64, e *Error, limit int) []byte {
	body, err := Marshal(e)
	if err != nil {
		body, _ = Marshal(AsError(err))
	}
	f := append(append(frameHead(id, "error"), body...), "}\n"...)
	if len(f) <= limit {
		return f
	}
	return errorFrame(id, &Error{Code: head(e.Code, shortCode), Message: head(e.Message, shortMessage)}, limit)
}

// head is s, or as many whole characters of its first n bytes as leave room for
// an ellipsis.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// errFrameSize says that a frame is longer than max_frame.
var errFrameSize = errors.New("frame too long")

// frames reads lines of at most max bytes.
type frames struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// next returns the next line without its LF, valid until the next call. io.EOF
// means that the peer closed between two frames, io.ErrUnexpectedEOF within one.
func (f *frames) next() ([]byte, error) {
	if cap(f.buf) > DefaultMaxFrame {
		f.buf = nil // a large request is rare, a connection may last
	}
	f.buf = f.buf[:0]
	for {
		part, err := f.r.ReadSlice('\n')
		if len(f.buf)+len(part) > f.max {
			return nil, errFrameSize
		}
		if err == nil && len(f.buf) == 0 {
			return part[:len(part)-1], nil
		}
		f.buf = append(f.buf, part...)
		switch {
		case err == nil:
			return f.buf[:len(f.buf)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(f.buf) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// parseRequest decodes a line. Its error is the protocol error to answer with.
func parseRequest(line []byte) (request, *Error) {
	var r request
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, malformed("the line is no request: " + err.Error())
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, malformed("the line holds more than one JSON object")
	}
	switch {
	case r.ID == nil:
		return r, malformed("the request has no id")
	case *r.ID < 0 || *r.ID > MaxInteger:
		return r, malformed(fmt.Sprintf("the id %d is outside 0 to 2^53-1", *r.ID))
	case r.Verb == nil:
		return r, malformed("the request has no verb")
	}
	return r, nil
}

func malformed(message string) *Error {
	return &Error{Code: "protocol.malformed", Message: message}
}

func frameSize(limit int) *Error {
	return &Error{
		Code:    "protocol.frame_size",
		Message: fmt.Sprintf("the line is longer than the %d bytes that hello agreed on", limit),
		Data:    map[string]int{"max_frame": limit},
	}
}
