package replay_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
)

// restoreStates are streams whose states are damaged here.
var restoreStates = []string{
	"", "text\r\n漢字 e\u0301\x1b[31mred\x1b]8;;http://x.example\x07link\x1b]8;;\x07\r\n\n\n\n\n\n\n\nmore",
	"\x1b[?1049h\x1b[2;3r\x1b7\x1b[3;3Halt\x1b[38;2;1;2;3", "0123456789012345\x1b[22;0t\x1b]0;t\x07\x1b]4;1;#ffffff\x07\x1b[>1u\x1bP$q",
	"\xe6\xbc", "1234567890", "\x1b[4h\x1b[?6h\x1b(0lqk\x0e\x1b[3g\x1bH",
}

// TestRestoreDamaged puts other values into each byte of some encoded states.
func TestRestoreDamaged(t *testing.T) {
	for _, in := range restoreStates {
		term := replay.New(10, 4, fuzzScrollback)
		term.Feed([]byte(in))
		b := encoded(term)
		for i := range b {
			damaged(t, b, uint32(i), 0, 0, b[0])
			damaged(t, b, uint32(i), 0x7f, uint32(i+1), 1)
			damaged(t, b, uint32(i), 0xff, uint32(i+1), 0x7f)
		}
	}
}

// FuzzRestore: a State that decodes but that no terminal ever had is refused or
// gives a terminal that holds together; it never makes one that panics later.
// The input is an encoding with two bytes replaced, its checksums put right.
func FuzzRestore(f *testing.F) {
	for i, in := range restoreStates {
		t := replay.New(10, 4, fuzzScrollback)
		t.Feed([]byte(in))
		f.Add(encoded(t), uint32(20+i), byte(1), uint32(40+i), byte(2))
	}
	f.Fuzz(damaged)
}

func damaged(t *testing.T, b []byte, i uint32, v byte, j uint32, w byte) {
	if len(b) < 20 {
		return
	}
	b = append([]byte(nil), b...)
	b[int(i)%len(b)], b[int(j)%len(b)] = v, w
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-16-4))
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], table))
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[16:len(b)-4], table))
	s, err := checkpoint.Decode(b)
	if err != nil || s.Size.Cols*s.Size.Rows > 1<<16 || s.Size.Scrollback > 1<<20 {
		return
	}
	if term, err := replay.Restore(s); err == nil {
		use(t, term)
	}
}

// use does what a pane does with a terminal, to find what does not hold.
func use(tb testing.TB, t *replay.Terminal) {
	if n := rowCount(t); n == 0 {
		tb.Fatal("no rows")
	}
	for i, in := range []string{
		"x漢e\u0301\x1b[31my\x1b[m\r\n", "\x1b[5S\x1b[3T\x1b[2L\x1b[2M\x1b[3@\x1b[2P\x1b[2X", "\x1b8\x1b[u\x1b7\t\t\x1b[Z",
		"\x1b[?1049hz\x1b[?1049l", "\x18\x1b[2J\x1b[3J\x1bc", "\x1b[23t\x1b]8;;u\x07v\x1b[c\x1b[6n",
	} {
		t.Feed([]byte(in))
		b := t.Bounds()
		t.Resize(1+(b.Cols*(i+3))%37, 1+(b.Rows*(i+2))%9)
		rowCount(t)
	}
	t.FlushLines()
	again, err := replay.Restore(t.State())
	if err != nil {
		tb.Fatal(fmt.Errorf("a state after Restore: %w", err))
	}
	rowCount(again)
}

func rowCount(t *replay.Terminal) (n int) {
	b := t.Bounds()
	for range t.Rows(b.Oldest, b.End) {
		n++
	}
	return n
}
