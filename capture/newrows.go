package capture

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"looptape/replay"
	"looptape/store"
)

// SinceRow is a row of an answer in rows, without its trailing blanks.
type SinceRow struct {
	Row  uint64 `json:"row"`
	Text string `json:"text"`
}

// rowsPlace is the place of a cursor among the rows of an epoch. Rows below Active
// were history when the cursor was made, and do not change. Those from Next on that
// were written behind the cursor's offset are still to be given; of those before it
// only what was written behind AsOf. With Next 0 there are none before it.
type rowsPlace struct {
	Epoch              uint32
	Active, Next, AsOf uint64
}

const rowsSize = 28

func (p *rowsPlace) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, p.Epoch)
	b = binary.BigEndian.AppendUint64(b, p.Active)
	b = binary.BigEndian.AppendUint64(b, p.Next)
	return binary.BigEndian.AppendUint64(b, p.AsOf)
}

func parseRowsPlace(b []byte) *rowsPlace {
	return &rowsPlace{
		Epoch:  binary.BigEndian.Uint32(b),
		Active: binary.BigEndian.Uint64(b[4:]), Next: binary.BigEndian.Uint64(b[12:]), AsOf: binary.BigEndian.Uint64(b[20:]),
	}
}

// rowsBudget counts what rows take of the limits.
type rowsBudget struct{ rows, bytes, frame int }

// add counts a row, or takes it back with n = -1.
func (u *rowsBudget) add(text string, n int) {
	u.rows += n
	u.bytes += n * len(text)
	u.frame += n * (2*len(text) + 48) // at most, as JSON
}

// within says whether q's limits admit it.
func (u *rowsBudget) within(q *SinceRequest) bool {
	return u.rows <= 1 || u.rows <= q.MaxLines && u.bytes <= q.MaxBytes && (q.Frame == 0 || u.frame <= q.Frame-1024-2*len(q.Pane))
}

// newRows answers with the rows that were written behind the cursor, oldest first.
// Its cost is that of the rows which have come since, and of the screen. A sequence that
// moved rows about counts as having written all of them.
func (s *since) newRows(ctx context.Context) error {
	if s.cursor == nil || s.cursor.Rows == nil || s.q.To != nil { // an offset says nothing about rows
		return s.screen(ctx)
	}
	if err := s.lookAt(ctx); err != nil {
		return err
	}
	at := *s.cursor.Rows
	if s.r.From == s.r.End && at.Next == 0 && !s.closed && s.q.WaitMS > 0 {
		wait, cancel := context.WithTimeout(ctx, time.Duration(s.q.WaitMS)*time.Millisecond)
		err := s.pane.Await(wait, store.Pos{Offset: s.r.From, Seq: math.MaxUint64})
		cancel()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	known := false
	err := s.pane.View(ctx, func(t *replay.Terminal, closed bool) {
		s.look(t, closed)
		if b := t.Bounds(); b.Epoch == at.Epoch && s.r.From <= s.r.End {
			known = true
			s.take(t, b, at)
		}
	})
	if err == nil && !known { // rows have other numbers now
		s.r.Missed = true
		return s.screen(ctx)
	}
	return err
}

// take collects the rows of t that are new at a place.
func (s *since) take(t *replay.Terminal, b replay.Bounds, at rowsPlace) {
	rows := []SinceRow{}
	s.r.Missed = at.Active < b.Oldest // they have left the scrollback
	next := uint64(0)
	var used rowsBudget
	// What an unfinished character becomes is written where its bytes end.
	from := s.r.From - uint64(len(s.filter.lexer.Held()))
	for row := range t.Rows(max(at.Active, b.Oldest), b.End) {
		threshold := from
		if row.Number < at.Next {
			threshold = at.AsOf
		}
		if max(row.Written, t.Moved()) <= threshold {
			continue
		}
		text := strings.TrimRight(string(row.Text), " ")
		used.add(text, 1)
		if s.q.Keep == "head" && !used.within(&s.q) {
			next = row.Number
			break
		}
		rows = append(rows, SinceRow{row.Number, text})
	}
	if s.q.Keep == "tail" {
		drop := 0
		for ; !used.within(&s.q); drop++ {
			used.add(rows[drop].Text, -1)
		}
		s.r.Truncated, s.r.TruncatedLines = drop > 0, drop
		rows = rows[drop:]
	}
	s.r.Rows = &rows
	lexer := t.AppendLexerState(nil) // a phase, and the bytes of an unfinished character
	if next > 0 {
		// The cursor stays where it is: to it belongs what is still to be given.
		s.r.Offset, s.r.More = s.r.From, true
		s.rows = &rowsPlace{at.Epoch, at.Active, next, s.r.End - uint64(len(lexer)-1)}
		return
	}
	s.r.Offset = s.r.End
	s.filter.cr = false
	s.filter.lexer.SetState(lexer)
	s.rows = &rowsPlace{Epoch: b.Epoch, Active: b.Active}
}
