package replay

import "slices"

// Sizes of the history's parts.
const (
	chunkText = 32 << 10 // a chunk is sealed before this many bytes of text,
	chunkRows = 4096     // or at this many rows,
	chunkLook = 32 << 10 // or styles
	dropKeep  = 8 << 10  // bytes of a chunk that is used again when its rows are dropped
	MaxLine   = 64 << 10 // bytes of a logical line; a longer one is broken, its text kept

	// MaxLinkBytes is how much hyperlinks may take in the history, each counted with 48
	// bytes besides its text and once for every run of text that has it; rows beyond it
	// are kept without.
	MaxLinkBytes = 6 << 20

	// MaxHistoryBytes and MaxHistoryRow bound the history's text, and with it what it
	// takes to restore it: it keeps less than scrollback rows if those take more than
	// MaxHistoryBytes and MaxHistoryRow bytes for each of the scrollback rows. A change
	// of style within a row counts 20 bytes.
	MaxHistoryBytes = 16 << 20
	MaxHistoryRow   = 256
)

// historyBudget is how many bytes a history of at most rows rows may take.
func historyBudget(rows int) int { return MaxHistoryBytes + MaxHistoryRow*rows }

// history is the rows above the main screen, oldest first, as packed text. Rows
// have an index that counts from the terminal's start and never goes back but for
// resizes; the number of a row in the epoch is its index less base. A logical
// line lies in one chunk, so its text is contiguous.
//
// Reading row i costs a binary search and the row; a resize costs a look at each
// chunk's width summary, and rebuilding the row tables (never the text) of chunks
// that have a line which the new width cuts otherwise.
type history struct {
	chunks     []*chunk
	limit      int    // rows kept
	budget     int    // of bytes
	oldest     uint64 // index of the oldest row kept
	end        uint64 // index behind the newest row
	base       uint64 // index of the epoch's row 0
	open       bool   // the newest row goes on in the next one
	lineLen    int    // bytes of the newest row's logical line so far
	links      int    // bytes of hyperlinks
	linkBudget int    // the most of them
	bytes      int    // what the rows kept count towards MaxHistoryBytes
	spare      *chunk // an evicted chunk, whose memory is used again
	hints      styleHints
}

// chunk is a run of rows.
type chunk struct {
	first  uint64 // index of rows[0]
	text   []byte
	runs   []byte  // per styled row: uvarint bytes of text, uvarint index into styles, ...
	styles []style // styles[0] is the default
	rows   []packedRow
	widest uint16 // columns of the widest row
	joined bool   // some row is wrapped
	linked bool   // some style has a hyperlink
}

// packedRow says where a row's text is in its chunk and where its runs begin; they
// end where the next row's begin. 24 bytes.
type packedRow struct {
	text, size uint32
	written    uint64
	runs       uint32
	width      uint16 // columns that the text takes
	flags      uint8
	load       runLoad // of its styles
}

// Flags of a packedRow.
const (
	packedWrapped  = 1 << iota // continues in the next row
	packedReported             // the line sink has had it
	packedClusters             // has cluster marks
	packedASCII                // each byte is a column
	packedVoids                // has cells that were never written
	packedOpens                // has code points that something may join
)

// last returns the chunk that rows are appended to.
func (h *history) last() *chunk {
	if n := len(h.chunks); n > 0 {
		return h.chunks[n-1]
	}
	return h.grow(0)
}

// grow seals the newest chunk and appends an empty one with room for so many bytes of
// text, or more. Its tables are the sealed one's, which keeps copies without room to
// spare.
func (h *history) grow(room int) *chunk {
	c := &chunk{first: h.end, styles: []style{{}}}
	if n := len(h.chunks); n > 0 {
		full := h.chunks[n-1]
		var spare chunk
		if h.spare != nil {
			spare, h.spare = *h.spare, nil
		}
		c.rows, full.rows = full.rows[:0], refit(spare.rows, full.rows)
		c.runs, full.runs = full.runs[:0], refit(spare.runs, full.runs)
		if n := len(full.styles); n > 64 && n > cap(full.styles)/4 {
			c.styles, full.styles = full.styles[:1], slices.Clone(full.styles)
			clear(c.styles[1:n])
		} else {
			full.styles = slices.Clone(full.styles)
		}
		if cap(full.text) > chunkText && cap(full.text) > len(full.text)+len(full.text)/16 {
			full.text = slices.Clone(full.text)
		}
		if room = max(room, chunkText); cap(spare.text) == room {
			c.text = spare.text[:0]
		} else {
			c.text = make([]byte, 0, room)
		}
	}
	h.chunks = append(h.chunks, c)
	return c
}

// refit returns a copy of s without much room to spare, in the memory of old if
// that fits.
func refit[T any](old, s []T) []T {
	if cap(old) >= len(s) && cap(old) <= len(s)+len(s)/16 {
		return append(old[:0], s...)
	}
	return slices.Clone(s)
}

// begin starts the next row and returns its chunk. The caller appends text, about
// room bytes, and runs, then calls finish.
func (h *history) begin(written uint64, room int) *chunk {
	c := h.last()
	if !h.open {
		h.lineLen = 0
		if len(c.rows) > 0 && (len(c.text)+room > chunkText || len(c.rows) >= chunkRows || len(c.styles) >= chunkLook) {
			c = h.grow(room)
		}
	}
	if free := cap(c.text) - len(c.text); free < room && cap(c.text) < chunkText {
		c.text = slices.Grow(c.text, min(max(room, cap(c.text)), chunkText-len(c.text)))
	}
	c.rows = append(c.rows, packedRow{text: uint32(len(c.text)), runs: uint32(len(c.runs)), written: written})
	return c
}

// finish completes the row that begin started.
func (h *history) finish(c *chunk, width int, flags uint8, l runLoad) {
	r := &c.rows[len(c.rows)-1]
	r.size, r.width, r.flags, r.load = uint32(len(c.text))-r.text, uint16(width), flags, l
	c.widest = max(c.widest, r.width)
	h.lineLen += int(r.size)
	h.bytes += r.cost()
	h.open = flags&packedWrapped != 0
	if h.open {
		c.joined = true
	}
	h.end++
}

// styleHints say where in a chunk's styles one of another list is. They are tried
// before they are believed: chunks and lists come and go.
type styleHints []uint32

// find returns the index in c of style number n of list, which it may have to add.
func (h *styleHints) find(c *chunk, list []style, n uint32) uint32 {
	if n == 0 {
		return 0
	}
	if int(n) >= len(*h) {
		*h = append(*h, make([]uint32, int(n)+1-len(*h))...)
	}
	return h.local(c, n, &list[n])
}

// local is find for a style s of which n is the number.
func (h styleHints) local(c *chunk, n uint32, s *style) uint32 {
	if local := h[n]; int(local) < len(c.styles) && c.styles[local] == *s {
		return local
	}
	local := uint32(len(c.styles))
	c.styles = append(c.styles, *s)
	c.linked = c.linked || s.link != nil
	h[n] = local
	return local
}

// evict drops the oldest rows beyond the limits.
func (h *history) evict() {
	limit := uint64(h.limit)
	if h.end-h.oldest <= limit && h.bytes <= h.budget {
		return
	}
	for _, c := range h.chunks {
		if h.end-h.oldest <= limit && h.bytes <= h.budget {
			break
		}
		if h.oldest < c.first || h.oldest >= c.end() {
			continue
		}
		k := int(h.oldest - c.first)
		for ; k < len(c.rows) && (h.end-h.oldest > limit || h.bytes > h.budget); k++ {
			h.bytes -= c.rows[k].cost()
			if c.linked {
				h.links -= c.linkBytes(k)
			}
			h.oldest++
		}
	}
	n := 0
	for n < len(h.chunks)-1 && h.chunks[n].end() <= h.oldest {
		n++
	}
	if n > 0 {
		h.spare = h.chunks[n-1]
		h.chunks = slices.Delete(h.chunks, 0, n)
	}
}

// drop forgets all rows.
func (h *history) drop() {
	h.oldest, h.open, h.lineLen, h.links, h.bytes = h.end, false, 0, 0, 0
	if len(h.chunks) == 1 && cap(h.chunks[0].text)+cap(h.chunks[0].runs)+24*cap(h.chunks[0].rows) <= dropKeep {
		c := h.chunks[0] // a program that drops a little again and again
		*c = chunk{first: h.end, text: c.text[:0], runs: c.runs[:0], styles: []style{{}}, rows: c.rows[:0]}
		return
	}
	h.chunks = nil
}

// renumber makes the oldest row kept row 0.
func (h *history) renumber() { h.base = h.oldest }

// rows returns the number of rows kept.
func (h *history) rows() int { return int(h.end - h.oldest) }

func (c *chunk) end() uint64 { return c.first + uint64(len(c.rows)) }

// find returns the number of the chunk that holds row i, which must exist.
func (h *history) find(i uint64) int {
	n, _ := slices.BinarySearchFunc(h.chunks, i, func(c *chunk, i uint64) int {
		if c.end() <= i {
			return -1
		}
		return 1
	})
	return n
}

// textOf returns the packed text of row k of c.
func (c *chunk) textOf(k int) []byte {
	p := &c.rows[k]
	return c.text[p.text : p.text+p.size]
}

func (c *chunk) runsOf(k int) []byte {
	if k+1 < len(c.rows) {
		return c.runs[c.rows[k].runs:c.rows[k+1].runs]
	}
	return c.runs[c.rows[k].runs:]
}

// linkBytes returns what row k of c counts towards MaxLinkBytes.
func (c *chunk) linkBytes(k int) int {
	n, seen := 0, runCounter{}
	for runs := c.runsOf(k); len(runs) > 0; {
		var style uint64
		_, style, runs = nextRun(runs)
		n += seen.linkSize(&c.styles[style])
		seen.add(&c.styles[style])
	}
	return n
}

// at returns the chunk and place of row i, which must exist.
func (h *history) at(i uint64) (*chunk, int) {
	c := h.chunks[h.find(i)]
	return c, int(i - c.first)
}

// wrapped says whether row i, which must exist, goes on in the next one.
func (h *history) wrapped(i uint64) bool {
	c, k := h.at(i)
	return c.rows[k].flags&packedWrapped != 0
}

// pop removes the newest row after unpacking it into r.
func (h *history) pop(tb *table, r *row, cols int) {
	for len(h.last().rows) == 0 {
		h.chunks = h.chunks[:len(h.chunks)-1]
	}
	c := h.last()
	k := len(c.rows) - 1
	unpack(tb, r, c, k, cols)
	p := c.rows[k]
	if c.linked {
		h.links -= c.linkBytes(k)
	}
	h.lineLen -= int(p.size)
	h.bytes -= p.cost()
	c.text, c.runs, c.rows = c.text[:p.text], c.runs[:p.runs], c.rows[:k]
	h.end--
	if k > 0 && c.rows[k-1].flags&packedWrapped != 0 {
		h.open = true
		return
	}
	h.open, h.lineLen = false, 0
	for k--; k >= 0; k-- {
		h.lineLen += int(c.rows[k].size)
		if k > 0 && c.rows[k-1].flags&packedWrapped == 0 {
			break
		}
	}
}
