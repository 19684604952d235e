package replay

import "bytes"

// What things count in Terminal.Work, in units of what a byte of a plain line takes:
// some nanoseconds. They are measured (recorder's BenchmarkHydrate) and rough; they
// make the work of any stream say within a small factor how long it is replayed.
// Cells that are erased or moved and rows that are reflowed count one each.
const (
	workLine    = 20  // a row that scrolls off, a line feed
	workEscape  = 30  // a control sequence, whatever it is
	workHigh    = 3   // a byte of text above ASCII, besides itself
	workCluster = 200 // a code point that joins a cluster
	workLink    = 500 // OSC 8
)

// weigh is the work of the bytes of p as such. It looks at bytes only, so that it
// does not depend on how a stream is cut or by which path it is fed.
func weigh(p []byte) uint64 {
	lines, escapes := bytes.Count(p, []byte{'\n'}), bytes.Count(p, []byte{0x1B})
	return uint64(len(p) + lines*workLine + escapes*workEscape)
}
