package capture_test

import (
	"fmt"
	"strings"
	"testing"

	"looptape/capture"
	"looptape/replay"
)

// quoted is the size of a line as JSON.
func quoted(line []byte) int {
	n := len(line) + 2
	for _, c := range line {
		if c == 34 || c == 92 {
			n++
		}
	}
	return n
}

// BenchmarkRows makes the largest page, 10,000 rows of 250 columns: what a call
// holds the pane up for. Seed 000, section 6 wants at most 50 ms for all of it.
func BenchmarkRows(b *testing.B) {
	t := replay.New(250, 50, 10000)
	for i := range 10050 {
		t.Feed(fmt.Appendf(nil, "%s\r\n", strings.Repeat(fmt.Sprintf("%07d \"", i), 28)))
	}
	q := capture.RowsRequest{MaxRows: 10000, MaxBytes: 16 << 20, Frame: 64 << 20, StringLen: quoted}
	for b.Loop() {
		r, err := capture.Rows(t, q)
		if err != nil || len(r.Lines) != 10000 {
			b.Fatal(err)
		}
	}
}
