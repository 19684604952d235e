package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"reflect"
	"strings"
	"testing"

	"looptape/checkpoint"
)

// goldenState is the State that testdata/v3.golden writes out: something in
// every field of every record.
func goldenState() *checkpoint.State {
	return &checkpoint.State{
		Semantics: 3,
		Widths:    "w/1",
		Size:      checkpoint.Size{Cols: 200, Rows: 2, Scrollback: 10000},
		Clock:     checkpoint.Clock{Offset: 70000, Work: 90000, Epoch: 5, Generation: 300},
		LinkRoom:  -300,
		OnAlt:     true,
		Region:    checkpoint.Region{Top: 0, Bottom: 1},
		Modes:     checkpoint.Modes{Bits: 0x8001, SavedBits: 1, ModifyOtherKeys: 2},
		Links:     []checkpoint.Link{{ID: "a", URI: "http://x.example"}},
		Styles: []checkpoint.Style{{}, {
			Fg:    checkpoint.ColorRGB | 0x010203,
			Bg:    checkpoint.ColorIndexed | 9,
			Attrs: checkpoint.Bold | 3<<checkpoint.UnderlineShift,
			Link:  1,
		}},
		Cursor: checkpoint.Cursor{X: 199, Y: 1, Pending: true, Pen: 1, Style: 4,
			Charsets: checkpoint.Charsets{G: [4]uint8{'0', 'B', 'B', 'B'}, GL: 1, Single: 2}},
		Text: checkpoint.TextState{Last: "e\u0301", Joins: true, Code: 0x301},
		History: checkpoint.History{First: 300, Rows: []checkpoint.Row{
			{Text: []byte("abc"), Width: 3, Written: 1000, Flags: checkpoint.RowWrapped | checkpoint.RowASCII},
			{Text: []byte("漢b "), Width: 4, Written: 999, Flags: checkpoint.RowWrapped | checkpoint.RowReported,
				Runs: []checkpoint.Run{{Len: 3, Style: 1}, {Len: 2, Style: 0}}},
		}},
		Main: checkpoint.Screen{
			Rows: []checkpoint.Row{{Text: []byte("x"), Width: 1, Written: 69990, Flags: checkpoint.RowASCII}, {}},
			Saved: &checkpoint.Saved{X: 7, Y: 1, Pen: 1, Origin: true,
				Charsets: checkpoint.Charsets{G: [4]uint8{'B', '0', 'B', 'B'}}},
			Kitty: []uint8{1},
			X:     5, Y: 1,
		},
		Alt: checkpoint.Screen{Rows: []checkpoint.Row{
			{Text: []byte("alt"), Width: 3, Written: 70000, Flags: checkpoint.RowASCII, Runs: []checkpoint.Run{{Len: 3, Style: 1}}}, {},
		}},
		Tabs:    []int{8, 16, 136},
		Names:   checkpoint.Names{Title: "title", Icon: "icon", Cwd: "file://h/d", Titles: []string{"old"}},
		Palette: []checkpoint.PaletteEntry{{Index: 1, RGB: 0xff8000}, {Index: 257, RGB: 0x102030}},
		Lexer: checkpoint.Lexer{Phase: 3, Held: []byte("\xe6\xbc"), Prefix: '?', Inter: []byte("$"),
			Params: []int32{1, -1}, Colons: 2, Data: []byte("pay")},
	}
}

// golden returns the bytes of an annotated file: hex up to a #, on each line.
func golden(tb testing.TB, name string) []byte {
	tb.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var b []byte
	for line := range strings.Lines(string(text)) {
		digits, _, _ := strings.Cut(line, "#")
		p, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), " ", ""))
		if err != nil {
			tb.Fatalf("%s: %q: %v", name, line, err)
		}
		b = append(b, p...)
	}
	return b
}

// TestGolden: version 3 reads and is written as its drawing says.
func TestGolden(t *testing.T) {
	want := golden(t, "v3.golden")
	got := checkpoint.Encode(nil, goldenState())
	if !bytes.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("Encode differs from v3.golden at byte %d of %d (%d in the file):\n got %x\nwant %x",
			i, len(got), len(want), got[i:min(len(got), i+16)], want[i:min(len(want), i+16)])
	}
	s, err := checkpoint.Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s, goldenState()) {
		t.Errorf("Decode of v3.golden:\n got %+v\nwant %+v", s, goldenState())
	}
}

// TestEarlierVersions: what versions 1 and 2 wrote is read. There were no generations
// in the first, and no link room in either.
func TestEarlierVersions(t *testing.T) {
	want := goldenState()
	for _, name := range []string{"v2.golden", "v1.golden"} {
		want.LinkRoom = 0
		if name == "v1.golden" {
			want.Clock.Generation = 0
		}
		s, err := checkpoint.Decode(golden(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(s, want) {
			t.Errorf("Decode of %s:\n got %+v\nwant %+v", name, s, want)
		}
	}
}

// TestDecodeBase: what completes other States is read of any version, and nothing else;
// what is wrong is found as by Decode.
func TestDecodeBase(t *testing.T) {
	for _, name := range []string{"v1.golden", "v2.golden", "v3.golden"} {
		b := golden(t, name)
		whole, err := checkpoint.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		want := &checkpoint.State{Semantics: whole.Semantics, Widths: whole.Widths, Size: whole.Size, Clock: whole.Clock,
			OnAlt: whole.OnAlt, Region: whole.Region, Modes: whole.Modes, LinkRoom: whole.LinkRoom,
			Links: whole.Links, Styles: whole.Styles, History: whole.History}
		if s, err := checkpoint.DecodeBase(b); err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, s, want)
		}
		for i := range b {
			bad := bytes.Clone(b)
			bad[i] ^= 1
			if s, err := checkpoint.DecodeBase(bad); s != nil || err == nil {
				t.Errorf("%s, byte %d damaged: %v", name, i, err)
			}
			if s, err := checkpoint.DecodeBase(b[:i]); s != nil || !errors.Is(err, checkpoint.ErrTruncated) {
				t.Errorf("%s, %d bytes: %v", name, i, err)
			}
		}
	}
}

// TestComplete: rows, styles and links of several States come together; rows that a
// later one has are not taken from an earlier one.
func TestComplete(t *testing.T) {
	row := func(text string, style int) checkpoint.Row {
		return checkpoint.Row{Text: []byte(text), Runs: []checkpoint.Run{{Len: len(text), Style: style}}}
	}
	state := func(first uint64, offset uint64, rows ...checkpoint.Row) *checkpoint.State {
		return &checkpoint.State{
			Size:    checkpoint.Size{Cols: 80, Rows: 1, Scrollback: 5},
			Clock:   checkpoint.Clock{Offset: offset, Epoch: 1},
			Links:   []checkpoint.Link{{URI: fmt.Sprintf("used:%d", offset)}, {URI: "unused:"}},
			Styles:  []checkpoint.Style{{}, {Fg: checkpoint.Color(offset), Link: 1}, {Fg: 7, Link: 2}},
			History: checkpoint.History{First: first, Rows: rows},
		}
	}
	// Rows 10 to 16; 14 is in the second as it was then, and in the last as it is.
	bases := func() []*checkpoint.State {
		return []*checkpoint.State{
			state(13, 200, row("d", 1), row("old", 1)),
			state(10, 100, row("a", 1), row("b", 0), row("c", 1)),
		}
	}
	s := state(14, 300, row("e", 1), row("f", 0), row("g", 1))
	if err := s.Complete(bases()...); err != nil {
		t.Fatal(err)
	}
	if s.History.First != 12 || len(s.History.Rows) != 5 {
		t.Fatalf("%d rows from %d on, want the newest 5, from 12 on", len(s.History.Rows), s.History.First)
	}
	for i, want := range []struct {
		text, uri string
		fg        checkpoint.Color
	}{{"c", "used:100", 100}, {"d", "used:200", 200}, {"e", "used:300", 300}, {"f", "", 0}, {"g", "used:300", 300}} {
		r := s.History.Rows[i]
		style := s.Styles[r.Runs[0].Style]
		uri := ""
		if style.Link > 0 {
			uri = s.Links[style.Link-1].URI
		}
		if string(r.Text) != want.text || style.Fg != want.fg || uri != want.uri {
			t.Errorf("row %d: %q, colour %d, link %q; want %+v", i, r.Text, style.Fg, uri, want)
		}
	}
	s = state(0, 300, row("x", 1))
	if err := s.Complete(); err != nil || len(s.History.Rows) != 1 {
		t.Errorf("completed by nothing: %v, %d rows", err, len(s.History.Rows))
	}
	for name, spoil := range map[string]func(b []*checkpoint.State){
		"another epoch":   func(b []*checkpoint.State) { b[1].Clock.Epoch = 2 },
		"another size":    func(b []*checkpoint.State) { b[0].Size.Cols = 79 },
		"a later one":     func(b []*checkpoint.State) { b[0].Clock.Offset = 301 },
		"rows missing":    func(b []*checkpoint.State) { b[1].History.Rows = b[1].History.Rows[:2] },
		"the wrong order": func(b []*checkpoint.State) { b[0], b[1] = b[1], b[0] },
		"hidden rows":     func(b []*checkpoint.State) { b[1].History.Hidden = 1 },
		"no such style":   func(b []*checkpoint.State) { b[1].History.Rows[0].Runs[0].Style = 3 },
	} {
		b := bases()
		spoil(b)
		if err := state(14, 300, row("e", 1)).Complete(b...); !errors.Is(err, checkpoint.ErrBase) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEncodeAppends: what is in dst stays.
func TestEncodeAppends(t *testing.T) {
	b := checkpoint.Encode([]byte("before"), goldenState())
	if !bytes.Equal(b, append([]byte("before"), golden(t, "v3.golden")...)) {
		t.Error("Encode does not append")
	}
}

// TestEmpty: the zero State has an encoding.
func TestEmpty(t *testing.T) {
	b := checkpoint.Encode(nil, &checkpoint.State{})
	s, err := checkpoint.Decode(b)
	if err != nil || !reflect.DeepEqual(s, &checkpoint.State{}) {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestTruncated: no prefix is a checkpoint, and each is told from damage.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"v1.golden", "v2.golden", "v3.golden"} {
		b := golden(t, name)
		for n := range len(b) {
			s, err := checkpoint.Decode(b[:n])
			if s != nil || !errors.Is(err, checkpoint.ErrTruncated) {
				t.Errorf("%s: %d of %d bytes: %v", name, n, len(b), err)
			}
		}
	}
}

// TestFlipped: every flipped bit of every byte is an error; in the magic it is
// "not ours", elsewhere damage (or a torn end, where a length grew), and never
// a newer version: the version is under the header's checksum.
func TestFlipped(t *testing.T) {
	for _, name := range []string{"v1.golden", "v2.golden", "v3.golden"} {
		flipped(t, golden(t, name))
	}
}

func flipped(t *testing.T, b []byte) {
	t.Helper()
	for i := range b {
		for bit := range 8 {
			bad := bytes.Clone(b)
			bad[i] ^= 1 << bit
			s, err := checkpoint.Decode(bad)
			want := checkpoint.ErrDamaged
			if i < len(checkpoint.Magic) {
				want = checkpoint.ErrNotCheckpoint
			}
			if s != nil || !errors.Is(err, want) {
				t.Errorf("byte %d, bit %d flipped: %v, want %v", i, bit, err, want)
			}
		}
	}
}

// seal sets the lengths and checksums of b to fit its bytes, after the drawing
// in encode.go, so that a decoder looks further than at those.
func seal(b []byte) []byte {
	b = bytes.Clone(b)
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-16-4))
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], table))
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[16:len(b)-4], table))
	return b
}

// TestVersions: a later version is told as such whatever follows its header,
// and version 0 never was.
func TestVersions(t *testing.T) {
	b := golden(t, "v3.golden")
	for _, version := range []uint16{checkpoint.Version + 1, 255, 256, 65535} {
		newer := bytes.Clone(b)
		binary.LittleEndian.PutUint16(newer[4:], version)
		for _, end := range []int{len(newer), 40, 20} {
			if s, err := checkpoint.Decode(seal(newer[:end])); s != nil || !errors.Is(err, checkpoint.ErrNewerVersion) {
				t.Errorf("version %d, %d bytes: %v", version, end, err)
			}
		}
	}
	zero := bytes.Clone(b)
	zero[4] = 0
	if _, err := checkpoint.Decode(seal(zero)); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("version 0: %v", err)
	}
	reserved := bytes.Clone(b)
	reserved[6] = 1
	if _, err := checkpoint.Decode(seal(reserved)); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("reserved field set: %v", err)
	}
}

// TestTrailing: nothing may follow, neither behind the checksum nor inside a
// record or behind the last one.
func TestTrailing(t *testing.T) {
	b := golden(t, "v3.golden")
	for name, bad := range map[string][]byte{
		"behind the end":         append(bytes.Clone(b), 0),
		"behind the last record": seal(append(bytes.Clone(b[:len(b)-4]), 0, 0, 0, 0, 0)),
		"in the last record":     seal(longerRecord(b, 'X')),
		"in the first record":    seal(longerRecord(b, 'T')),
	} {
		if s, err := checkpoint.Decode(bad); s != nil || !errors.Is(err, checkpoint.ErrDamaged) {
			t.Errorf("a byte too many %s: %v", name, err)
		}
	}
}

// records returns where each record of b begins, by kind, and how long it is.
func records(b []byte) (kinds string, start, size []int) {
	for i := 16; i < len(b)-4; {
		n, k := binary.Uvarint(b[i+1:])
		kinds += string(b[i])
		start, size = append(start, i), append(size, 1+k+int(n))
		i += 1 + k + int(n)
	}
	return kinds, start, size
}

// longerRecord adds a zero byte to the end of the record of a kind.
func longerRecord(b []byte, kind byte) []byte {
	kinds, start, size := records(b)
	i := strings.IndexByte(kinds, kind)
	n, k := binary.Uvarint(b[start[i]+1:])
	out := append(bytes.Clone(b[:start[i]]), kind)
	out = binary.AppendUvarint(out, n+1)
	out = append(out, b[start[i]+1+k:start[i]+size[i]]...)
	return append(append(out, 0), b[start[i]+size[i]:]...)
}

// TestRecords: a record that is missing, twice there, out of its place or of
// an unknown kind is damage.
func TestRecords(t *testing.T) {
	b := golden(t, "v3.golden")
	kinds, start, size := records(b)
	if kinds != "TLSCHMABNPX" {
		t.Fatalf("records %q", kinds)
	}
	for i := range kinds {
		end := start[i] + size[i]
		record := b[start[i]:end]
		missing := append(bytes.Clone(b[:start[i]]), b[end:]...)
		twice := append(append(bytes.Clone(b[:end]), record...), b[end:]...)
		unknown := bytes.Clone(b)
		unknown[start[i]] = 'z'
		last := append(append(bytes.Clone(missing[:len(missing)-4]), record...), 0, 0, 0, 0)
		for name, bad := range map[string][]byte{"missing": missing, "twice": twice, "unknown": unknown, "last": last} {
			if name == "last" && i == len(kinds)-1 {
				continue
			}
			if s, err := checkpoint.Decode(seal(bad)); s != nil || !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("record %q %s: %v", kinds[i], name, err)
			}
		}
	}
}

// TestOverLimit: lengths and counts that promise more than is there are damage
// before anything is allocated for them.
func TestOverLimit(t *testing.T) {
	b := golden(t, "v3.golden")
	_, start, size := records(b)
	for i := range start {
		_, k := binary.Uvarint(b[start[i]+1:])
		for _, huge := range []uint64{1 << 31, 1<<32 - 1, 1 << 62, 1<<64 - 1} {
			bad := append(bytes.Clone(b[:start[i]+1]), binary.AppendUvarint(nil, huge)...)
			bad = seal(append(bad, b[start[i]+1+k:]...))
			if _, err := checkpoint.Decode(bad); !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("record %q of %d bytes: %v", b[start[i]], huge, err)
			}
			// The first field of most records is a count.
			payload := append(binary.AppendUvarint(nil, huge), b[start[i]+2+k:start[i]+size[i]]...)
			bad = append(bytes.Clone(b[:start[i]+1]), binary.AppendUvarint(nil, uint64(len(payload)))...)
			bad = seal(append(append(bad, payload...), b[start[i]+size[i]:]...))
			if s, err := checkpoint.Decode(bad); err == nil && strings.IndexByte("LSMABP", b[start[i]]) >= 0 {
				t.Errorf("record %q with a count of %d: %+v", b[start[i]], huge, s)
			}
		}
	}
}
