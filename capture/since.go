package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// scanBytes bounds the stream that one answer scans, so that its cost is
// bounded whatever the log holds.
const scanBytes = 16 << 20

// SinceRequest is a request of capture_since. Nil is a parameter not given; the
// ranges of the values are the manifest's.
type SinceRequest struct {
	Pane     string  `json:"pane"`
	Cursor   *string `json:"cursor"`
	Since    *uint64 `json:"since"`
	Format   string  `json:"format"` // text or raw
	MaxBytes int     `json:"max_bytes"`
	MaxLines int     `json:"max_lines"`
	Keep     string  `json:"keep"` // head or tail
	WaitMS   int     `json:"wait_ms"`

	// Frame bounds the size of the result as JSON, in bytes; 0 does not.
	Frame int `json:"-"`

	Store      [16]byte `json:"-"` // id of the store
	Generation uint32   `json:"-"` // respawns of the pane so far
}

// SinceResult is an answer of capture_since (contract.md, section 7).
type SinceResult struct {
	Pane           string  `json:"pane"`
	Screen         string  `json:"screen"`
	Epoch          uint32  `json:"epoch"`
	From           uint64  `json:"from"`
	Offset         uint64  `json:"offset"`
	End            uint64  `json:"end"`
	Cursor         string  `json:"cursor"`
	First          bool    `json:"first"`
	Missed         bool    `json:"missed"`
	MissedBytes    uint64  `json:"missed_bytes"`
	Truncated      bool    `json:"truncated"`
	TruncatedBytes uint64  `json:"truncated_bytes"`
	TruncatedLines int     `json:"truncated_lines"`
	More           bool    `json:"more"`
	Closed         bool    `json:"closed"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	Text           *string `json:"text,omitempty"`
	Data           *[]byte `json:"data,omitempty"` // base64 in JSON
}

// since is one call under way.
type since struct {
	pane   Pane
	q      SinceRequest
	r      *SinceResult
	filter filter
	closed bool // the pane can write no more than r.End
}

// Since answers what the pane wrote since a place in its stream. now is a clock
// for elapsed_seconds.
func Since(ctx context.Context, p Pane, q SinceRequest, now func() time.Time) (*SinceResult, error) {
	began := now()
	q.fitFrame()
	s := &since{pane: p, q: q, r: &SinceResult{Pane: q.Pane}}
	s.filter.bytes, s.filter.lines = q.MaxBytes, q.MaxLines
	known, err := s.place()
	if err != nil {
		return nil, err
	}
	if known {
		err = s.stream(ctx)
	} else {
		err = s.screen(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.r.Closed = s.closed && !s.r.More
	s.r.Cursor = Cursor{
		Store: q.Store, Pane: p.Log().Pane(), Generation: q.Generation,
		Offset: s.r.Offset, Filter: s.filter.appendState(nil),
	}.String()
	s.r.ElapsedSeconds = now().Sub(began).Seconds()
	return s.r, nil
}

// fitFrame lowers max_bytes so that the result fits the frame whatever it holds.
func (q *SinceRequest) fitFrame() {
	if q.Frame == 0 {
		return
	}
	room := q.Frame - 1024 - 2*len(q.Pane) // all fields but text and data
	if q.Format == "raw" {
		room = room / 4 * 3 // base64
	} else {
		room /= 2 // LF, TAB, " and \ take two bytes each, nothing in a text takes more
	}
	q.MaxBytes = min(q.MaxBytes, max(room, 1))
}

// place finds where to read from: r.From, and the filter's state there. known
// is false if only the screen can be shown.
func (s *since) place() (known bool, err error) {
	switch {
	case s.q.Cursor != nil && s.q.Since != nil:
		return false, &Error{"invalid_params.since", "since cannot be combined with cursor", struct {
			Param  string `json:"param"`
			Reason string `json:"reason"`
		}{"since", "exclusive"}}
	case s.q.Since != nil:
		s.r.From = *s.q.Since
		return true, nil
	case s.q.Cursor == nil:
		s.r.First = true
		return false, nil
	}
	c, err := ParseCursor(*s.q.Cursor)
	switch {
	case err != nil:
		return false, err
	case c.Pane != s.pane.Log().Pane():
		return false, errOtherPane
	case c.Store != s.q.Store:
		s.r.Missed = true
		return false, nil
	case c.Generation != s.q.Generation:
		return false, &Error{"conflict.respawned", "the cursor is from before the pane was respawned: start again without a cursor", nil}
	}
	s.r.From = c.Offset
	return true, s.filter.setState(c.Filter)
}

// look notes the pane at one instant.
func (s *since) look(t *replay.Terminal, closed bool) {
	b := t.Bounds()
	s.r.Screen, s.r.Epoch, s.r.End, s.closed = b.Screen, b.Epoch, t.Offset(), closed
}

// screen answers with the visible screen, and the cursor for that instant.
func (s *since) screen(ctx context.Context) error {
	var lines []string
	err := s.pane.View(ctx, func(t *replay.Terminal, closed bool) {
		s.look(t, closed)
		b := t.Bounds()
		for row := range t.Rows(b.Active, b.End) {
			lines = append(lines, strings.TrimRight(string(row.Text), " "))
		}
		s.filter.cr = false
		s.filter.lexer.SetState(t.AppendLexerState(nil))
	})
	if err != nil {
		return err
	}
	s.r.From, s.r.Offset = s.r.End, s.r.End
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	text := strings.Join(lines, "\n")
	if k := tailStart([]byte(text), s.q.MaxBytes, s.q.MaxLines); k > 0 {
		s.r.Truncated, s.r.TruncatedLines = true, strings.Count(text[:k], "\n")
		text = text[k:]
	}
	s.r.Text = &text
	return nil
}

// stream answers with what came after r.From.
func (s *since) stream(ctx context.Context) error {
	if err := s.pane.View(ctx, s.look); err != nil {
		return err
	}
	if s.r.From == s.r.End && !s.closed && s.q.WaitMS > 0 {
		wait, cancel := context.WithTimeout(ctx, time.Duration(s.q.WaitMS)*time.Millisecond)
		err := s.pane.Await(wait, s.r.From)
		cancel()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.pane.View(ctx, s.look); err != nil {
			return err
		}
	}
	if s.r.From > s.r.End {
		s.r.Missed = true // a place that this stream has not reached
		return s.screen(ctx)
	}
	result, filter := *s.r, s.filter
	for {
		err := s.read()
		if !errors.Is(err, store.ErrEvicted) {
			return err
		}
		// The reader was overtaken by the eviction: it starts at what is left.
		*s.r, s.filter = result, filter
	}
}

// read collects the answer from the log.
func (s *since) read() error {
	if oldest := s.pane.Log().Oldest(); s.r.From < oldest {
		if err := s.skipEvicted(oldest); err != nil {
			return err
		}
	}
	if err := s.skipGap(); err != nil {
		return err
	}
	s.r.Offset = s.r.From
	switch {
	case s.q.Format == "raw":
		return s.raw()
	case s.q.Keep == "tail":
		return s.tailText()
	}
	return s.headText()
}

// skipEvicted goes on at the oldest byte of the log, with the lexer's state
// there.
func (s *since) skipEvicted(oldest uint64) error {
	c, err := firstCheckpoint(s.pane.Log())
	if err != nil {
		return err
	}
	s.miss(max(oldest, c.Offset))
	return s.enter(c)
}

// enter puts the filter in the state that it has at a checkpoint.
func (s *since) enter(c store.Checkpoint) error {
	state, err := checkpoint.Decode(c.Blob)
	if err != nil {
		return &store.DamagedError{Pane: s.pane.Log().Pane(), Offset: c.Offset, Err: err}
	}
	s.filter.cr = false
	return s.filter.lexer.SetState(append([]byte{state.Lexer.Phase}, state.Lexer.Held...))
}

// miss goes on at to, and counts what lies between as missed.
func (s *since) miss(to uint64) {
	s.filter.cr = false
	s.filter.lexer.Reset()
	s.r.Missed = true
	s.r.MissedBytes += to - s.r.From
	s.r.From = to
}

// skipGap goes on behind a gap in the log that r.From stands in or in front of.
// Behind the log's end is one that is still open: the pane goes on, the log
// does not.
func (s *since) skipGap() error {
	for s.r.From < s.r.End {
		if s.r.From >= s.pane.Log().End().Offset {
			s.miss(s.r.End)
			break
		}
		r, err := s.pane.Log().ReadOffset(s.r.From)
		if err != nil {
			return err
		}
		gap, err := firstGap(r, s.r.From)
		r.Close()
		if err != nil || gap == 0 {
			return err
		}
		s.miss(min(gap, s.r.End))
	}
	return nil
}

// firstGap returns the end of the gap that covers offset, or 0 if bytes follow.
func firstGap(r *store.Reader, offset uint64) (uint64, error) {
	for {
		f, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return 0, err
		case f.Kind == store.Gap && f.Offset+f.Lost > offset:
			return f.Offset + f.Lost, nil
		case f.Kind == store.Output:
			return 0, nil
		}
	}
}

// scan calls take with the pieces of the stream from the offset from on, in
// order, up to r.End, a gap, or limit bytes, until take returns fewer than it
// was given. It returns the offset that it came to.
func (s *since) scan(from uint64, limit int, take func(p []byte) int) (at uint64, err error) {
	r, err := s.pane.Log().ReadOffset(from)
	if err != nil {
		return from, err
	}
	defer r.Close()
	at = from
	for at < s.r.End && limit > 0 {
		f, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return at, nil
		case err != nil:
			return at, err
		case f.Kind == store.Gap && f.Offset+f.Lost > at:
			return at, nil
		case f.Kind != store.Output || f.Offset+uint64(len(f.Data)) <= at:
			continue
		case f.Offset > at: // not even a gap stands for what is between
			return at, &store.DamagedError{Pane: s.pane.Log().Pane(), Offset: at, Err: errors.New("bytes are missing")}
		}
		p := f.Data[at-f.Offset:]
		p = p[:min(uint64(len(p)), uint64(limit), s.r.End-at)]
		n := take(p)
		at += uint64(n)
		limit -= n
		if n < len(p) {
			break
		}
	}
	return at, nil
}

// raw answers with the exact bytes.
func (s *since) raw() error {
	from, limit := s.r.From, s.q.MaxBytes
	if s.q.Keep == "tail" {
		near, err := s.nearEnd()
		if err != nil {
			return err
		}
		end, err := s.scan(near, unlimited, func(p []byte) int { return len(p) })
		if err != nil {
			return err
		}
		from = max(near, end-min(end, uint64(limit)))
	}
	data := []byte{}
	at, err := s.scan(from, limit, func(p []byte) int {
		data = append(data, p...)
		return len(p)
	})
	s.r.Data = &data
	s.truncate(from)
	s.arrive(at)
	s.filter.cr = false
	s.filter.lexer.Reset()
	return err
}

// nearEnd is where an answer that keeps the newest begins to look: r.From, or a
// checkpoint some 16 MiB in front of the end, whose state the filter then has.
func (s *since) nearEnd() (uint64, error) {
	if s.r.End-s.r.From <= scanBytes {
		return s.r.From, nil
	}
	c, err := s.pane.Log().Checkpoint(store.Pos{Offset: s.r.End - scanBytes})
	if err != nil || c.Offset <= s.r.From {
		return s.r.From, err
	}
	return c.Offset, s.enter(c)
}

// truncate notes that the text begins at from, later than asked for.
func (s *since) truncate(from uint64) {
	if from > s.r.From {
		s.r.Truncated, s.r.TruncatedBytes = true, from-s.r.From
		s.r.From = from
	}
}

// arrive notes how far the answer goes.
func (s *since) arrive(at uint64) {
	s.r.Offset = at
	s.r.More = at < s.r.End
}

// headText answers with the oldest text that the limits admit.
func (s *since) headText() error {
	var text []byte
	at, err := s.scan(s.r.From, scanBytes, func(p []byte) (n int) {
		text, n = s.filter.feed(text, p)
		return n
	})
	if err != nil {
		return err
	}
	s.arrive(at)
	s.give(text)
	return nil
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
	skip := total - len(kept) + tailStart(kept, s.q.MaxBytes, s.q.MaxLines)
	begin := from
	if skip > 0 {
		skipper := filter{bytes: skip, lines: unlimited, given: true}
		if err := skipper.setState(start); err != nil {
			return err
		}
		var scratch []byte
		begin, err = s.scan(from, unlimited, func(p []byte) (n int) {
			scratch, n = skipper.feed(scratch[:0], p)
			return n
		})
		if err != nil {
			return err
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

// give sets the text of the answer; at the very end of a stream, with what an
// unfinished character leaves.
func (s *since) give(text []byte) {
	if s.closed && !s.r.More {
		was := len(s.filter.lexer.Held())
		text = s.filter.finish(text)
		s.r.More = was > 0 && len(s.filter.lexer.Held()) > 0 // the limits refused it
	}
	given := string(text)
	s.r.Text = &given
}

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
