package replay

import "bytes"

// What things count in Terminal.Work, in units of what a byte of a plain line takes:
// some nanoseconds. They are measured (recorder's BenchmarkHydrate) and rough; they
// make the work of any stream say within a small factor how long it is replayed.
// Cells that are erased or moved and rows that are reflowed count one each.
const (
	workLine    = 20  // a row that scrolls off, a line feed
	workReturn  = 12  // a carriage return
	workControl = 12  // another control
	workEscape  = 26  // a control sequence, whatever it is
	workHigh    = 12  // a character above ASCII, besides its bytes
	workInvalid = 20  // a U+FFFD in the place of what is no UTF-8, besides
	workCluster = 200 // a code point that joins a cluster
	workParam   = 6   // a parameter of SGR beyond six
	workIndex   = 15  // one of 256 colours
	workRGB     = 120 // one of 16 million: often a style of its own
	workOSC     = 30  // a command, besides the escape
	workPalette = 150 // a colour that a command sets
	workLink    = 900 // OSC 8,
	workURI     = 5   // and each byte of it
	workClear   = 150 // history that goes at once
	workRow     = 3   // a row of another screen
	workRepeat  = 8   // a character above ASCII that REP writes again
	workRecut   = 30  // a row of the history that a resize cuts anew, besides its bytes
)

// weigh is the work of the bytes of p as such. It looks at bytes only, so that it
// does not depend on how a stream is cut or by which path it is fed.
func weigh(p []byte) uint64 {
	lines, escapes := bytes.Count(p, []byte{'\n'}), bytes.Count(p, []byte{0x1B})
	return uint64(len(p) + lines*workLine + escapes*workEscape)
}

// scrollWork is the work of moving the rows of the region by one, besides workLine.
func (t *Terminal) scrollWork() uint64 { return uint64((t.bottom - t.top) / 8) }

// resizeWork is the work of packing or unpacking a screen.
func resizeWork(cols, rows int) uint64 { return uint64(rows) * uint64(30+8*cols) }

// wrapWork is the work of a soft wrap: rows of a few columns are many.
func (t *Terminal) wrapWork() uint64 { return workLine + uint64(60/t.cols) }
