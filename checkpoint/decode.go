package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
)

// What can be wrong with bytes that Decode is given. Errors wrap one of these.
var (
	ErrNotCheckpoint = errors.New("checkpoint: not a checkpoint")
	ErrNewerVersion  = errors.New("checkpoint: written by a newer version")
	ErrTruncated     = errors.New("checkpoint: truncated")
	ErrDamaged       = errors.New("checkpoint: damaged")
)

// Decode undoes [Encode]. b must be one encoding and nothing else. The State's texts
// share b's memory.
func Decode(b []byte) (*State, error) { return decode(b, recordKinds) }

// DecodeBase is Decode for a State that only completes others: it leaves out what
// Complete does not look at.
func DecodeBase(b []byte) (*State, error) { return decode(b, "TLSH") }

// decode decodes the records of some kinds. All are checked for their place and their
// sum.
func decode(b []byte, kinds string) (*State, error) {
	n := min(len(b), len(Magic))
	if string(b[:n]) != Magic[:n] {
		return nil, ErrNotCheckpoint
	}
	if len(b) < headerSize {
		return nil, ErrTruncated
	}
	if crc32.Checksum(b[:12], castagnoli) != binary.LittleEndian.Uint32(b[12:]) {
		return nil, fmt.Errorf("%w: header", ErrDamaged)
	}
	version := binary.LittleEndian.Uint16(b[4:])
	if version > Version {
		return nil, fmt.Errorf("%w: %d, this is %d", ErrNewerVersion, version, Version)
	}
	size := uint64(binary.LittleEndian.Uint32(b[8:]))
	rest := uint64(len(b) - headerSize)
	switch {
	case version == 0 || binary.LittleEndian.Uint16(b[6:]) != 0:
		return nil, fmt.Errorf("%w: header", ErrDamaged)
	case rest < size+checkSize:
		return nil, ErrTruncated
	case rest > size+checkSize:
		return nil, fmt.Errorf("%w: bytes behind the end", ErrDamaged)
	}
	body := b[headerSize : headerSize+size]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[headerSize+size:]) {
		return nil, fmt.Errorf("%w: records", ErrDamaged)
	}
	s := new(State)
	d := decoder{b: body, version: version}
	for i := range len(recordKinds) {
		kind := recordKinds[i]
		if d.byte() != kind {
			d.fail()
		}
		r := decoder{b: d.bytes(), bad: d.bad, version: version}
		if strings.IndexByte(kinds, kind) >= 0 {
			r.record(kind, s)
		} else {
			r.b = nil
		}
		if r.bad || len(r.b) > 0 {
			return nil, fmt.Errorf("%w: record %q", ErrDamaged, kind)
		}
	}
	if len(d.b) > 0 {
		return nil, fmt.Errorf("%w: records", ErrDamaged)
	}
	return s, nil
}

// decoder reads fields; after a bad one it reads zeros.
type decoder struct {
	b       []byte
	bad     bool
	version uint16 // of the encoding
	spare   []Run  // room for the runs of the next rows
}

func (d *decoder) fail() {
	d.bad = true
	d.b = nil
}

func (d *decoder) uv() uint64 {
	if len(d.b) > 0 && d.b[0] < 0x80 {
		v := d.b[0]
		d.b = d.b[1:]
		return uint64(v)
	}
	return d.longUV()
}

// longUV is uv for more than one byte.
func (d *decoder) longUV() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) sv() int64 {
	v := d.uv()
	return int64(v>>1) ^ -int64(v&1)
}

// upTo reads an uv that may be at most limit.
func (d *decoder) upTo(limit uint64) uint64 {
	v := d.uv()
	if v > limit {
		d.fail()
		return 0
	}
	return v
}

func (d *decoder) num() int    { return int(d.upTo(math.MaxInt32)) }
func (d *decoder) u32() uint32 { return uint32(d.upTo(math.MaxUint32)) }

// s32 reads an sv of 32 bits.
func (d *decoder) s32() int32 {
	v := d.sv()
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.fail()
		return 0
	}
	return int32(v)
}

// count reads the length of a list whose elements take at least size bytes each.
func (d *decoder) count(size int) int {
	n := d.uv()
	if n > uint64(len(d.b)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) byte() uint8 {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail()
	}
	return v == 1
}

func (d *decoder) bytes() []byte {
	n := d.count(1)
	v := d.b[:n:n]
	d.b = d.b[n:]
	if n == 0 {
		return nil
	}
	return v
}

func (d *decoder) str() string { return string(d.bytes()) }

func (d *decoder) strs() []string {
	var list []string
	for range d.count(1) {
		list = append(list, d.str())
	}
	return list
}

func (d *decoder) record(kind byte, s *State) {
	switch kind {
	case 'T':
		d.terminal(s)
	case 'L':
		d.links(s)
	case 'S':
		d.styles(s)
	case 'C':
		d.cursor(s)
	case 'H':
		s.History.First = d.uv()
		s.History.Hidden = d.num()
		s.History.Rows = d.rows()
	case 'M':
		d.screen(&s.Main)
	case 'A':
		d.screen(&s.Alt)
	case 'B':
		last := 0
		for range d.count(1) {
			last += d.num()
			s.Tabs = append(s.Tabs, last)
		}
	case 'N':
		s.Names.Title = d.str()
		s.Names.Icon = d.str()
		s.Names.Cwd = d.str()
		s.Names.Titles = d.strs()
		s.Names.Icons = d.strs()
	case 'P':
		for range d.count(2) {
			s.Palette = append(s.Palette, PaletteEntry{d.num(), d.u32()})
		}
	case 'X':
		d.lexer(&s.Lexer)
	}
}

func (d *decoder) styles(s *State) {
	least := 1
	if d.version < 3 {
		least = 5
	}
	n := d.count(least)
	if n == 0 {
		return
	}
	s.Styles = make([]Style, n)
	for i := range s.Styles {
		if d.version < 3 {
			s.Styles[i] = Style{Color(d.u32()), Color(d.u32()), Color(d.u32()), uint16(d.upTo(math.MaxUint16)), d.num()}
		} else {
			d.style(&s.Styles[i])
		}
	}
}

func (d *decoder) style(v *Style) {
	fields := d.byte()
	if fields == hasFg { // as a rule, where there are very many
		v.Fg = d.color()
		return
	}
	if fields&hasFg != 0 {
		v.Fg = d.color()
	}
	if fields&hasBg != 0 {
		v.Bg = d.color()
	}
	if fields&hasUl != 0 {
		v.Ul = d.color()
	}
	if fields&hasAttrs != 0 {
		v.Attrs = uint16(d.upTo(math.MaxUint16))
	}
	if fields&hasLink != 0 {
		v.Link = d.num()
	}
	if fields > 2*hasLink-1 || fields&hasAttrs != 0 && v.Attrs == 0 || fields&hasLink != 0 && v.Link == 0 {
		d.fail()
	}
}

// color reads a colour, which is not the default.
func (d *decoder) color() Color {
	if len(d.b) < 4 {
		d.fail()
		return 0
	}
	c := Color(binary.LittleEndian.Uint32(d.b))
	if d.b = d.b[4:]; c == 0 {
		d.fail()
	}
	return c
}

// links reads the links. They all share one string: there may be very many.
func (d *decoder) links(s *State) {
	n := d.count(2)
	if n == 0 {
		return
	}
	s.Links = make([]Link, n)
	text := string(d.b)
	part := func() string {
		b := d.bytes()
		end := len(text) - len(d.b)
		return text[end-len(b) : end]
	}
	for i := range s.Links {
		s.Links[i] = Link{part(), part()}
	}
}

func (d *decoder) terminal(s *State) {
	s.Semantics = d.u32()
	s.Widths = d.str()
	s.Size.Cols = d.num()
	s.Size.Rows = d.num()
	s.Size.Scrollback = d.num()
	s.Clock.Offset = d.uv()
	s.Clock.Work = d.uv()
	s.Clock.Epoch = d.u32()
	s.OnAlt = d.bool()
	s.Region.Top = d.num()
	s.Region.Bottom = d.num()
	s.Modes.Bits = d.uv()
	s.Modes.SavedBits = d.uv()
	s.Modes.ModifyOtherKeys = d.byte()
	if d.version >= 2 {
		s.Clock.Generation = d.u32()
	}
	if d.version >= 3 {
		s.LinkRoom = int(d.s32())
	}
}

func (d *decoder) charsets(c *Charsets) {
	for i := range c.G {
		c.G[i] = d.byte()
	}
	c.GL = d.byte()
	c.Single = d.byte()
}

func (d *decoder) cursor(s *State) {
	c := &s.Cursor
	c.X = d.num()
	c.Y = d.num()
	c.Pending = d.bool()
	c.Pen = d.num()
	d.charsets(&c.Charsets)
	c.Style = d.byte()
	s.Text.Last = d.str()
	s.Text.Joins = d.bool()
	s.Text.Code = rune(d.num())
}

func (d *decoder) screen(s *Screen) {
	s.Rows = d.rows()
	if d.bool() {
		s.Saved = new(Saved)
		s.Saved.X = d.num()
		s.Saved.Y = d.num()
		s.Saved.Pending = d.bool()
		s.Saved.Pen = d.num()
		d.charsets(&s.Saved.Charsets)
		s.Saved.Origin = d.bool()
	}
	s.Kitty = d.bytes()
	s.X = d.num()
	s.Y = d.num()
	s.Pending = d.bool()
}

func (d *decoder) rows() []Row {
	n := d.count(5)
	if n == 0 {
		return nil
	}
	rows := make([]Row, n)
	last, next := uint64(0), 0
	for i := range rows {
		r := &rows[i]
		r.Flags = d.byte()
		r.Width = d.num()
		last += uint64(d.sv())
		r.Written = last
		r.Text = d.bytes()
		if k := d.count(2); k > 0 {
			if k > len(d.spare) {
				d.spare = make([]Run, max(k, min(1024, len(d.b)/2)))
			}
			r.Runs, d.spare = d.spare[:k:k], d.spare[k:]
			for j := range r.Runs {
				r.Runs[j].Len = d.num()
				r.Runs[j].Style = d.runStyle(next)
				next = max(next, r.Runs[j].Style+1)
			}
		}
		if d.bad {
			return nil
		}
	}
	return rows
}

// runStyle reads the style of a run; next is the first that those before do not pass.
func (d *decoder) runStyle(next int) int {
	if d.version < 3 {
		return d.num()
	}
	v := int64(next) - int64(d.s32())
	if v < 0 || v > math.MaxInt32 {
		d.fail()
		return 0
	}
	return int(v)
}

func (d *decoder) lexer(l *Lexer) {
	l.Phase = d.byte()
	l.Held = d.bytes()
	l.Prefix = d.byte()
	l.Inter = d.bytes()
	for range d.count(1) {
		l.Params = append(l.Params, d.s32())
	}
	l.Colons = d.u32()
	l.Data = d.bytes()
	l.Dropped = d.bool()
}
