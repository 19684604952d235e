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
// until all that is in front of it is replayed. A sequence touches the screen at most. A
// byte of text touches a row at most, but less as a rule: that of a screen of 65,535
// columns shall not come in tiny frames.
func frameBytes(b []byte, t *replay.Terminal) int {
	size := t.Bounds()
	moves, text := t.TextMoves(), 1+size.Rows/8+size.Cols/64
	n := len(b)
	for n > frameLeast {
		escapes, each := bytes.Count(b[:n], []byte{0x1B}), text
		if moves || escapes > 0 {
			each = max(text, size.Cols)
		}
		if n*each+escapes*size.Cols*size.Rows <= frameWork {
			break
		}
		n = max(n/2, frameLeast)
	}
	return n
}

// nextBatch returns the size of the next batch, when batch was that of the last one and
// feeding n bytes took so long.
func nextBatch(batch, n int, took time.Duration) int {
	if took <= batchTime {
		return min(2*batch, batchBytes)
	}
	return max(min(batch/2, int(int64(n)*int64(batchTime)/int64(took))), leastBatch)
}
