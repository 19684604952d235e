package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// An encoded State is a header, records, and a checksum. Fixed-size integers are
// little-endian. uv is an unsigned LEB128 varint, sv a zigzag one, str an uv length
// and that many bytes, list an uv count and that many of what follows, bool a byte
// 0 or 1.
//
//	0   magic     4 bytes  Magic: 0x89 "LTC"
//	4   version   u16      1 or 2; Version is what Encode writes
//	6   reserved  u16      0
//	8   length    u32      bytes of the records, 0..2^32-1
//	12  check     u32      CRC-32C of bytes 0..11
//	16  records   length bytes
//	    check     u32      CRC-32C of the records
//
// A record is a kind byte, an uv length of its payload, and the payload. All kinds
// occur once, in this order; nothing may follow a payload's last field.
//
//	'T' terminal  semantics uv, widths str, cols uv, rows uv, scrollback uv,
//	              offset uv, work uv, epoch uv, on-alternate bool,
//	              region top uv, bottom uv, mode bits uv, saved bits uv,
//	              modify-other-keys byte, generation uv (from version 2 on,
//	              before that 0), link room sv (from version 3 on, before 0)
//	'L' links     list of: id str, URI str
//	'S' styles    list of styles
//	'C' cursor    x uv, y uv, pending bool, pen uv, charsets, shape byte,
//	              last str, joins bool, code point uv
//	'H' history   first uv, hidden uv, list of rows
//	'M' main      screen
//	'A' alternate screen
//	'B' tabs      list of: distance to the stop before uv (the first: its column)
//	'N' names     title str, icon str, cwd str, list of str, list of str
//	'P' palette   list of: index uv, RGB uv
//	'X' lexer     phase byte, held str, prefix byte, intermediates str,
//	              parameters list of sv, colons uv, payload str, dropped bool
//
// charsets are G0..G3 (4 bytes), GL (byte), single shift (byte). A screen is: list
// of rows, saved bool, if so x uv, y uv, pending bool, pen uv, charsets, origin
// bool; keyboard stack str; x uv, y uv, pending bool. A row is: flags byte, width uv,
// written sv (difference to the row before in the list, the first to 0), text str,
// list of runs: bytes uv, style sv (how far it is below the first style that no run
// before in the list of rows has or passes; at first that is 0). A style is: fields byte, and of these fields the ones whose bit is
// set, which are not 0: fg u32 (bit 0), bg u32 (1), underline u32 (2), attributes uv
// (3), link uv (4).
//
// Before version 3 the style of a run was uv, as it is, and a style was: fg uv, bg uv,
// underline uv, attributes uv, link uv.
const (
	Magic   = "\x89LTC"
	Version = 3

	headerSize = 16
	checkSize  = 4
)

// Kinds of records, in their order.
const recordKinds = "TLSCHMABNPX"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode appends the encoding of s to dst. Equal States give equal bytes.
func Encode(dst []byte, s *State) []byte {
	start := len(dst)
	dst = append(dst, Magic...)
	dst = binary.LittleEndian.AppendUint16(dst, Version)
	dst = append(dst, make([]byte, headerSize-6)...)
	body := len(dst)
	var e encoder
	for i := range len(recordKinds) {
		e.b = e.b[:0]
		e.record(recordKinds[i], s)
		dst = append(dst, recordKinds[i])
		dst = binary.AppendUvarint(dst, uint64(len(e.b)))
		dst = append(dst, e.b...)
	}
	header := dst[start:body]
	binary.LittleEndian.PutUint32(header[8:], uint32(len(dst)-body))
	binary.LittleEndian.PutUint32(header[12:], crc32.Checksum(header[:12], castagnoli))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[body:], castagnoli))
}

type encoder struct{ b []byte }

func (e *encoder) uv(v uint64)  { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) sv(v int64)   { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) num(v int)    { e.uv(uint64(v)) }
func (e *encoder) byte(v uint8) { e.b = append(e.b, v) }

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

func (e *encoder) str(s string) {
	e.num(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) bytes(b []byte) {
	e.num(len(b))
	e.b = append(e.b, b...)
}

func (e *encoder) strs(list []string) {
	e.num(len(list))
	for _, s := range list {
		e.str(s)
	}
}

func (e *encoder) record(kind byte, s *State) {
	switch kind {
	case 'T':
		e.terminal(s)
	case 'L':
		e.num(len(s.Links))
		for _, l := range s.Links {
			e.str(l.ID)
			e.str(l.URI)
		}
	case 'S':
		e.styles(s.Styles)
	case 'C':
		e.cursor(s)
	case 'H':
		e.uv(s.History.First)
		e.num(s.History.Hidden)
		e.rows(s.History.Rows)
	case 'M':
		e.screen(&s.Main)
	case 'A':
		e.screen(&s.Alt)
	case 'B':
		e.num(len(s.Tabs))
		last := 0
		for _, x := range s.Tabs {
			e.num(x - last)
			last = x
		}
	case 'N':
		e.str(s.Names.Title)
		e.str(s.Names.Icon)
		e.str(s.Names.Cwd)
		e.strs(s.Names.Titles)
		e.strs(s.Names.Icons)
	case 'P':
		e.num(len(s.Palette))
		for _, p := range s.Palette {
			e.num(p.Index)
			e.uv(uint64(p.RGB))
		}
	case 'X':
		e.lexer(&s.Lexer)
	}
}

// Fields of an encoded style, in their order.
const (
	hasFg = 1 << iota
	hasBg
	hasUl
	hasAttrs
	hasLink
)

func (e *encoder) styles(styles []Style) {
	e.num(len(styles))
	e.b = slices.Grow(e.b, 5*len(styles))
	for i := range styles {
		v, at := &styles[i], len(e.b)
		e.byte(0)
		for bit, c := range [...]Color{v.Fg, v.Bg, v.Ul} {
			if c != 0 {
				e.b[at] |= hasFg << bit
				e.b = binary.LittleEndian.AppendUint32(e.b, uint32(c))
			}
		}
		if v.Attrs != 0 {
			e.b[at] |= hasAttrs
			e.uv(uint64(v.Attrs))
		}
		if v.Link != 0 {
			e.b[at] |= hasLink
			e.num(v.Link)
		}
	}
}

func (e *encoder) terminal(s *State) {
	e.uv(uint64(s.Semantics))
	e.str(s.Widths)
	e.num(s.Size.Cols)
	e.num(s.Size.Rows)
	e.num(s.Size.Scrollback)
	e.uv(s.Clock.Offset)
	e.uv(s.Clock.Work)
	e.uv(uint64(s.Clock.Epoch))
	e.bool(s.OnAlt)
	e.num(s.Region.Top)
	e.num(s.Region.Bottom)
	e.uv(s.Modes.Bits)
	e.uv(s.Modes.SavedBits)
	e.byte(s.Modes.ModifyOtherKeys)
	e.uv(uint64(s.Clock.Generation))
	e.sv(int64(s.LinkRoom))
}

func (e *encoder) charsets(c *Charsets) {
	e.b = append(e.b, c.G[:]...)
	e.byte(c.GL)
	e.byte(c.Single)
}

func (e *encoder) cursor(s *State) {
	c := &s.Cursor
	e.num(c.X)
	e.num(c.Y)
	e.bool(c.Pending)
	e.num(c.Pen)
	e.charsets(&c.Charsets)
	e.byte(c.Style)
	e.str(s.Text.Last)
	e.bool(s.Text.Joins)
	e.uv(uint64(s.Text.Code))
}

func (e *encoder) screen(s *Screen) {
	e.rows(s.Rows)
	e.bool(s.Saved != nil)
	if v := s.Saved; v != nil {
		e.num(v.X)
		e.num(v.Y)
		e.bool(v.Pending)
		e.num(v.Pen)
		e.charsets(&v.Charsets)
		e.bool(v.Origin)
	}
	e.bytes(s.Kitty)
	e.num(s.X)
	e.num(s.Y)
	e.bool(s.Pending)
}

func (e *encoder) rows(rows []Row) {
	e.num(len(rows))
	size := 0
	for i := range rows {
		size += len(rows[i].Text) + 8 + 4*len(rows[i].Runs)
	}
	e.b = slices.Grow(e.b, size)
	last, next := uint64(0), 0
	for i := range rows {
		r := &rows[i]
		e.byte(r.Flags)
		e.num(r.Width)
		e.sv(int64(r.Written - last))
		last = r.Written
		e.bytes(r.Text)
		e.num(len(r.Runs))
		for _, run := range r.Runs {
			e.num(run.Len)
			e.sv(int64(next - run.Style))
			next = max(next, run.Style+1)
		}
	}
}

func (e *encoder) lexer(l *Lexer) {
	e.byte(l.Phase)
	e.bytes(l.Held)
	e.byte(l.Prefix)
	e.bytes(l.Inter)
	e.num(len(l.Params))
	for _, p := range l.Params {
		e.sv(int64(p))
	}
	e.uv(uint64(l.Colons))
	e.bytes(l.Data)
	e.bool(l.Dropped)
}
