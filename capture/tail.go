package capture

import (
	"bytes"
	"math"

	"looptape/store"
)

// nearEnd is where an answer that keeps the newest begins to look: r.From, or a
// checkpoint some 16 MiB in front of the end of its range, whose state the filter
// then has.
func (s *since) nearEnd() (uint64, error) {
	end, err := s.nearRespawn()
	if err != nil || end-s.r.From <= scanBytes {
		return s.r.From, err
	}
	c, err := s.pane.Log().Checkpoint(store.Pos{Offset: end - scanBytes})
	if err != nil || c.Offset <= s.r.From {
		return s.r.From, err
	}
	return c.Offset, s.enter(c)
}

// nearRespawn is a place at most 16 MiB in front of the first respawn behind
// r.From, or until if there is none. It reads a few checkpoints, however far that
// is: each respawn is followed by one, and they know their generation.
func (s *since) nearRespawn() (uint64, error) {
	low, high := s.r.From, s.until
	if high-low <= scanBytes {
		return high, nil
	}
	at := store.Pos{Offset: low}
	if s.begun != nil && *s.begun == low {
		at.Seq = math.MaxUint64 // behind the respawns that stand there
	}
	first, err := generationAt(s.pane.Log(), at)
	if err != nil || first == s.generation {
		return high, err
	}
	for high-low > scanBytes {
		middle := low + (high-low)/2
		generation, err := generationAt(s.pane.Log(), store.Pos{Offset: middle, Seq: math.MaxUint64})
		switch {
		case err != nil:
			return 0, err
		case generation == first:
			low = middle
		default:
			high = middle
		}
	}
	return low, nil
}

// tailText answers with the newest text that the limits admit: a first scan
// finds how much text there is, a second one where in the stream its end begins.
func (s *since) tailText() error {
	from, err := s.nearEnd()
	if err != nil {
		return err
	}
	start := s.filter.appendState(nil)
	kept, total, lines := []byte{}, 0, 0
	counter := filter{bytes: unlimited, lines: unlimited}
	if err := counter.setState(start); err != nil {
		return err
	}
	at, err := s.scan(from, unlimited, func(p []byte) int {
		was := len(kept)
		kept, _ = counter.feed(kept, p)
		total += len(kept) - was
		lines += bytes.Count(kept[was:], lf)
		if drop := len(kept) - s.q.MaxBytes; drop > s.q.MaxBytes+(1<<16) {
			kept = append(kept[:0], kept[drop:]...)
		}
		return len(p)
	})
	if err != nil {
		return err
	}
	held, was := len(counter.lexer.Held()), len(kept)
	if at.respawn || s.closed && at.offset >= s.r.End {
		kept = counter.finish(kept)
		total += len(kept) - was
		lines += bytes.Count(kept[was:], lf)
	}
	skip := total - len(kept) + tailStart(kept, s.q.MaxBytes, s.q.MaxLines)
	begin := from
	if skip > 0 {
		skipper := filter{bytes: skip, lines: unlimited, given: true}
		if err := skipper.setState(start); err != nil {
			return err
		}
		var scratch []byte
		to, err := s.scan(from, unlimited, func(p []byte) (n int) {
			scratch, n = skipper.feed(scratch[:0], p)
			return n
		})
		if err != nil {
			return err
		}
		begin = to.offset
		if len(kept) > was && skip == total-len(replacement) { // nothing else is given
			begin = at.offset - uint64(held)
		}
	}
	s.truncate(begin)
	s.arrive(at)
	s.filter.cr, s.filter.lexer = counter.cr, counter.lexer
	kept = kept[len(kept)-(total-skip):]
	s.r.TruncatedLines = lines - bytes.Count(kept, lf)
	s.give(kept)
	return nil
}

var lf = []byte{'\n'}

// tailStart returns where the end of text begins that has at most maxBytes
// bytes, but one character, and at most maxLines lines.
func tailStart(text []byte, maxBytes, maxLines int) int {
	start := max(0, len(text)-maxBytes)
	for start > 0 && start < len(text) && text[start]&0xC0 == 0x80 {
		start++
	}
	if start == len(text) && start > 0 { // not even one character fits
		for start--; start > 0 && text[start]&0xC0 == 0x80; start-- {
		}
	}
	lines := 1
	for i := len(text) - 2; i >= start; i-- { // a final LF ends the last line
		if text[i] == '\n' {
			if lines == maxLines {
				return i + 1
			}
			lines++
		}
	}
	return start
}
