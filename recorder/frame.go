package recorder

import (
	"bytes"
	"time"

	"looptape/replay"
)

// Bounds of a batch and of a frame of output.
const (
	batchBytes = 256 << 10 // the largest batch
	leastBatch = 1 << 10
	// batchTime is how long feeding one batch may hold up whoever wants to read
	// the pane. A program whose bytes take more work gets smaller batches.
	batchTime = 10 * time.Millisecond

	frameWork  = 32 << 20 // cells that it may touch, at most
	frameLeast = 64       // bytes that it may have, whatever they touch
)

// frameBytes returns how many bytes of b, the first of them, are to be one frame of t's
// log. There is no checkpoint inside a frame, so who asks for an offset within one waits
// until all that is in front of it is replayed. But many frames take longer to read.
func frameBytes(b []byte, t *replay.Terminal) int {
	n := len(b)
	for size, moves := t.Bounds(), t.TextMoves(); n > frameLeast && touches(b[:n], size.Cols, size.Rows, moves) > frameWork; {
		n = max(n/2, frameLeast)
	}
	return n
}

// touches returns how many cells of a screen, or about as much else, the bytes of b touch
// at most: a sequence the screen; a byte of text a row, if text moves rows about or may
// do so behind a sequence, else a cell; a tab looks for the next stop, and a line feed
// moves the rows.
func touches(b []byte, cols, rows int, moves bool) int {
	escapes := bytes.Count(b, []byte{0x1B})
	if moves || escapes > 0 {
		return len(b)*max(cols, 1+rows/8) + escapes*cols*rows
	}
	return len(b) + bytes.Count(b, []byte{'\t'})*(cols/64) + bytes.Count(b, []byte{'\n'})*(rows/8)
}

// nextBatch returns the size of the next batch, when batch was that of the last one and
// feeding n bytes took so long.
func nextBatch(batch, n int, took time.Duration) int {
	if took <= batchTime {
		return min(2*batch, batchBytes)
	}
	return max(min(batch/2, int(int64(n)*int64(batchTime)/int64(took))), leastBatch)
}
