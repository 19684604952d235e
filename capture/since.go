package capture

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"looptape/replay"
	"looptape/store"
)

// scanBytes bounds the stream that one answer scans, so that its cost is
// bounded whatever the log holds.
const scanBytes = 16 << 20

// boundaryRespawn is the Boundary of an answer in front of a respawn.
const boundaryRespawn = "respawn"

// SinceRequest is a request of capture_since. Nil is a parameter not given; the
// ranges of the values are the manifest's.
type SinceRequest struct {
	Pane     string  `json:"pane"`
	Cursor   *string `json:"cursor"`
	Since    *uint64 `json:"since"`
	To       *uint64 `json:"to"`      // the range ends here
	Command  *int    `json:"command"` // the range is the output of this command: -1 is the newest
	Format   string  `json:"format"`  // text, raw or rows
	MaxBytes int     `json:"max_bytes"`
	MaxLines int     `json:"max_lines"`
	Keep     string  `json:"keep"` // head or tail
	WaitMS   int     `json:"wait_ms"`

	// Frame bounds the size of the result as JSON, in bytes; 0 does not.
	Frame int `json:"-"`

	Store [16]byte `json:"-"` // id of the store
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
	Boundary       string  `json:"boundary,omitempty"` // boundaryRespawn
	To             *uint64 `json:"to,omitempty"`       // of the request, or where the output of the command ends
	Closed         bool    `json:"closed"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`

	// One of them: the text, the bytes (base64 in JSON), or the rows.
	Text *string     `json:"text,omitempty"`
	Data *[]byte     `json:"data,omitempty"`
	Rows *[]SinceRow `json:"rows,omitempty"`
}

// since is one call under way.
type since struct {
	pane   Pane
	q      SinceRequest
	r      *SinceResult
	filter filter
	reader *store.Reader // of the pane's log; nil until it is needed

	// What look saw: the log's end, the generation there, the lexer's place at r.End,
	// and whether the pane can write no more.
	end        store.Pos
	generation uint32
	lexer      []byte
	closed     bool
	until      uint64 // where the answer ends at the latest, at most r.End

	cursor *Cursor    // of the request
	rows   *rowsPlace // of the answer's cursor, for rows
	// begun is the place that was asked for: the reader has passed the Respawn marks
	// that stand exactly there. Nil is none.
	begun *uint64
}

// Since answers what the pane wrote since a place in its stream. now is a clock
// for elapsed_seconds.
func Since(ctx context.Context, p Pane, q SinceRequest, now func() time.Time) (*SinceResult, error) {
	began := now()
	q.fitFrame()
	s := &since{pane: p, q: q, r: &SinceResult{Pane: q.Pane}}
	defer s.close()
	s.filter.bytes, s.filter.lines = q.MaxBytes, q.MaxLines
	known, err := s.place(ctx)
	switch {
	case err != nil:
	case !known:
		err = s.screen(ctx)
	case q.Format == "rows":
		err = s.newRows(ctx)
	default:
		err = s.stream(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.r.To = s.q.To
	s.r.Closed = s.closed && !s.r.More && s.until == s.r.End
	s.r.Cursor = Cursor{
		Store: q.Store, Pane: p.Log().Pane(), Generation: s.generation,
		Offset: s.r.Offset, Rows: s.rows, Filter: s.filter.appendState(nil),
	}.String()
	s.r.ElapsedSeconds = now().Sub(began).Seconds()
	return s.r, nil
}

// fitFrame lowers max_bytes so that the result fits the frame whatever it holds.
func (q *SinceRequest) fitFrame() {
	if q.Frame == 0 || q.Format == "rows" { // whose rows are counted one by one
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
func (s *since) place(ctx context.Context) (known bool, err error) {
	switch {
	case s.q.Command != nil:
		return true, s.command(ctx)
	case s.q.Cursor != nil && s.q.Since != nil:
		return false, errTwoPlaces
	case s.q.Since != nil:
		s.r.From = *s.q.Since
		s.begun = s.q.Since
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
	}
	s.r.From, s.cursor = c.Offset, &c
	err = s.filter.setState(c.Filter)
	if len(s.filter.lexer.Held()) == 0 { // else the end of a character is still owed
		s.begun = &c.Offset
	}
	return true, err
}

// command makes the output of a command the range.
func (s *since) command(ctx context.Context) error {
	if s.q.Cursor != nil || s.q.Since != nil || s.q.To != nil {
		return &Error{"invalid_params.since", "command is a range of its own: it excludes cursor, since and to", struct {
			Param  string `json:"param"`
			Reason string `json:"reason"`
		}{"command", "exclusive"}}
	}
	c, err := nthCommand(ctx, s.pane, *s.q.Command)
	s.r.From, s.q.To = c.Start, c.End
	return err
}

// look notes the pane at one instant.
func (s *since) look(t *replay.Terminal, closed bool) {
	b := t.Bounds()
	s.r.Screen, s.r.Epoch, s.r.End = b.Screen, b.Epoch, t.Offset()
	s.end, s.generation, s.closed = s.pane.Log().End(), t.Generation(), closed
	s.lexer = t.AppendLexerState(s.lexer[:0])
	s.until = s.r.End
	if s.q.To != nil {
		s.until = min(s.until, *s.q.To)
	}
}

// lookAt is look, and refuses a cursor that the pane was respawned behind.
func (s *since) lookAt(ctx context.Context) error {
	if err := s.pane.View(ctx, s.look); err != nil {
		return err
	}
	if s.cursor != nil && s.cursor.Generation != s.generation {
		return errRespawned
	}
	return nil
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
		s.rows = &rowsPlace{Epoch: b.Epoch, Active: b.Active}
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
	if err := s.lookAt(ctx); err != nil {
		return err
	}
	if s.r.From == s.until && s.until == s.r.End && !s.closed && s.q.WaitMS > 0 {
		wait, cancel := context.WithTimeout(ctx, time.Duration(s.q.WaitMS)*time.Millisecond)
		err := s.pane.Await(wait, store.Pos{Offset: s.r.From, Seq: math.MaxUint64})
		cancel()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.lookAt(ctx); err != nil {
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
		// The reader was overtaken by the eviction: it starts at what is left, of the
		// pane as it is now.
		*s.r, s.filter = result, filter
		if err := s.lookAt(ctx); err != nil {
			return err
		}
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
	s.r.Offset, s.until = s.r.From, max(s.until, s.r.From) // the range may end in front
	switch {
	case s.q.Format == "raw":
		return s.raw()
	case s.q.Keep == "tail":
		return s.tailText()
	}
	return s.headText()
}

// respawn says whether another program begins at f than the one that is read.
func (s *since) respawn(f store.Frame) bool {
	return f.Kind == replay.MarkRespawn && f.Seq < s.end.Seq && (s.begun == nil || f.Offset != *s.begun)
}

// seek has the reader begin at an offset. There is one reader for the whole answer, as
// mostly all that is read stands in one record of the log.
func (s *since) seek(offset uint64) (err error) {
	if s.reader != nil {
		return s.reader.SeekOffset(offset)
	}
	s.reader, err = s.pane.Log().ReadOffset(offset)
	return err
}

func (s *since) close() {
	if s.reader != nil {
		s.reader.Close()
	}
}

// place is where a scan came to.
type place struct {
	offset  uint64
	respawn bool // another program begins here
}

// scan calls take with the pieces of the stream from the offset from on, in
// order, up to until, a gap, a respawn or limit bytes, until take returns fewer
// than it was given. It returns the place that it came to.
func (s *since) scan(from uint64, limit int, take func(p []byte) int) (at place, err error) {
	at.offset = from
	if from == s.end.Offset && s.begun != nil && *s.begun == from {
		return at, nil // a poll that finds nothing asks no disk
	}
	if err := s.seek(from); err != nil {
		return at, err
	}
	for {
		f, err := s.reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return at, nil
		case err != nil:
			return at, err
		case f.Kind == store.Gap && f.Offset+f.Lost > at.offset:
			return at, nil
		case s.respawn(f):
			at.respawn = true
			return at, nil
		case f.Kind != store.Output || f.Offset+uint64(len(f.Data)) <= at.offset:
			continue
		case at.offset >= s.until || limit <= 0:
			return at, nil
		case f.Offset > at.offset: // not even a gap stands for what is between
			return at, &store.DamagedError{Pane: s.pane.Log().Pane(), Offset: at.offset, Err: errors.New("bytes are missing")}
		}
		rest := f.Data[at.offset-f.Offset:]
		n := take(rest[:min(uint64(len(rest)), uint64(limit), s.until-at.offset)])
		at.offset += uint64(n)
		limit -= n
		if n < len(rest) {
			return at, nil
		}
	}
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
		from = max(near, end.offset-min(end.offset, uint64(limit)))
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

// truncate notes that the text begins at from, later than asked for.
func (s *since) truncate(from uint64) {
	if from > s.r.From {
		s.r.Truncated, s.r.TruncatedBytes = true, from-s.r.From
		s.r.From = from
	}
}

// arrive notes how far the answer goes.
func (s *since) arrive(at place) {
	s.r.Offset = at.offset
	s.r.More = at.respawn || at.offset < s.until
	if at.respawn {
		s.r.Boundary = boundaryRespawn
	}
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

// give sets the text of the answer; at the end of what a program wrote, with what
// an unfinished character leaves.
func (s *since) give(text []byte) {
	if s.r.Boundary != "" || s.closed && !s.r.More && s.until == s.r.End {
		text = s.filter.finish(text)
		if len(s.filter.lexer.Held()) > 0 { // the limits refused it
			s.r.More, s.r.Boundary = true, ""
		}
	}
	if s.r.Boundary != "" {
		s.filter.cr = false
		s.filter.lexer.Reset()
	}
	given := string(text)
	s.r.Text = &given
}
