package capture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"looptape/replay"
)

// maxCells bounds the cells of one page (seed 000, section 6).
const maxCells = 1 << 22

// RowsRequest selects rows and bounds a page. Nil is a parameter not given; the
// ranges of the values are the manifest's.
type RowsRequest struct {
	Pane     string  `json:"pane"`
	Epoch    *uint32 `json:"epoch"`
	Start    *uint64 `json:"start"`
	End      *uint64 `json:"end"`
	Tail     *uint64 `json:"tail"`
	MaxRows  int     `json:"max_rows"`
	MaxBytes int     `json:"max_bytes"`
	// Frame bounds the size of the result as JSON, in bytes; 0 does not.
	Frame int `json:"-"`
	// StringLen is the size of a line as JSON, quotes included.
	StringLen func([]byte) int `json:"-"`
}

// RowBounds are the rows that a Terminal retains: [Oldest, End), of which
// [Active, End) are the screen.
type RowBounds struct {
	Oldest uint64 `json:"oldest"`
	Active uint64 `json:"active"`
	End    uint64 `json:"end"`
}

// RowsResult is a page of rows (seed 000, section 2).
type RowsResult struct {
	Pane   string    `json:"pane"`
	Screen string    `json:"screen"`
	Epoch  uint32    `json:"epoch"`
	Offset uint64    `json:"offset"`
	Cols   int       `json:"cols"`
	Rows   int       `json:"rows"`
	Bounds RowBounds `json:"bounds"`
	Start  uint64    `json:"start"`
	End    uint64    `json:"end"`
	Next   *uint64   `json:"next,omitempty"`
	Done   bool      `json:"done"`
	Lines  []string  `json:"lines"`
}

// Rows returns one page of t's rows. Its errors are those of seed 000, section 8.
func Rows(t *replay.Terminal, q RowsRequest) (*RowsResult, error) {
	if err := q.combination(); err != nil {
		return nil, err
	}
	b := t.Bounds()
	start, end, err := q.selection(b)
	if err != nil {
		return nil, err
	}
	r := &RowsResult{
		Pane: q.Pane, Screen: b.Screen, Epoch: b.Epoch, Offset: t.Offset(), Cols: b.Cols, Rows: b.Rows,
		Bounds: RowBounds{Oldest: b.Oldest, Active: b.Active, End: b.End},
		Start:  start, End: end, Lines: []string{},
	}
	if err := q.fill(t, r); err != nil {
		return nil, err
	}
	return r, nil
}

// combination checks which of the parameters are given together, and their order.
func (q *RowsRequest) combination() error {
	invalid := func(param, reason, message string) error {
		return &Error{"invalid_params.rows", message, struct {
			Param  string `json:"param"`
			Reason string `json:"reason"`
		}{param, reason}}
	}
	switch {
	case q.Tail != nil && (q.Epoch != nil || q.Start != nil || q.End != nil):
		return invalid("tail", "exclusive", "tail cannot be combined with epoch, start or end")
	case q.Start != nil && q.Epoch == nil:
		return invalid("start", "epoch_required", "start requires epoch")
	case q.End != nil && q.Epoch == nil:
		return invalid("end", "epoch_required", "end requires epoch")
	case q.Start != nil && q.End != nil && *q.End < *q.Start:
		return invalid("end", "order", "end must not be below start")
	}
	return nil
}

// selection returns the rows [start, end) that are asked for, all of which exist.
func (q *RowsRequest) selection(b replay.Bounds) (start, end uint64, err error) {
	start, end = b.Oldest, b.End
	if q.Tail != nil {
		if n := b.End - b.Oldest; *q.Tail < n {
			start = b.End - *q.Tail
		}
		return start, end, nil
	}
	if q.Epoch != nil && *q.Epoch != b.Epoch {
		verb := "is no longer current"
		if *q.Epoch > b.Epoch {
			verb = "is not current"
		}
		return 0, 0, &Error{"conflict.epoch", fmt.Sprintf("row epoch %d %s", *q.Epoch, verb), struct {
			Screen string `json:"screen"`
			Epoch  uint32 `json:"epoch"`
			Oldest uint64 `json:"oldest"`
			End    uint64 `json:"end"`
		}{b.Screen, b.Epoch, b.Oldest, b.End}}
	}
	if q.Start != nil {
		start = *q.Start
	}
	if q.End != nil {
		end = *q.End
	}
	return start, end, outside(b, start, end, q)
}

// outside reports a selection that reaches beyond the retained rows. Rows that
// are gone are reported before rows that do not exist yet.
func outside(b replay.Bounds, start, end uint64, q *RowsRequest) error {
	var reason, message string
	switch {
	case start < b.Oldest || q.Start == nil && end < b.Oldest:
		reason = "evicted"
		message = span(min(start, end), min(end, b.Oldest), "is no longer retained", "are no longer retained")
	case end > b.End || q.End == nil && start > b.End:
		reason = "future"
		message = span(max(start, b.End), max(end, start), "does not exist yet", "do not exist yet")
	default:
		return nil
	}
	if start == end {
		message = fmt.Sprintf("row %d is outside the retained rows", start)
	}
	return &Error{"not_found.rows", message, struct {
		Reason string `json:"reason"`
		Screen string `json:"screen"`
		Epoch  uint32 `json:"epoch"`
		Oldest uint64 `json:"oldest"`
		End    uint64 `json:"end"`
	}{reason, b.Screen, b.Epoch, b.Oldest, b.End}}
}

// span names the rows [from, to).
func span(from, to uint64, one, many string) string {
	if to <= from+1 {
		return fmt.Sprintf("row %d %s", from, one)
	}
	return fmt.Sprintf("rows %d to %d %s", from, to-1, many)
}

// fill puts the largest page into r that all limits admit.
func (q *RowsRequest) fill(t *replay.Terminal, r *RowsResult) error {
	p := page{q: q, r: r}
	p.measure()
	most := min(r.End-r.Start, uint64(q.MaxRows), uint64(max(1, maxCells/r.Cols)))
	p.text.Grow(min(int(most)*r.Cols, q.MaxBytes)) // as much as it takes without wide characters and marks
	for row := range t.Rows(r.Start, r.Start+most) {
		if !p.add(row.Text) {
			break
		}
	}
	k, last := p.largest()
	if k == 0 && r.Start < r.End {
		return &Error{"unsupported.result_size", fmt.Sprintf("row %d takes %d bytes, which does not fit: raise max_bytes, or connect with a larger max_frame", r.Start, p.first), struct {
			Row   uint64 `json:"row"`
			Bytes int    `json:"bytes"`
		}{r.Start, p.first}}
	}
	r.Done = last
	if !last {
		next := r.Start + uint64(k)
		r.Next = &next
	}
	text := p.text.String()
	r.Lines = slices.Grow(r.Lines, k)
	for i := range k {
		r.Lines = append(r.Lines, text[p.ends[i]:p.ends[i+1]])
	}
	return nil
}

// page collects the candidates for one page: rows from r.Start on that satisfy
// every limit but the frame's, which depends on which of them is the last.
type page struct {
	q *RowsRequest
	r *RowsResult

	text  strings.Builder
	ends  []int // ends[i] is the end of line i-1 in text
	sizes []int // sizes[i] is the size of i lines as JSON
	first int   // bytes of the first row of the selection

	lastPage  int // size of the result without lines, with done true
	otherPage int // with done false, and all of next but its digits
}

// measure computes the size of the result around its lines.
func (p *page) measure() {
	p.ends, p.sizes = []int{0}, []int{0}
	if p.q.Frame == 0 {
		return
	}
	r := *p.r
	r.Done = true
	raw, _ := json.Marshal(&r) // holds nothing that could fail
	p.lastPage = len(raw)
	p.otherPage = len(raw) + len(`"next":,`) + len("false") - len("true")
}

// add takes one more row; false means that it does not fit any more.
func (p *page) add(line []byte) bool {
	n := len(p.sizes) - 1
	if n == 0 {
		p.first = len(line)
	}
	if p.text.Len()+len(line) > p.q.MaxBytes {
		return false
	}
	size := 0
	if p.q.Frame > 0 {
		size = p.sizes[n] + p.q.StringLen(line)
		if n > 0 {
			size++ // the comma
		}
		if p.lastPage+size > p.q.Frame {
			return false
		}
	}
	p.text.Write(line)
	p.ends = append(p.ends, p.text.Len())
	p.sizes = append(p.sizes, size)
	return true
}

// largest returns how many of the rows make the page, and whether it reaches
// the end of the selection.
func (p *page) largest() (k int, last bool) {
	k = len(p.sizes) - 1
	if p.r.Start+uint64(k) == p.r.End {
		return k, true
	}
	for ; k > 0 && p.q.Frame > 0; k-- {
		next := strconv.FormatUint(p.r.Start+uint64(k), 10)
		if p.otherPage+len(next)+p.sizes[k] <= p.q.Frame {
			break
		}
	}
	return k, false
}

// ScreenCursor is where the cursor stands on the screen.
type ScreenCursor struct {
	Col     int  `json:"col"`
	Row     int  `json:"row"`
	Visible bool `json:"visible"`
}

// ScreenResult is the visible screen (contract.md, section 5).
type ScreenResult struct {
	Pane   string       `json:"pane"`
	Screen string       `json:"screen"`
	Epoch  uint32       `json:"epoch"`
	Offset uint64       `json:"offset"`
	Cols   int          `json:"cols"`
	Rows   int          `json:"rows"`
	Cursor ScreenCursor `json:"cursor"`
	Title  string       `json:"title"`
	Text   string       `json:"text"`
}

// Screen returns what t shows.
func Screen(t *replay.Terminal, pane string) *ScreenResult {
	b, c := t.Bounds(), t.Cursor()
	text := make([]byte, 0, b.Rows*(b.Cols+1))
	for row := range t.Rows(b.Active, b.End) {
		if len(text) > 0 {
			text = append(text, '\n')
		}
		text = append(text, row.Text...)
	}
	return &ScreenResult{
		Pane: pane, Screen: b.Screen, Epoch: b.Epoch, Offset: t.Offset(), Cols: b.Cols, Rows: b.Rows,
		Cursor: ScreenCursor{Col: c.Col, Row: c.Row, Visible: c.Visible},
		Title:  t.Title(), Text: string(text),
	}
}
