package capture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// readAll reads a file in pieces of up to size bytes.
func readAll(file string, size int, r *rand.Rand) (head CastHead, events []CastEvent, reader *CastReader, err error) {
	reader = &CastReader{
		Head:  func(h CastHead) error { head = h; return nil },
		Event: func(e CastEvent) error { events = append(events, e); return nil },
	}
	for rest := []byte(file); len(rest) > 0; {
		n := min(1+r.IntN(size), len(rest))
		if err := reader.Feed(slices.Clone(rest[:n])); err != nil {
			return head, events, reader, err
		}
		rest = rest[n:]
	}
	return head, events, reader, reader.End()
}

// TestCastReader: files of both versions, in pieces of any size. The values are read
// off the lines by a person.
func TestCastReader(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	v2 := `{"version": 2, "width": 80, "height": 24, "timestamp": 1504467315.25, "title": "Demo é", "command": "a 'b c'", "idle_time_limit": 1.5, "env": {"TERM": "screen", "SHELL": "/bin/zsh"}, "theme": {"fg": "#fff"}}` + "\r\n" +
		`[0, "o", "one\r\n\u001b[1m\ud83d\ude00漢"]` + "\n" +
		`  [ 0.248848 , "i" , "secret" ] ` + "\n" +
		"\n" +
		`[1.001376, "m", ""]` + "\n" +
		`[1.001376, "r", "100x50"]` + "\n" +
		`[1.5e1, "o", "\u0000\u007f\ud800x"]` + "\n" +
		`[123456789.123456789123, "o", ""]` // without a newline
	v3 := `{"version":3,"term":{"cols":80,"rows":24,"type":"screen","theme":{}},"timestamp":1504467315,"title":"Demo é","command":"a 'b c'"}` + "\n" +
		"# a comment\n" +
		`[0.000001, "o", "x"]` + "\n" +
		`[0.1, "x", "3"]` + "\n" +
		`[0.2, "z", {"new": 1}]` + "\n" +
		`[0, "o", "y"]` + "\n"
	for size := range 60 {
		head, events, reader, err := readAll(v2, 1+size, r)
		want := CastHead{CastHeader{"a 'b c'", "Demo é", "screen"}, 80, 24, 1504467315_250000000}
		wantEvents := []CastEvent{
			{At: 0, Code: 'o', Data: "one\r\n\x1b[1m😀漢"},
			{At: 1_001376000, Code: 'm'},
			{At: 1_001376000, Code: 'r', Cols: 100, Rows: 50},
			{At: 15_000000000, Code: 'o', Data: "\x00\x7f\ufffdx"},
			{At: 123456789_123456789, Code: 'o'},
		}
		if err != nil || head != want || !slices.Equal(events, wantEvents) || reader.Line != 8 || reader.Ignored != 1 {
			t.Fatalf("v2 in pieces of %d: %v, %+v, %+v, %d lines, %d ignored", 1+size, err, head, events, reader.Line, reader.Ignored)
		}
		head, events, reader, err = readAll(v3, 1+size, r)
		want.Wall = 1504467315_000000000
		wantEvents = []CastEvent{
			{At: 1000, Code: 'o', Data: "x"},
			{At: 100001000, Code: 'x', Status: 3},
			{At: 300001000, Code: 'o', Data: "y"},
		}
		if err != nil || head != want || !slices.Equal(events, wantEvents) || reader.Line != 6 || reader.Ignored != 1 {
			t.Fatalf("v3 in pieces of %d: %v, %+v, %+v, %d lines, %d ignored", 1+size, err, head, events, reader.Line, reader.Ignored)
		}
	}
}

// TestCastReaderRefuses: what cannot be is refused with its line, whatever came before.
func TestCastReaderRefuses(t *testing.T) {
	const v2, v3 = `{"version":2,"width":9,"height":3}` + "\n", `{"version":3,"term":{"cols":9,"rows":3},"timestamp":1700000000}` + "\n"
	for _, c := range []struct {
		file string
		line int
		what string // is part of the message
	}{
		{"", 1, "no header"},
		{"\n" + v2, 1, "no header"},
		{"hello\n", 1, "no header"},
		{"\x1b[31mhello\xff\n", 1, "not UTF-8"},
		{`[1,"o","x"]`, 1, "no header"},
		{`{"version":2,"width":9,`, 1, "no header"},
		{`{"width":9,"height":3}`, 1, "no version"},
		{`{"version":1,"width":9,"height":3,"stdout":[]}`, 1, "version 1: 2 and 3"},
		{`{"version":4}`, 1, "version 4"},
		{`{"version":"` + strings.Repeat("2", 100) + `"}`, 1, "2 and 3 can be read"},
		{`{"version":2}`, 1, "0x0"},
		{`{"version":2,"width":-1,"height":3}`, 1, "-1x3"},
		{`{"version":2,"width":65536,"height":3}`, 1, "65536x3"},
		{`{"version":2,"width":1e308,"height":3}`, 1, "width"},
		{`{"version":2,"width":"9","height":3}`, 1, "width of the header must not be a string"},
		{`{"version":2,"width":9.5,"height":3}`, 1, "width"},
		{`{"version":3,"term":{"cols":99999999999999999999,"rows":3}}`, 1, "term.cols"},
		{`{"version":2,"width":9,"height":3,"timestamp":-5}`, 1, "timestamp"},
		{`{"version":2,"width":9,"height":3,"timestamp":1e308}`, 1, "timestamp"},
		{`{"version":2,"width":9,"height":3,"timestamp":9300000000}`, 1, "timestamp"},
		{`{"version":2,"width":9,"height":3,"timestamp":"now"}`, 1, "timestamp"},
		{`{"version":2,"width":9,"height":3,"command":"` + strings.Repeat("c", 65537) + `"}`, 1, "65536 bytes"},
		{v2 + "[1,\"o\",\"x\"]\n\nx\n", 4, "not an event"},
		{v2 + `{"a":1}`, 2, "not an event"},
		{v2 + `[1,"o"]`, 2, "not an event"},
		{v2 + `[1,"o","x",1]`, 2, "not an event"},
		{v2 + `[1,"o","x"`, 2, "not an event"},
		{v2 + `# no comments in v2`, 2, "not an event"},
		{v2 + "[1,\"o\",\"\xff\"]", 2, "not UTF-8"},
		{v2 + `["1","o","x"]`, 2, "must be a number"},
		{v2 + `[null,"o","x"]`, 2, "must be a number"},
		{v2 + `[1,2,"x"]`, 2, "second field"},
		{v2 + `[1,null,"x"]`, 2, "second field"},
		{v2 + `[1,"o",2]`, 2, "third field"},
		{v2 + `[1,"o",null]`, 2, "third field"},
		{v2 + "[2,\"o\",\"x\"]\n[1.999999,\"o\",\"x\"]", 3, "before that of the event before"},
		{v2 + `[-0.5,"o","x"]`, 2, "negative"},
		{v2 + `[1e308,"o","x"]`, 2, "too many"},
		{v2 + `[1e400,"o","x"]`, 2, "too many"},
		{v2 + `[` + strings.Repeat("9", 1000) + `,"o","x"]`, 2, "too many"},
		{v3 + "[1,\"o\",\"x\"]\n[-0.000001,\"o\",\"x\"]", 3, "negative"},
		{v3 + "[5000000000,\"o\",\"x\"]\n[4000000000,\"o\",\"x\"]", 3, "2262"},
		{v3 + "[7000000000,\"i\",\"x\"]\n[7000000000,\"i\",\"x\"]", 3, "too many"},
		{v3 + `[1,"r","80"]`, 2, "no size"},
		{v3 + `[1,"r","80x"]`, 2, "no size"},
		{v3 + `[1,"r","0x24"]`, 2, "no size"},
		{v3 + `[1,"r","80x24x1"]`, 2, "no size"},
		{v3 + `[1,"r","65536x24"]`, 2, "no size"},
		{v3 + `[1,"r","99999999999999999999x1"]`, 2, "no size"},
		{v3 + `[1,"x","256"]`, 2, "exit status"},
		{v3 + `[1,"x","-1"]`, 2, "exit status"},
		{v3 + `[1,"x",""]`, 2, "exit status"},
		{v3 + `[1,"m","` + strings.Repeat("m", 65537) + `"]`, 2, "marker"},
		{v3 + `[1,"o","` + strings.Repeat("o", 16<<20) + `"]`, 2, "longer than 16777216 bytes"},
	} {
		r := rand.New(rand.NewPCG(3, 4))
		for _, size := range []int{7, 1 << 20} {
			if len(c.file) > 1<<20 {
				size = 1 << 20
			}
			_, _, _, err := readAll(c.file, size, r)
			wrong := &CastError{}
			if !errors.As(err, &wrong) || wrong.Line != c.line || !strings.Contains(wrong.What, c.what) || len(wrong.What) > 300 {
				t.Errorf("%.100q in pieces of %d: %v; want line %d, %s", c.file, size, err, c.line, c.what)
			}
		}
	}
}

// TestParseSeconds: decimals are taken exactly, to the nanosecond.
func TestParseSeconds(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 1e9, "1.5": 15e8, "0.000001": 1000, "0.000000001": 1, "0.0000000019": 1, "0.1": 1e8, "0.3": 3e8,
		"4123456789.123457": 4123456789_123457000, "1e3": 1e12, "25E-1": 25e8, "-1.25": -125e7,
	} {
		if got, ok := parseSeconds(text); !ok || got != want {
			t.Errorf("%s s: %d ns, %v; want %d", text, got, ok, want)
		}
	}
	for range 1000 {
		ns := rand.Int64N(8e18)
		if got, ok := parseSeconds(fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9)); !ok || got != ns {
			t.Errorf("%d ns read as %d, %v", ns, got, ok)
		}
	}
}

// FuzzCastReader: no file makes the reader panic, or hand on what cannot be; and it is
// read alike in one piece and in many.
func FuzzCastReader(f *testing.F) {
	f.Add([]byte(`{"version":2,"width":9,"height":3}`+"\n[1,\"o\",\"x\"]\n[2,\"r\",\"8x2\"]\n"), uint8(3))
	f.Add([]byte(`{"version":3,"term":{"cols":9,"rows":3},"timestamp":1.5}`+"\n#\n[1,\"x\",\"3\"]\n[1e2,\"m\",\"\\ud800\"]"), uint8(9))
	f.Fuzz(func(t *testing.T, file []byte, size uint8) {
		read := func(size int) (string, error) {
			_, events, reader, err := readAll(string(file), size, rand.New(rand.NewPCG(1, uint64(size))))
			at := int64(0)
			for _, e := range events {
				if e.At < at || e.Code == 'r' && !fits(e.Cols, e.Rows) || e.Status < 0 || e.Status > 255 || !utf8.ValidString(e.Data) {
					t.Fatalf("%+v behind %d", e, at)
				}
				at = e.At
			}
			return fmt.Sprint(events, reader.Line, reader.Ignored, err), err
		}
		whole, err := read(1 << 20)
		if pieces, _ := read(1 + int(size)); pieces != whole {
			t.Fatalf("in pieces %s, whole %s", pieces, whole)
		}
		if wrong := (&CastError{}); err != nil && !errors.As(err, &wrong) {
			t.Fatal(err)
		}
	})
}

// TestCastWall: where a file says nothing of when it begins, its times count from when
// it is read, and may not go beyond what 64 bits of ns hold either.
func TestCastWall(t *testing.T) {
	const wall = 1_800_000_000_000_000_000 // 2027
	for _, c := range []struct {
		timestamp, at string
		wall          int64
		fits          bool
	}{
		{"", "1", wall, true},
		{"", "7423372036", wall, true}, // 2^63 ns are 9223372036.85 s
		{"", "7423372037", wall, false},
		{`,"timestamp":1`, "7423372037", 1_000_000_000, true},
		{`,"timestamp":1`, "9223372036", 1_000_000_000, false},
	} {
		begin := int64(0)
		r := CastReader{Wall: wall, Head: func(h CastHead) error { begin = h.Wall; return nil }, Event: func(CastEvent) error { return nil }}
		err := r.Feed([]byte(`{"version":2,"width":9,"height":3` + c.timestamp + "}\n[" + c.at + `,"o","x"]` + "\n"))
		if begin != c.wall || (err == nil) != c.fits {
			t.Errorf("%+v: begins at %d (%v)", c, begin, err)
		}
	}
}
