package store

import "sync"

const (
	// maxBlockFrames bounds the frames of one segment, so that a reader's
	// index of one stays below half a megabyte.
	maxBlockFrames = 8192
	// frameCost is what a frame costs in memory besides its data.
	frameCost = 48
	// smallChunk is the first buffer of a pane that was quiet.
	smallChunk = 4 << 10
	// MaxFrame is the longest data of a frame, in bytes.
	MaxFrame = 16 << 20
	// MaxCheckpoint is the longest blob of a checkpoint, in bytes.
	MaxCheckpoint = maxRaw
)

// pending is what of a log is not durable yet.
type pending struct {
	chunks   []*chunk // oldest first
	taken    int      // so many of them are with the committer
	inflight int      // what chunks cost, in bytes
	total    uint64   // frames and checkpoints appended since the log was opened
	done     uint64   // of these, how many are durable
}

// chunk is a run of frames that are not durable yet, all of one span. Frames
// are only ever added behind those that are there, so what a reader saw
// stays as it was. The log's mutex guards it until the committer has taken
// it; from then on nobody changes it.
type chunk struct {
	span   Pos
	first  Pos
	frames []frameMeta
	data   []byte
	cps    []pendingCheckpoint // in the order of their positions
	clock  int64               // largest wall time of the log before this chunk
	cost   int
}

// pendingCheckpoint is a checkpoint that is not durable yet.
type pendingCheckpoint struct {
	at    Pos
	full  bool
	clock int64
	blob  []byte
}

// end is the position behind the chunk's last frame.
func (c *chunk) end() Pos {
	n := len(c.frames)
	if n == 0 {
		return c.first
	}
	m := &c.frames[n-1]
	_, data := c.frame(n - 1)
	return Pos{Offset: m.offset + m.advance(uint32(len(data))), Seq: c.first.Seq + uint64(n)}
}

// frame returns frame i and its data.
func (c *chunk) frame(i int) (*frameMeta, []byte) {
	m := &c.frames[i]
	start := uint32(0)
	if i > 0 {
		start = c.frames[i-1].end
	}
	return m, c.data[start:m.end]
}

// fits reports whether a frame with n bytes can be added without moving what
// is there.
func (c *chunk) fits(n int) bool {
	return len(c.frames) < maxBlockFrames && len(c.data)+n <= cap(c.data)
}

func (c *chunk) add(offset uint64, kind Kind, t Time, lost uint64, data []byte) {
	c.data = append(c.data, data...)
	c.frames = append(c.frames, frameMeta{time: t, offset: offset, lost: lost, end: uint32(len(c.data)), kind: kind})
	c.cost += len(data) + frameCost
}

// chunkPool keeps the large buffers of busy panes for the next one.
type chunkPool struct {
	size  int // of a large buffer
	large sync.Pool
}

// get returns an empty chunk with room for n bytes: a large one for a busy
// pane, so that it becomes a segment of its own without a further copy.
func (p *chunkPool) get(n int, busy bool) *chunk {
	if busy && n <= p.size {
		if c, ok := p.large.Get().(*chunk); ok {
			return c
		}
		// Behind the data comes the frame table when the segment is encoded.
		return &chunk{data: make([]byte, 0, p.size), frames: make([]frameMeta, 0, 256)}
	}
	return &chunk{data: make([]byte, 0, max(n, smallChunk)), frames: make([]frameMeta, 0, 16)}
}

// put takes a chunk back that nobody refers to any more.
func (p *chunkPool) put(c *chunk) {
	if cap(c.data) != p.size || cap(c.frames) > maxBlockFrames {
		return
	}
	*c = chunk{data: c.data[:0], frames: c.frames[:0]}
	p.large.Put(c)
}
