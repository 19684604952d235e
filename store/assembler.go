package store

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

// maxTails is how many tails a log gathers before they are merged, whatever
// their size: a reader opens each of them.
const maxTails = 256

// blockList are the records of one batch, and their keys. The blocks are used
// again for the next one.
type blockList struct {
	used []*block
	keys [][]byte
	free []*block
}

func (l *blockList) reset() {
	for _, b := range l.used {
		if cap(b.content)+cap(b.out) <= 2<<20 && len(l.free) < 16 {
			l.free = append(l.free, b)
		}
	}
	clear(l.used)
	l.used, l.keys = l.used[:0], l.keys[:0]
}

// add returns an empty block under key.
func (l *blockList) add(k dataKey) *block {
	b := &block{}
	if n := len(l.free); n > 0 {
		b, l.free = l.free[n-1], l.free[:n-1]
	}
	l.used = append(l.used, b)
	l.keys = append(l.keys, k.encode())
	return b
}

// assembler turns what one log has for a batch into records. The rule: what
// is smaller than sealBytes is a tail; once the tails come to that, or their
// span ends, they are read back and written as segments in the place of the
// first, in the same batch that deletes the others.
type assembler struct {
	c     *committer
	log   *Log
	batch *pebble.Batch

	cur   *block // being filled; nil between blocks
	span  Pos
	clock int64 // largest wall time so far
}

// run adds the records of chunks to the batch and its block list.
func (a *assembler) run(chunks []*chunk) {
	for len(chunks) > 0 {
		span := chunks[0].span
		n, bytes, frames := 0, 0, 0
		for n < len(chunks) && chunks[n].span == span {
			bytes += len(chunks[n].data)
			frames += len(chunks[n].frames)
			n++
		}
		size := runSize{bytes, frames, n < len(chunks)}
		a.runSpan(span, chunks[:n], size)
		chunks = chunks[n:]
	}
}

// runSize is how much a run of chunks comes to, and whether its span ends with
// them.
type runSize struct {
	bytes, frames int
	ends          bool
}

// merges reports whether the tails t are to be merged with a run.
func (a *assembler) merges(t *tail, run runSize) bool {
	switch {
	case t.count == 0:
		return false
	case run.ends:
		return true
	}
	return run.frames > 0 && (t.raw+run.bytes >= a.sealBytes() || t.count >= maxTails || t.frames+run.frames > maxBlockFrames)
}

// runSpan adds chunks that all belong to one span. If that ends with them, what
// tails it has are merged with them at once: a tail made here is in no table
// yet, and could not be read back.
func (a *assembler) runSpan(span Pos, chunks []*chunk, run runSize) {
	t := &a.log.tail
	if t.count > 0 && t.span != span {
		a.seal()
	}
	a.span = span
	if a.merges(t, run) {
		a.reopen()
	}
	for _, c := range chunks {
		for i := range c.cps {
			a.c.blocks.add(c.cps[i].key(a.log.pane, span)).resetCheckpoint(&c.cps[i])
		}
		a.clock = max(a.clock, c.clock)
		for i := range c.frames {
			m, data := c.frame(i)
			a.frame(Pos{Offset: m.offset, Seq: c.first.Seq + uint64(i)}, m, data)
		}
	}
	a.close(run.ends)
}

func (a *assembler) sealBytes() int { return a.c.s.opts.SegmentBytes / 4 }

// frame adds one frame to the block being filled, or to a new one.
func (a *assembler) frame(at Pos, m *frameMeta, data []byte) {
	if a.cur != nil && !a.cur.fits(len(data), a.c.s.opts.SegmentBytes) {
		a.close(true)
	}
	if a.cur == nil {
		a.cur = a.c.blocks.add(dataKey{a.log.pane, a.span, classData, at})
		a.cur.reset(recSegment, at)
	}
	a.clock = max(a.clock, m.time.Wall)
	a.cur.add(m, data, a.clock)
}

// close ends the block being filled. It is final if that is asked for or it
// is large enough; else it is a tail.
func (a *assembler) close(final bool) {
	b := a.cur
	if b == nil {
		return
	}
	a.cur = nil
	t := &a.log.tail
	if final || b.bytes() >= a.sealBytes() {
		*t = tail{}
		return
	}
	b.typ = recTail
	if t.count == 0 {
		*t = tail{span: a.span, first: b.first}
	}
	t.count++
	t.raw += b.bytes()
	t.frames += int(b.frames)
}

// seal makes what tails the log has final.
func (a *assembler) seal() {
	if a.log.tail.count == 0 {
		return
	}
	a.span = a.log.tail.span
	a.reopen()
	a.close(true)
	a.log.tail = tail{}
}

// reopen reads the log's tails back as the beginning of a new block and
// deletes them. Tails that cannot be read stay as they are: the damage is the
// reader's to report.
func (a *assembler) reopen() {
	t := a.log.tail
	a.log.tail = tail{}
	segs, keys, err := a.c.s.readTails(a.log.pane, t)
	if err != nil {
		a.c.s.report(slog.LevelWarn, "store: tails left unmerged", "pane", a.log.pane, "err", firstLine(err))
		return
	}
	for i, s := range segs {
		if i == 0 {
			a.clock = s.clock
		} else {
			must(a.batch.Delete(keys[i], nil)) // the first is overwritten
		}
		start := uint32(0)
		for j := range s.frames {
			m := &s.frames[j]
			a.frame(Pos{Offset: m.offset, Seq: s.first.Seq + uint64(j)}, m, s.data[start:m.end])
			start = m.end
		}
	}
}

// readTails reads the records that t describes.
func (s *Store) readTails(pane uint64, t tail) (segs []segment, keys [][]byte, err error) {
	_, hi := paneBounds(pane)
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: dataKey{pane, t.span, classData, t.first}.encode(),
		UpperBound: hi,
	})
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	at := t.first
	for ok := it.First(); ok && len(segs) < t.count; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, nil, err
		}
		var sg segment
		if err := sg.decode(append([]byte(nil), v...)); err != nil {
			return nil, nil, err
		}
		if sg.first != at {
			return nil, nil, errMissing
		}
		at = sg.end()
		segs = append(segs, sg)
		keys = append(keys, append([]byte(nil), it.Key()...))
	}
	if err := it.Error(); err != nil {
		return nil, nil, err
	}
	if len(segs) != t.count {
		return nil, nil, errMissing
	}
	return segs, keys, nil
}
