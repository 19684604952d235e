package capture

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// Cursor is a place in the stream of a pane, as capture_since hands it out. It
// is no secret and no authority, and it stays valid as long as the store does.
//
//	"cs1:" + base64url, without padding, of
//
//	 0  version     u8          1, or 2 with a place among rows
//	 1  store       16 bytes    id of the store
//	17  pane        u64         number of the pane
//	25  generation  u32         respawns of the pane when it was handed out
//	29  offset      u64         bytes of the stream in front of the place
//	37  rows        28 bytes    in version 2: epoch u32, active, next and as-of u64,
//	                            see rowsPlace
//	..  filter      2..5 bytes  place of the text filter
//	..  checksum    u32         CRC-32C of all before it
//
// Integers are big-endian.
type Cursor struct {
	Store      [16]byte
	Pane       uint64
	Generation uint32
	Offset     uint64
	Rows       *rowsPlace // nil in version 1
	Filter     []byte
}

const (
	cursorPrefix  = "cs1:"
	cursorVersion = 1
	rowsVersion   = 2
	cursorFixed   = 37
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (c Cursor) String() string {
	b := make([]byte, 0, cursorFixed+rowsSize+8+len(c.Filter))
	if c.Rows == nil {
		b = append(b, cursorVersion)
	} else {
		b = append(b, rowsVersion)
	}
	b = append(b, c.Store[:]...)
	b = binary.BigEndian.AppendUint64(b, c.Pane)
	b = binary.BigEndian.AppendUint32(b, c.Generation)
	b = binary.BigEndian.AppendUint64(b, c.Offset)
	if c.Rows != nil {
		b = c.Rows.append(b)
	}
	b = append(b, c.Filter...)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return cursorPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads what String made. Its errors are invalid_params.cursor with
// the reason malformed, version or checksum.
func ParseCursor(s string) (Cursor, error) {
	var c Cursor
	enc, ok := strings.CutPrefix(s, cursorPrefix)
	if !ok {
		if strings.HasPrefix(s, "cs") && strings.Contains(s, ":") {
			return c, cursorError("version", "the cursor is of another version: start again without a cursor")
		}
		return c, cursorError("malformed", "this is no cursor of capture_since")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(enc)
	if err != nil || len(b) < cursorFixed+2+4 || len(b) > cursorFixed+rowsSize+5+4 {
		return c, cursorError("malformed", "the cursor is incomplete or garbled: pass it on as it was given")
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return c, cursorError("checksum", "the cursor is damaged: pass it on as it was given")
	}
	if body[0] != cursorVersion && body[0] != rowsVersion {
		return c, cursorError("version", "the cursor is of another version: start again without a cursor")
	}
	copy(c.Store[:], body[1:])
	c.Pane = binary.BigEndian.Uint64(body[17:])
	c.Generation = binary.BigEndian.Uint32(body[25:])
	c.Offset = binary.BigEndian.Uint64(body[29:])
	c.Filter = body[cursorFixed:]
	if body[0] == rowsVersion {
		if len(c.Filter) < rowsSize {
			return c, cursorError("malformed", "the cursor is incomplete or garbled: pass it on as it was given")
		}
		c.Rows, c.Filter = parseRowsPlace(c.Filter[:rowsSize]), c.Filter[rowsSize:]
	}
	var f filter
	if f.setState(c.Filter) != nil {
		return c, cursorError("malformed", "the cursor is incomplete or garbled: pass it on as it was given")
	}
	return c, nil
}

func cursorError(reason, message string) error {
	return &Error{"invalid_params.cursor", message, struct {
		Param  string `json:"param"`
		Reason string `json:"reason"`
	}{"cursor", reason}}
}

// errOtherPane says that a cursor belongs to another pane than the one named.
var errOtherPane = cursorError("pane", "the cursor belongs to another pane")

// errRespawned says that a cursor belongs to a program that another took the place of.
var errRespawned = &Error{"conflict.respawned", "the cursor is from before the pane was respawned: start again without a cursor", nil}

// errTwoPlaces says that both a cursor and an offset are given.
var errTwoPlaces = &Error{"invalid_params.since", "since cannot be combined with cursor", struct {
	Param  string `json:"param"`
	Reason string `json:"reason"`
}{"since", "exclusive"}}
