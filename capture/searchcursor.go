package capture

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strings"

	"looptape/store"
)

// searchPlace is where a search goes on.
//
//	"cq1:" + base64url, without padding, of
//
//	 0  version    u8        1
//	 1  store      16 bytes  id of the store
//	17  pane       u64       number of the pane
//	25  pattern    u32       CRC-32C of the pattern
//	29  beginning  u8        1: in front of the first frame of the log, whose history
//	                         is looked through; 0: at the frame pos
//	30  pos        2 x u64   offset and number of the frame
//	46  seen       u32       lines with text from there on that were looked at already
//	50  blanks     u32       blank lines behind the last of these, likewise
//	54  since      u64       lines whose last write ends below are passed over
//	62  history    u64       the same for the lines of the history at the beginning
//	70  shown      u64       lines with text whose last write ends below were reported
//	                         from the screen, at a gap, a restart or a respawn
//	78  end        2 x u64   offset and number of the frame where the search ends;
//	                         2^64-1, 0: wherever the log ends then
//	94  checksum   u32       CRC-32C of all before it
//
// Integers are big-endian.
type searchPlace struct {
	beginning bool
	pos       store.Pos
	seen      lineCount
	since     uint64
	history   uint64
	shown     uint64
	end       store.Pos
}

// lineCount counts lines with text, and blank ones behind the last of these. Which
// blank lines are found again behind a gap is not known, since they were written at no
// time of their own: so the others are counted without them.
type lineCount struct{ text, blank uint32 }

func (c *lineCount) add(blank bool) {
	if blank {
		c.blank++
	} else {
		c.text, c.blank = c.text+1, 0
	}
}

// before says whether the line counted last by c comes before that by d.
func (c lineCount) before(d lineCount) bool {
	return c.text < d.text || c.text == d.text && c.blank < d.blank
}

const (
	searchPrefix = "cq1:"
	searchSize   = 98
)

func (s searchPlace) cursor(id [16]byte, pane uint64, pattern string) string {
	b := make([]byte, 0, searchSize)
	b = append(b, cursorVersion)
	b = append(b, id[:]...)
	b = binary.BigEndian.AppendUint64(b, pane)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum([]byte(pattern), castagnoli))
	if s.beginning {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint64(b, s.pos.Offset)
	b = binary.BigEndian.AppendUint64(b, s.pos.Seq)
	b = binary.BigEndian.AppendUint32(b, s.seen.text)
	b = binary.BigEndian.AppendUint32(b, s.seen.blank)
	b = binary.BigEndian.AppendUint64(b, s.since)
	b = binary.BigEndian.AppendUint64(b, s.history)
	b = binary.BigEndian.AppendUint64(b, s.shown)
	b = binary.BigEndian.AppendUint64(b, s.end.Offset)
	b = binary.BigEndian.AppendUint64(b, s.end.Seq)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return searchPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// parseSearchCursor reads what cursor made, for the same store, pane and pattern.
// Its errors are invalid_params.cursor with the reason malformed, version, checksum,
// store, pane or pattern.
func parseSearchCursor(text string, id [16]byte, pane uint64, pattern string) (s searchPlace, err error) {
	enc, ok := strings.CutPrefix(text, searchPrefix)
	if !ok {
		return s, cursorError("malformed", "this is no cursor of search")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(enc)
	if err != nil || len(b) != searchSize {
		return s, cursorError("malformed", "the cursor is incomplete or garbled: pass it on as it was given")
	}
	body := b[:searchSize-4]
	switch {
	case crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[searchSize-4:]):
		return s, cursorError("checksum", "the cursor is damaged: pass it on as it was given")
	case body[0] != cursorVersion:
		return s, cursorError("version", "the cursor is of another version: search again without a cursor")
	case [16]byte(body[1:17]) != id:
		return s, cursorError("store", "the cursor is of another state directory: search again without a cursor")
	case binary.BigEndian.Uint64(body[17:]) != pane:
		return s, errOtherPane
	case binary.BigEndian.Uint32(body[25:]) != crc32.Checksum([]byte(pattern), castagnoli):
		return s, cursorError("pattern", "the cursor belongs to a search for another pattern")
	}
	s.beginning = body[29] == 1
	s.pos = store.Pos{Offset: binary.BigEndian.Uint64(body[30:]), Seq: binary.BigEndian.Uint64(body[38:])}
	s.seen = lineCount{binary.BigEndian.Uint32(body[46:]), binary.BigEndian.Uint32(body[50:])}
	s.since = binary.BigEndian.Uint64(body[54:])
	s.history = binary.BigEndian.Uint64(body[62:])
	s.shown = binary.BigEndian.Uint64(body[70:])
	s.end = store.Pos{Offset: binary.BigEndian.Uint64(body[78:]), Seq: binary.BigEndian.Uint64(body[86:])}
	if s.pos.Offset >= math.MaxUint64/2 || body[29] > 1 {
		return s, cursorError("malformed", "the cursor is incomplete or garbled: pass it on as it was given")
	}
	return s, nil
}
