package attach

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// golden are frames and their bytes, written by hand from the drawing in doc.go.
var golden = []struct {
	name   string
	client bool
	frame  Frame
	hex    string
}{
	{"snapshot", false, Frame{Type: Snapshot, Offset: 0x0102030405060708, Epoch: 7, Cols: 80, Rows: 24, Data: []byte("\x1bcA")},
		"00000014 01 0102030405060708 00000007 0050 0018 1b6341"},
	{"snapshot of the largest size", false, Frame{Type: Snapshot, Offset: 1<<64 - 1, Epoch: 1<<32 - 1, Cols: 65535, Rows: 1, Data: []byte{}},
		"00000011 01 ffffffffffffffff ffffffff ffff 0001"},
	{"output", false, Frame{Type: Output, Offset: 258, Data: []byte{0, 0xff, '\n'}},
		"0000000c 02 0000000000000102 00ff0a"},
	{"resize", false, Frame{Type: Resize, Offset: 1 << 32, Cols: 132, Rows: 43, Epoch: 2},
		"00000011 03 0000000100000000 0084 002b 00000002"},
	{"scrollback", false, Frame{Type: Scrollback, Epoch: 3, Start: 990, Data: []byte("a \n\xe6\xbc\xa2\n")},
		"00000014 04 00000003 00000000000003de 61200a e6bca2 0a"},
	{"end of the scrollback", false, Frame{Type: Scrollback, Epoch: 3, Start: 0, Data: []byte{}},
		"0000000d 04 00000003 0000000000000000"},
	{"resync", false, Frame{Type: Resync, Offset: 5, Data: []byte("backlog")},
		"00000010 05 0000000000000005 6261636b6c6f67"},
	{"exit", false, Frame{Type: Exit, Offset: 6, Data: []byte(`{"code":3,"closed":true}`)},
		"00000021 06 0000000000000006 7b22636f6465223a332c22636c6f736564223a747275657d"},
	{"error", false, Frame{Type: Error, Data: []byte(`{}`)},
		"00000003 07 7b7d"},
	{"input", true, Frame{Type: Input, Data: []byte("ls\r")},
		"00000004 10 6c730d"},
	{"empty input", true, Frame{Type: Input, Data: []byte{}},
		"00000001 10"},
	{"viewport", true, Frame{Type: Viewport, Cols: 200, Rows: 50},
		"00000005 11 00c8 0032"},
	{"ack", true, Frame{Type: Ack, Offset: 0xffff},
		"00000009 12 000000000000ffff"},
	{"detach", true, Frame{Type: Detach},
		"00000001 13"},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func reader(r io.Reader, client bool) *Reader {
	if client {
		return NewClientReader(r)
	}
	return NewReader(r, 1<<20)
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		want := unhex(t, g.hex)
		if got := Append([]byte("x"), g.frame); !bytes.Equal(got[1:], want) {
			t.Errorf("%s is written as %x, not %x", g.name, got[1:], want)
		}
		if n := HeadLen(g.frame.Type); n+len(g.frame.Data) != len(want) {
			t.Errorf("%s: a head of %d bytes", g.name, n)
		}
		in := reader(bytes.NewReader(want), g.client)
		got, err := in.Next()
		if err != nil || !reflect.DeepEqual(got, g.frame) {
			t.Errorf("%s is read as %+v, %v", g.name, got, err)
		}
		if _, err := in.Next(); err != io.EOF {
			t.Errorf("%s: behind it: %v", g.name, err)
		}
		// The other side may not send it.
		if _, err := reader(bytes.NewReader(want), !g.client).Next(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s from the wrong side: %v", g.name, err)
		}
	}
}

// TestTruncated: a connection that ends within a frame is never a shorter frame.
func TestTruncated(t *testing.T) {
	for _, g := range golden {
		whole := unhex(t, g.hex)
		for n := range whole {
			_, err := reader(bytes.NewReader(whole[:n]), g.client).Next()
			if want := io.ErrUnexpectedEOF; n > 0 && err != want || n == 0 && err != io.EOF {
				t.Errorf("%s, %d of %d bytes: %v", g.name, n, len(whole), err)
			}
		}
	}
}

// TestMalformed: every payload of a wrong length or meaning has an error of its
// own kind.
func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name   string
		client bool
		hex    string
		want   error
	}{
		{"length 0", true, "00000000 13", ErrMalformed},
		{"type 0", false, "00000001 00", ErrMalformed},
		{"type 8", false, "00000001 08", ErrMalformed},
		{"type 15", true, "00000001 0f", ErrMalformed},
		{"type 20", true, "00000001 14", ErrMalformed},
		{"type 255", true, "00000001 ff", ErrMalformed},
		{"detach with a byte", true, "00000002 13 00", ErrMalformed},
		{"viewport of 3 bytes", true, "00000004 11 00c800", ErrMalformed},
		{"viewport of 5 bytes", true, "00000006 11 00c8003200", ErrMalformed},
		{"viewport of 0 columns", true, "00000005 11 0000 0032", ErrMalformed},
		{"viewport of 0 rows", true, "00000005 11 0032 0000", ErrMalformed},
		{"ack of 7 bytes", true, "00000008 12 00000000000000", ErrMalformed},
		{"ack of 9 bytes", true, "0000000a 12 000000000000000000", ErrMalformed},
		{"snapshot without its rows", false, "0000000f 01 0102030405060708 00000007 0050", ErrMalformed},
		{"output without its offset", false, "00000008 02 00000000000001", ErrMalformed},
		{"resize with a byte too many", false, "00000012 03 0000000100000000 0084 002b 00000002 00", ErrMalformed},
		{"rows that are not UTF-8", false, "0000000f 04 00000003 0000000000000000 ff0a", ErrMalformed},
		{"an error that is not UTF-8", false, "00000002 07 c3", ErrMalformed},
		{"JSON", true, hex.EncodeToString([]byte(`{"id":2,"verb":"pane.attach"}`)), ErrMalformed},
		{"4 GiB", true, "ffffffff 10", ErrTooLong},
	} {
		_, err := reader(bytes.NewReader(unhex(t, c.hex)), c.client).Next()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLimits: a frame of the largest length is read, one byte more is refused
// before anything of it is.
func TestLimits(t *testing.T) {
	largest := Append(nil, Frame{Type: Input, Data: make([]byte, MaxInput)})
	if len(largest) != 65541 {
		t.Fatalf("the largest frame of a client has %d bytes", len(largest))
	}
	f, err := NewClientReader(bytes.NewReader(largest)).Next()
	if err != nil || len(f.Data) != 65536 {
		t.Fatalf("%d bytes, %v", len(f.Data), err)
	}
	in := bytes.NewReader(Append(nil, Frame{Type: Input, Data: make([]byte, MaxInput+1)}))
	if _, err := NewClientReader(in).Next(); !errors.Is(err, ErrTooLong) {
		t.Fatalf("one byte more: %v", err)
	}
	if in.Len() != MaxInput+1 {
		t.Fatalf("of the frame that is too long, %d bytes were left", in.Len())
	}
	for size, want := range map[int]error{4096: nil, 4097: ErrTooLong} {
		out := Append(nil, Frame{Type: Output, Data: make([]byte, size-13)})
		if _, err := NewReader(bytes.NewReader(out), 4096).Next(); !errors.Is(err, want) {
			t.Errorf("%d bytes of 4096: %v", size, err)
		}
	}
}

// TestReader: frames one behind the other, in pieces of any size.
func TestReader(t *testing.T) {
	var stream []byte
	var want []Frame
	for range 3 {
		for _, g := range golden {
			if !g.client {
				stream = append(stream, unhex(t, g.hex)...)
				want = append(want, g.frame)
			}
		}
	}
	for piece := 1; piece < 40; piece++ {
		in := NewReader(pieces{bytes.NewReader(stream), piece}, 1<<20)
		for i, w := range want {
			got, err := in.Next()
			if err != nil || !reflect.DeepEqual(got, w) {
				t.Fatalf("frame %d in pieces of %d: %+v, %v", i, piece, got, err)
			}
		}
	}
}

// pieces reads at most n bytes at a time.
type pieces struct {
	r io.Reader
	n int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// FuzzReader: whatever comes, a Reader ends, and what it reads it would write.
func FuzzReader(f *testing.F) {
	for _, g := range golden {
		b, _ := hex.DecodeString(strings.ReplaceAll(g.hex, " ", ""))
		f.Add(b, g.client)
		f.Add(b[:len(b)-1], g.client)
	}
	f.Add([]byte(`{"id":1}`), true)
	f.Fuzz(func(t *testing.T, stream []byte, client bool) {
		in := reader(bytes.NewReader(stream), client)
		var written []byte
		for {
			frame, err := in.Next()
			if err != nil {
				if !slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, ErrMalformed, ErrTooLong}, func(e error) bool { return errors.Is(err, e) }) {
					t.Fatal(err)
				}
				break
			}
			if written = Append(written, frame); !bytes.HasPrefix(stream, written) {
				t.Fatalf("%+v is not what was read", frame)
			}
		}
	})
}
