package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// What the stress knows of the lines that waits look for and of the marks of its
// shells (OSC 133), and the readers that look for them.

// stressBytes is where a piece stands in the stream.
type stressBytes struct {
	from, to uint64 // to is 0 until it is whole
	lost     bool   // some of it is not in the log
}

// stressLineAt is a line that waits look for: its number, its pieces and its text.
type stressLineAt struct {
	text   string
	number string // its text up to the number
	pieces []*stressBytes
	lead   *stressBytes // the first piece, which may be a sequence
}

// stressMark is a mark that is whole: one of OSC 133 or OSC 7, the end of a program
// (X), or a gap (G), behind which nobody knows what its commands are.
type stressMark struct {
	stressBytes
	kind byte
	text string // a command or a directory
	code int
	wall int64 // time of the frame that completed it
}

// stressShell is a shell that marks its commands.
type stressShell struct {
	prompted, running bool
	lines             int // of output that come before the next mark
}

// marks makes the marks that come in front of the next line.
func (s *stressShell) marks(r *rand.Rand) (out []piece) {
	if s.lines--; s.lines > 0 {
		return nil
	}
	s.lines = r.IntN(50)
	add := func(kind byte, raw, text string, code int) {
		end := []string{"\a", "\x1b\\"}[r.IntN(2)]
		m := &stressMark{kind: kind, text: text, code: code}
		out = append(out, piece{raw: "\x1b]" + raw + end, at: &m.stressBytes, mark: m})
	}
	n := r.IntN(200)
	switch {
	case s.running:
		add('D', fmt.Sprintf("133;D;%d", n), "", n)
		s.running, s.prompted = false, false
		fallthrough
	case !s.prompted:
		add('A', "133;A", "", 0)
		add('W', fmt.Sprintf("7;file:///d%d", n), fmt.Sprintf("/d%d", n), 0)
		add('B', "133;B", "", 0)
		s.prompted = true
	default:
		add('C', fmt.Sprintf("133;C;cmdline_url=run%%20%d", n), fmt.Sprintf("run %d", n), 0)
		s.running = true
	}
	return out
}

// seek notes a line of those that waits look for; pieces are those of its text.
func (t *truth) seek(number int, line string, pieces []piece) {
	if number%100 != 37 {
		return
	}
	at := &stressLineAt{text: line, number: fmt.Sprintf("line %d ", number)}
	for i := range pieces {
		pieces[i].at = &stressBytes{}
		if pieces[i].text != "" {
			at.pieces = append(at.pieces, pieces[i].at)
		}
	}
	at.lead = pieces[0].at
	t.sought = append(t.sought, at)
}

// stands notes that k bytes of what is left of a piece end at an offset.
func (t *truth) stands(p *piece, k int, end uint64, lost bool) {
	if p.at == nil {
		return
	}
	if p.at.from == 0 {
		p.at.from = end - uint64(k) + 1 // 0 is none yet
	}
	if p.at.lost = p.at.lost || lost; k < len(p.raw) {
		return
	}
	p.at.from, p.at.to = p.at.from-1, end
	if p.mark != nil && !p.at.lost {
		t.marks = append(t.marks, *p.mark)
	}
}

// clock notes when the marks of a frame came.
func (t *truth) clock(wall int64) {
	for i := len(t.marks) - 1; i >= 0 && t.marks[i].wall == 0; i-- {
		t.marks[i].wall = wall
	}
}

// span is where a line, or its number alone, stands. It is whole if all of it is in
// the log.
func (l *stressLineAt) span(number bool) (s stressBytes, whole bool) {
	last := len(l.pieces) - 1
	if number {
		last = 0
	}
	whole = true
	for _, p := range l.pieces[:last+1] {
		whole = whole && p.to > 0 && !p.lost
	}
	return stressBytes{from: l.pieces[0].from, to: l.pieces[last].to}, whole
}

// waiter waits for lines and for ends of commands, wait by wait, from the first byte
// on, and finds each of them once, at its bytes, if it is not told that bytes were
// missed.
type waiter struct {
	s    *stress
	r    *rand.Rand
	slow bool

	cursor *string
	number [2]uint32 // of respawns, before and after the cursor was handed out
	at     uint64
	sure   bool // a line that begins at at is seen to do so
	line   int  // the next of truth.sought
	mark   int  // the first of truth.marks that ends behind at
}

func waits(s *stress, r *rand.Rand) stressReader {
	return (&waiter{s: s, r: r, sure: true}).read
}

func slowWaits(s *stress, r *rand.Rand) stressReader {
	return (&waiter{s: s, r: r, sure: true, slow: true}).read
}

func (w *waiter) read(ctx context.Context) (ended bool, err error) {
	for range 20 {
		if ended, err = w.wait(ctx); ended || err != nil || w.slow && w.s.writing.Load() {
			break
		}
	}
	return ended, err
}

// wait waits once.
func (w *waiter) wait(ctx context.Context) (ended bool, err error) {
	q := WaitRequest{Cursor: w.cursor, TimeoutMS: w.r.IntN(2), Exit: w.r.IntN(2) == 0}
	if w.cursor == nil {
		q.Since = &w.at
	}
	number := w.r.IntN(2) == 0
	if pattern := `^line \d*37 `; w.r.IntN(4) > 0 {
		if q.Pattern = &pattern; !number {
			pattern += `.*\.$`
		}
	}
	q.Command = q.Pattern == nil || w.r.IntN(2) == 0
	if quiet := 0; w.r.IntN(4) == 0 {
		q.QuietMS = &quiet
	}
	before := w.s.respawns()
	a, err := Wait(ctx, w.s, q)
	after, oldest := w.s.respawns(), w.s.log.Oldest()
	var refused *Error
	switch {
	case errors.As(err, &refused) && refused.Code == "conflict.respawned":
		if after == w.number[0] {
			return false, fmt.Errorf("at %d: %w, but there were none", w.at, err)
		}
		w.cursor = nil
		return false, nil
	case err != nil:
		return false, fmt.Errorf("at %d: %w", w.at, err)
	case w.cursor != nil && before > w.number[1]:
		return false, fmt.Errorf("at %d: a cursor from before a respawn was taken", w.at)
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if err := w.check(&q, a, number, oldest); err != nil {
		m := fmt.Sprintf("%+v", a.Matched)
		a.Cursor = ""
		return false, fmt.Errorf("at %d, the oldest is %d: %w: %+v %s", w.at, oldest, err, *a, m)
	}
	// A cursor knows what it stands in; by its offset alone that is not known.
	w.sure = a.Reason != "timeout" && a.Reason != "quiet"
	w.at, w.cursor, w.number = a.Offset, &a.Cursor, [2]uint32{before, after}
	return w.s.closed && a.Reason == "exit" && a.Offset == w.s.term.Offset(), nil
}

// check compares an answer with what the test wrote.
func (w *waiter) check(q *WaitRequest, a *WaitResult, number bool, oldest uint64) error {
	t := &w.s.truth
	gaps, gone := uint64(0), uint64(0)
	if end := min(a.Offset, oldest); w.at < end {
		gone = end - w.at
	}
	for at, n := range t.lost {
		if w.at <= at && at < a.Offset {
			gaps += n
			if at < oldest {
				gone -= n
			}
		}
	}
	if a.MissedBytes < gaps || a.MissedBytes > gaps+gone || a.Missed != (a.MissedBytes > 0) {
		return fmt.Errorf("%d to %d bytes are missing", gaps, gaps+gone)
	}
	evicted := uint64(0) // what was missed ends here
	if a.MissedBytes > gaps {
		evicted = oldest
	}
	_, program := t.respawns[a.Offset]
	if end := w.s.closed && a.Offset == w.s.term.Offset(); a.Reason == "exit" && !program && !end {
		return errors.New("no exit is there")
	}
	if err := w.checkLines(q, a, number, evicted); err != nil {
		return err
	}
	return w.checkMarks(q, a, evicted, oldest)
}

// checkLines: no line that was waited for was passed over.
func (w *waiter) checkLines(q *WaitRequest, a *WaitResult, number bool, evicted uint64) error {
	sought := w.s.truth.sought
	for ; w.line < len(sought); w.line++ {
		line := sought[w.line]
		at, whole := line.span(number)
		lead := at.from
		if !w.sure && w.cursor == nil {
			lead = line.lead.from
		}
		switch found := a.Reason == "pattern" && at.from == a.Matched.Start; {
		case found && (at.to != a.Matched.End || a.Offset != at.to || !strings.HasPrefix(a.Matched.Line, line.number) || !strings.HasPrefix(line.text, a.Matched.Line)):
			return fmt.Errorf("%q at %+v", line.text, at)
		case found:
			w.line++
			return nil
		case at.to == 0 || at.to > a.Offset: // not yet
			never := at.to == 0 && w.line+1 < len(sought) && sought[w.line+1].lead.from > 0 // its program ended
			if _, begun := line.span(true); never || begun && at.from < a.Offset && (at.to == 0 || q.Pattern == nil) {
				continue // or its beginning was not looked for
			}
		case whole && q.Pattern != nil && lead >= max(evicted, w.at):
			return fmt.Errorf("%q at %+v was passed over", line.text, at)
		default:
			continue
		}
		break
	}
	if a.Reason == "pattern" {
		return errors.New("there is no such line")
	}
	return nil
}

// checkMarks: no end of a command that was waited for was passed over.
func (w *waiter) checkMarks(q *WaitRequest, a *WaitResult, evicted, oldest uint64) error {
	marks := w.s.truth.marks
	var ran *stressMark // the command that this wait has seen to begin, or that ran before
	if evicted == 0 {
		ran = w.running()
	}
	var perhaps *stressMark // likewise, if it was evicted only afterwards
	for ; w.mark < len(marks) && marks[w.mark].to <= a.Offset; w.mark++ {
		m := &marks[w.mark]
		seen := m.to > w.at && m.from >= evicted && (m.from >= w.at || m.from >= oldest)
		switch m.kind {
		case 'C':
			ran, perhaps = nil, nil
			if seen {
				ran = m
			} else if m.from >= w.at {
				perhaps = m
			}
		case 'G':
			ran, perhaps = nil, nil
		case 'D':
			if a.Reason != "command" || m.from != a.Matched.End {
				if q.Command && seen {
					return fmt.Errorf("%+v was passed over", m)
				}
				continue
			}
			w.mark++
			want, line := m.from, ""
			if ran != nil {
				want, line = ran.to, ran.text
			}
			told := a.Matched.Start == want && a.Matched.Line == line
			if !told && perhaps != nil {
				told = a.Matched.Start == perhaps.to && a.Matched.Line == perhaps.text
			}
			if !told && ran != nil && ran.from < oldest { // it went in between
				told = a.Matched.Start == m.from && a.Matched.Line == ""
			}
			if !told || a.Offset != m.to || a.Exit == nil || *a.Exit != m.code {
				return fmt.Errorf("the end of %+v at %+v", ran, m)
			}
			return nil
		}
	}
	if a.Reason == "command" {
		return errors.New("there is no such end")
	}
	return nil
}

// running is the beginning of the command that runs where a wait begins, or nil.
func (w *waiter) running() *stressMark {
	marks := w.s.truth.marks
	for i := len(marks) - 1; i >= 0; i-- {
		switch m := &marks[i]; {
		case m.to > w.at || m.kind == 'W' || m.kind == 'B':
		case m.kind == 'C':
			return m
		default:
			return nil
		}
	}
	return nil
}

// commands are the commands that marks tell, and where their marks begin: one ends at
// the next mark that is no directory. Behind a gap nobody knows whose end it is, and
// where the shell is.
func commandsOf(marks []stressMark) (commands []Command, begin []uint64) {
	cwd := ""
	running := -1 // the mark that began the last command
	gap := false
	for i := range marks {
		m := &marks[i]
		switch m.kind {
		case 'W':
			cwd = m.text
			continue
		case 'B':
			continue
		case 'G':
			cwd, gap = "", true
			continue
		case 'X':
			cwd = ""
		}
		if running >= 0 {
			c := &commands[len(commands)-1]
			c.End = &m.from
			if took := float64(m.wall-marks[running].wall) / float64(time.Second); !gap {
				c.Seconds = &took
			}
			if m.kind == 'D' && !gap {
				c.Exit = &m.code
			}
		}
		if running = -1; m.kind == 'C' {
			commands, begin = append(commands, Command{Start: m.to, Command: m.text, Cwd: cwd}), append(begin, m.from)
			running, gap = i, false
		}
	}
	return commands, begin
}

// commandPages lists the commands page by page, from the newest to the oldest.
type commandPages struct {
	s *stress
	r *rand.Rand

	before   *uint64
	commands []Command // what there was at the newest page
	begin    []uint64
	next     int // the command in front of which a page ends
}

func listsOfCommands(s *stress, r *rand.Rand) stressReader {
	return (&commandPages{s: s, r: r}).read
}

func (p *commandPages) read(ctx context.Context) (ended bool, err error) {
	q := CommandsRequest{Limit: 1 + p.r.IntN(100), Before: p.before}
	if p.r.IntN(4) == 0 {
		q.Frame = 4096
	}
	from := p.s.log.End().Offset
	a, err := Commands(ctx, p.s, q)
	if err != nil {
		return false, err
	}
	oldest := p.s.log.Oldest()
	if p.before == nil {
		if err := p.newest(a.Commands, from); err != nil {
			return false, err
		}
	}
	first := p.next - len(a.Commands)
	if first < 0 {
		return false, fmt.Errorf("%d commands, where there are %d", len(a.Commands), p.next)
	}
	for i, c := range a.Commands {
		want := p.commands[first+i]
		if i == 0 && c.Cwd == "" { // it may be in front of what was looked through
			want.Cwd = ""
		}
		if c.describe() != want.describe() {
			return false, fmt.Errorf("%s is none, or none that comes then: %s", c.describe(), want.describe())
		}
	}
	if p.next = first; a.More {
		p.before = &a.From
		return false, nil
	}
	p.before = nil
	if first > 0 && p.begin[first-1] >= oldest {
		return false, fmt.Errorf("the oldest byte is %d, but the command at %d is not listed", oldest, p.begin[first-1])
	}
	return true, nil
}

// newest checks where the newest page ends: all that had begun when the stream ended at
// an offset are there, and what has ended then is said to.
func (p *commandPages) newest(page []Command, from uint64) error {
	p.s.mu.Lock()
	marks := slices.Clone(p.s.truth.marks)
	p.s.mu.Unlock()
	p.commands, p.begin = commandsOf(marks)
	p.next, _ = slices.BinarySearchFunc(p.commands, from, func(c Command, at uint64) int { return cmp.Compare(c.Start, at+1) })
	if len(page) == 0 {
		return nil
	}
	last := page[len(page)-1]
	i, ok := slices.BinarySearchFunc(p.commands, last.Start, func(c Command, at uint64) int { return cmp.Compare(c.Start, at) })
	if !ok || i+1 < p.next {
		return fmt.Errorf("%s is not the newest of %d that had begun by %d", last.describe(), p.next, from)
	}
	p.next = i + 1
	if c := &p.commands[i]; last.End == nil && c.End != nil && *c.End+16 > from { // its mark was not whole
		c.End, c.Exit, c.Seconds = nil, nil, nil
	}
	return nil
}
