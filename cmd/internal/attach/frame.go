package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Type says what a frame is.
type Type uint8

// The types, first those from the daemon.
const (
	Snapshot   Type = 1
	Output     Type = 2
	Resize     Type = 3
	Scrollback Type = 4
	Resync     Type = 5
	Exit       Type = 6
	Error      Type = 7

	Input    Type = 16
	Viewport Type = 17
	Ack      Type = 18
	Detach   Type = 19
)

func (t Type) String() string {
	if l := layouts[t]; l != nil {
		return l.name
	}
	return fmt.Sprintf("frame type %d", uint8(t))
}

// Sizes, in bytes.
const (
	Head          = 5               // of a frame, in front of its payload
	MaxInput      = 64 << 10        // of one Input
	MaxFromClient = Head + MaxInput // of a frame from a client
	Window        = 1 << 20         // of the stream that may be sent and not acknowledged
)

// Frame is one frame; which fields it has depends on its type. Data is the end of
// the payload: the bytes, the rows, the reason or the JSON.
type Frame struct {
	Type       Type
	Offset     uint64
	Epoch      uint32
	Cols, Rows int // 1..65535
	Start      uint64
	Data       []byte
}

// End is the offset behind an Output, and Offset for the other types.
func (f *Frame) End() uint64 {
	if f.Type == Output {
		return f.Offset + uint64(len(f.Data))
	}
	return f.Offset
}

// layout is the payload of a type: its fields in order.
type layout struct {
	name   string
	client bool // from a client
	fields []field
}

type field uint8

const (
	offset field = iota // u64
	epoch               // u32
	size                // u16 cols, u16 rows
	start               // u64
	data                // the rest
	text                // the rest, in UTF-8
)

var layouts = [256]*layout{
	Snapshot:   {"Snapshot", false, []field{offset, epoch, size, data}},
	Output:     {"Output", false, []field{offset, data}},
	Resize:     {"Resize", false, []field{offset, size, epoch}},
	Scrollback: {"Scrollback", false, []field{epoch, start, text}},
	Resync:     {"Resync", false, []field{offset, text}},
	Exit:       {"Exit", false, []field{offset, text}},
	Error:      {"Error", false, []field{text}},
	Input:      {"Input", true, []field{data}},
	Viewport:   {"Viewport", true, []field{size}},
	Ack:        {"Ack", true, []field{offset}},
	Detach:     {"Detach", true, nil},
}

var widths = [...]int{offset: 8, epoch: 4, size: 4, start: 8, data: 0, text: 0}

// HeadLen is the length of a frame of type t without its Data.
func HeadLen(t Type) int {
	n := Head
	for _, f := range layouts[t].fields {
		n += widths[f]
	}
	return n
}

// AppendHead appends f without its Data, whose length is n: with n bytes behind it
// it is the frame.
func AppendHead(dst []byte, f Frame, n int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(HeadLen(f.Type)-4+n))
	dst = append(dst, byte(f.Type))
	for _, field := range layouts[f.Type].fields {
		switch field {
		case offset:
			dst = binary.BigEndian.AppendUint64(dst, f.Offset)
		case epoch:
			dst = binary.BigEndian.AppendUint32(dst, f.Epoch)
		case size:
			dst = binary.BigEndian.AppendUint16(dst, uint16(f.Cols))
			dst = binary.BigEndian.AppendUint16(dst, uint16(f.Rows))
		case start:
			dst = binary.BigEndian.AppendUint64(dst, f.Start)
		}
	}
	return dst
}

// Append appends f.
func Append(dst []byte, f Frame) []byte {
	return append(AppendHead(dst, f, len(f.Data)), f.Data...)
}

// The errors of a Reader, beside those of what it reads from. io.ErrUnexpectedEOF
// means that the peer closed the connection within a frame.
var (
	// ErrTooLong says that a frame is longer than it may be. Nothing of it was read.
	ErrTooLong = errors.New("the frame is too long")
	// ErrMalformed says that a frame is none that the peer may send.
	ErrMalformed = errors.New("malformed frame")
)

// Reader reads frames from one side of a connection.
type Reader struct {
	r      io.Reader
	max    int
	client bool
	buf    []byte
}

// NewReader returns a reader of the frames that a daemon sends, each at most limit
// bytes long.
func NewReader(r io.Reader, limit int) *Reader { return &Reader{r: r, max: limit} }

// NewClientReader returns a reader of the frames that a client sends.
func NewClientReader(r io.Reader) *Reader {
	return &Reader{r: r, max: MaxFromClient, client: true}
}

// keptBuffer is how large a buffer a Reader keeps between two frames.
const keptBuffer = 1 << 20

// Next returns the next frame, whose Data is valid until the next call. io.EOF means
// that the peer closed the connection between two frames.
func (r *Reader) Next() (Frame, error) {
	var head [Head]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return Frame{}, err
	}
	length, t := binary.BigEndian.Uint32(head[:]), Type(head[4])
	switch l := layouts[t]; {
	case length == 0:
		return Frame{}, fmt.Errorf("%w: its length is 0", ErrMalformed)
	case r.client && head[0] == '{':
		return Frame{}, fmt.Errorf("%w: it looks like JSON, and behind pane.attach's answer a connection speaks frames: make another request on a connection of its own", ErrMalformed)
	case int64(length) > int64(r.max-4):
		return Frame{}, fmt.Errorf("%w: it has %d bytes behind its length, and at most %d are allowed", ErrTooLong, length, r.max-4)
	case l == nil || l.client != r.client:
		return Frame{}, fmt.Errorf("%w: no frame here is of type %d", ErrMalformed, head[4])
	}
	n := int(length) - 1
	if r.buf == nil || n > cap(r.buf) || cap(r.buf) > keptBuffer {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return Parse(t, r.buf)
}

// Parse reads the payload of a frame of type t. Data is a part of it.
func Parse(t Type, payload []byte) (Frame, error) {
	f := Frame{Type: t}
	l := layouts[t]
	if l == nil {
		return f, fmt.Errorf("%w: there is no type %d", ErrMalformed, uint8(t))
	}
	open := false // the end of the payload may have any length
	for _, field := range l.fields {
		n := widths[field]
		if len(payload) < n {
			return f, fmt.Errorf("%w: %s is cut short", ErrMalformed, t)
		}
		switch p := payload[:n]; field {
		case offset:
			f.Offset = binary.BigEndian.Uint64(p)
		case epoch:
			f.Epoch = binary.BigEndian.Uint32(p)
		case size:
			f.Cols, f.Rows = int(binary.BigEndian.Uint16(p)), int(binary.BigEndian.Uint16(p[2:]))
			if f.Cols == 0 || f.Rows == 0 {
				return f, fmt.Errorf("%w: %s of %d columns and %d rows", ErrMalformed, t, f.Cols, f.Rows)
			}
		case start:
			f.Start = binary.BigEndian.Uint64(p)
		case text:
			if !utf8.Valid(payload) {
				return f, fmt.Errorf("%w: %s that is not UTF-8", ErrMalformed, t)
			}
			f.Data, open = payload, true
		case data:
			f.Data, open = payload, true
		}
		payload = payload[n:]
	}
	if !open && len(payload) > 0 {
		return f, fmt.Errorf("%w: %s with %d bytes too many", ErrMalformed, t, len(payload))
	}
	return f, nil
}
