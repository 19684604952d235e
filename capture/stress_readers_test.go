package capture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"looptape/replay"
	"looptape/store"
)

// stressReader reads once, and reports whether it has come to the end of what there
// was.
type stressReader func(context.Context) (ended bool, err error)

// stressReaders are the kinds of readers. pace is how many bytes are written at least
// between two reads, so that readers which read much leave the writer some time.
var stressReaders = []struct {
	name string
	pace uint64
	make func(s *stress, r *rand.Rand) stressReader
}{
	{"text by cursors", 4 << 10, func(s *stress, r *rand.Rand) stressReader {
		return (&follower{s: s, r: r, format: "text", cursors: true}).read
	}},
	{"text by cursors, slowly", 8 << 10, func(s *stress, r *rand.Rand) stressReader {
		return (&follower{s: s, r: r, format: "text", cursors: true, slow: true}).read
	}},
	{"raw by cursors", 4 << 10, func(s *stress, r *rand.Rand) stressReader {
		return (&follower{s: s, r: r, format: "raw", cursors: true}).read
	}},
	{"raw by offsets", 4 << 10, func(s *stress, r *rand.Rand) stressReader {
		return (&follower{s: s, r: r, format: "raw"}).read
	}},
	{"the oldest", 32 << 10, oldestReader},
	{"the newest", 128 << 10, newestReader},
	{"states", 32 << 10, stateReader},
	{"screens", 64 << 10, screenReader},
	{"raw exports", 512 << 10, rawExports},
	{"transcripts", 512 << 10, transcripts},
	{"searches", 128 << 10, searches},
	{"waits", 16 << 10, waits},
	{"waits, slowly", 32 << 10, slowWaits},
	{"commands", 64 << 10, listsOfCommands},
}

// follower reads the stream from its first byte on, and passes over nothing but what
// it is told is missing.
type follower struct {
	s       *stress
	r       *rand.Rand
	format  string
	cursors bool
	slow    bool

	cursor *string
	number [2]uint32 // of respawns, before and after the cursor was handed out
	at     uint64
	text   int    // bytes of text in front of at; -1 if that is to be looked up
	told   uint64 // where the last boundary was, and 1
}

func (f *follower) read(ctx context.Context) (ended bool, err error) {
	q := SinceRequest{Format: f.format, Keep: "head", MaxBytes: 1 << f.r.IntN(18), MaxLines: 1 + f.r.IntN(1000)}
	if f.slow && f.s.writing.Load() { // so that retention overtakes it
		q.MaxBytes = 1 << f.r.IntN(12)
	}
	if q.Cursor = f.cursor; f.cursor == nil {
		q.Since = &f.at
	}
	before := f.s.respawns()
	a, err := Since(ctx, f.s, q, time.Now)
	after := f.s.respawns()
	var refused *Error
	switch {
	case errors.As(err, &refused) && refused.Code == "conflict.respawned":
		if after == f.number[0] {
			return false, fmt.Errorf("at %d: %w, but there were none", f.at, err)
		}
		return false, f.restart()
	case err != nil:
		return false, fmt.Errorf("at %d: %w", f.at, err)
	case f.cursor != nil && before > f.number[1]:
		return false, fmt.Errorf("at %d: a cursor from before a respawn was taken", f.at)
	}
	err = f.check(a)
	if f.number = [2]uint32{before, after}; f.cursors {
		f.cursor = &a.Cursor
	}
	return a.Closed, err
}

// restart goes on by an offset: bytes where they were, text at the next respawn,
// since there the stream is in the middle of nothing.
func (f *follower) restart() error {
	f.cursor = nil
	if f.format == "raw" {
		return nil
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	places := f.s.truth.places
	i := sort.Search(len(places), func(i int) bool { return places[i].offset >= f.at })
	for ; i < len(places); i++ {
		if p := places[i]; f.s.truth.respawns[p.offset] > 0 {
			f.at, f.text = p.offset, p.text+p.rest
			return nil
		}
	}
	return fmt.Errorf("at %d: refused, but no respawn follows", f.at)
}

func (f *follower) check(a *SinceResult) error {
	bad := func(what string) error {
		b := *a
		b.Text, b.Data = nil, nil
		return fmt.Errorf("at %d: %s: %+v", f.at, what, b)
	}
	if a.Missed {
		if a.MissedBytes != a.From-f.at {
			return bad("the missed bytes")
		}
		if err := f.s.missing(f.at, a.From); err != nil {
			return err
		}
		f.at, f.text = a.From, -1
	}
	if a.From != f.at || a.Offset < a.From || a.End < a.Offset || a.First || a.Truncated || a.Closed && (a.More || a.Offset != a.End) {
		return bad("the answer")
	}
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.truth
	owed := 0 // text that is still to come though its bytes were read
	if i, ok := t.index[a.Offset]; ok {
		owed = t.places[i].rest
	}
	switch {
	case a.Boundary != "":
		if a.Boundary != boundaryRespawn || t.respawns[a.Offset] == 0 || f.told == a.Offset+1 || !a.More {
			return bad("the boundary")
		}
		f.told = a.Offset + 1
	case t.respawns[a.Offset] > 0 && a.From < a.Offset && a.Offset < a.End && owed == 0:
		return bad("no boundary")
	}
	for at := range t.respawns {
		if a.From < at && at < a.Offset {
			return bad(fmt.Sprintf("no end at the respawn at %d", at))
		}
	}
	if f.at = a.Offset; f.format == "text" {
		return f.checkText(a)
	}
	if !bytes.Equal(*a.Data, t.stream[a.From:a.Offset]) {
		return bad("other bytes")
	}
	return nil
}

// checkText compares the text of an answer with what the test wrote.
func (f *follower) checkText(a *SinceResult) error {
	t := &f.s.truth
	from := []int{f.text}
	if f.text < 0 {
		i, ok := t.index[a.From]
		if !ok || t.places[i].text < 0 {
			return fmt.Errorf("an answer begins at %d, where no frame does", a.From)
		}
		p := t.places[i] // what is left of the log may begin behind its end
		from = []int{p.text, p.text + p.rest}
	}
	for _, k := range from {
		if f.text = k + len(*a.Text); bytes.HasPrefix(t.text[k:], []byte(*a.Text)) {
			return nil
		}
	}
	return fmt.Errorf("[%d, %d): text %.100q, not %.100q", a.From, a.Offset, *a.Text, t.text[from[0]:min(from[0]+len(*a.Text), len(t.text))])
}

func (s *stress) respawns() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth.number
}

// oldestReader reads from what the log begins with.
func oldestReader(s *stress, r *rand.Rand) stressReader {
	return func(ctx context.Context) (bool, error) {
		f := follower{s: s, r: r, format: "text", cursors: true, text: -1}
		for range 3 {
			if _, err := f.read(ctx); err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

// newestReader reads the newest from the beginning on.
func newestReader(s *stress, r *rand.Rand) stressReader {
	return func(ctx context.Context) (bool, error) {
		zero := uint64(0)
		q := SinceRequest{Since: &zero, Format: "text", Keep: "tail", MaxBytes: 1 << r.IntN(18), MaxLines: 1 + r.IntN(1000)}
		if r.IntN(2) == 0 {
			q.Format = "raw"
		}
		a, err := Since(ctx, s, q, time.Now)
		if err != nil {
			return false, err
		}
		first := a.From - a.TruncatedBytes
		if err := s.missing(0, first); err != nil {
			return false, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		t := &s.truth
		i, ok := t.index[a.Offset]
		if a.MissedBytes != first || !ok || (a.Boundary != "") != a.More && t.lost[a.Offset] == 0 || a.Offset > a.End {
			return false, fmt.Errorf("the newest: %+v", a)
		}
		if q.Format == "raw" {
			if n := min(a.Offset-first, uint64(q.MaxBytes)); a.From != a.Offset-n || !bytes.Equal(*a.Data, t.stream[a.From:a.Offset]) {
				return false, fmt.Errorf("the newest %d bytes: %+v", n, a)
			}
			return true, nil
		}
		p := t.places[i]
		if text := t.text[:p.text+p.rest]; !bytes.HasSuffix(text, []byte(*a.Text)) && !bytes.HasSuffix(text[:p.text], []byte(*a.Text)) {
			return false, fmt.Errorf("[%d, %d): the newest text %.100q", a.From, a.Offset, *a.Text)
		}
		return true, nil
	}
}

// somewhere is a place that the log still has, or just had, and that is known.
func (s *stress) somewhere(r *rand.Rand) (offset uint64, ok bool) {
	oldest := s.log.Oldest()
	s.mu.Lock()
	defer s.mu.Unlock()
	places := s.truth.places
	i := sort.Search(len(places), func(i int) bool { return places[i].offset >= oldest })
	if r.IntN(4) > 0 { // where it goes next
		i += r.IntN(min(len(places)-i, 100))
	} else {
		i += r.IntN(len(places) - i)
	}
	return places[i].offset, places[i].state != hash{}
}

func (s *stress) place(offset uint64) stressPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.truth.places[s.truth.index[offset]]
}

// stateReader hydrates the terminal at offsets.
func stateReader(s *stress, r *rand.Rand) stressReader {
	return func(context.Context) (bool, error) {
		offset, ok := s.somewhere(r)
		if !ok {
			return true, nil
		}
		before := s.place(offset) // a resize or a respawn may come now
		term, err := replay.HydrateAt(s.log, offset)
		if err != nil {
			return false, s.evicted(offset, err)
		}
		after, got := s.place(offset), stateHash(term)
		if got != before.state && got != after.state && (got != after.behind || s.log.Oldest() < offset) {
			return false, fmt.Errorf("offset %d, the oldest is %d: another state", offset, s.log.Oldest())
		}
		return true, nil
	}
}

// screenReader reads the screen at offsets.
func screenReader(s *stress, r *rand.Rand) stressReader {
	return func(ctx context.Context) (bool, error) {
		offset, ok := s.somewhere(r)
		if !ok {
			return true, nil
		}
		before := s.place(offset)
		a, err := At(ctx, s, AtRequest{Offset: &offset}, time.Now)
		var refused *Error
		if errors.As(err, &refused) && refused.Code == "not_found.offset" {
			err = store.ErrEvicted
		}
		if err != nil {
			return false, s.evicted(offset, err)
		}
		after, got := s.place(offset), screenHash(&a.ScreenResult)
		if got != before.screen && got != after.screen && (after.behind == hash{} || s.log.Oldest() < offset) {
			return false, fmt.Errorf("offset %d, the oldest is %d: another screen", offset, s.log.Oldest())
		}
		return true, nil
	}
}

// export exports all, again if it came to nothing.
func (s *stress) export(ctx context.Context, q ExportRequest, b *bytes.Buffer) (*ExportResult, error) {
	for {
		b.Reset()
		end := s.log.End().Offset
		result, err := Export(ctx, s, q, b)
		if err == nil {
			return result, s.missing(0, result.From)
		}
		if err := s.evicted(end, err); err != nil {
			return nil, err
		}
	}
}

// rawExports exports the bytes, and compares them piece by piece.
func rawExports(s *stress, _ *rand.Rand) stressReader {
	return func(ctx context.Context) (bool, error) {
		var b bytes.Buffer
		var at, lost uint64
		var wrong error
		q := ExportRequest{Format: "raw", Begin: func(from, _ uint64) error {
			at, lost = from, from // what was evicted
			return nil
		}}
		q.Progress = func(offset uint64) {
			n := uint64(b.Len())
			if n == 0 && offset > at { // a gap, or what retention has taken
				lost += offset - at
				wrong = cmp.Or(wrong, s.missing(at, offset))
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if n > 0 && (at+n != offset || !bytes.Equal(b.Bytes(), s.truth.stream[at:offset])) {
				wrong = cmp.Or(wrong, fmt.Errorf("[%d, %d): %d other bytes", at, offset, n))
			}
			b.Reset()
			at = offset
		}
		result, err := s.export(ctx, q, &b)
		if err = cmp.Or(err, wrong); err == nil && (at != result.Offset || lost != result.MissedBytes) {
			err = fmt.Errorf("ends at %d, with %d bytes missing: %+v", at, lost, result)
		}
		return true, err
	}
}

var (
	stressLine = regexp.MustCompile(`^line (\d+) `)
	stressRule = regexp.MustCompile(`^---- looptape: (?:up to (\d+) bytes from offset (\d+) on are missing|(respawned)|the recording ended) `)
)

// transcripts exports the lines: all that were not cut off, each once, in order, as
// they were written, and a rule for each gap and each respawn.
func transcripts(s *stress, _ *rand.Rand) stressReader {
	return func(ctx context.Context) (bool, error) {
		var b bytes.Buffer
		result, err := s.export(ctx, ExportRequest{Format: "text"}, &b)
		if err != nil {
			return false, err
		}
		r := transcriptReader{s: s, next: -1, lines: s.place(result.From).lines, missing: result.From}
		if rule := fmt.Sprintf("---- looptape: %d bytes in front of offset %d are no longer retained ----\n", result.From, result.From); result.From > 0 && !strings.HasPrefix(b.String(), rule) {
			return false, fmt.Errorf("it begins at %d with %.100q", result.From, b.String())
		}
		for line := range bytes.Lines(b.Bytes()) {
			if err := r.line(string(bytes.TrimSuffix(line, lf))); err != nil {
				return false, err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		t := &s.truth
		if end := t.places[t.index[result.Offset]].lines; t.whole(r.next) < end-1 { // the last one may not be complete
			return false, fmt.Errorf("the lines end at %d of %d", r.next, end)
		}
		least, most := t.begun(result.From+1, result.Offset), t.begun(result.From, result.Offset+1)
		if r.overtaken {
			least = 0
		}
		if r.respawns < least || r.respawns > most || r.missing != result.MissedBytes {
			return false, fmt.Errorf("%d rules for %d to %d respawns, %d bytes missing: %+v", r.respawns, least, most, r.missing, result)
		}
		return true, nil
	}
}

// transcriptReader reads a transcript line by line.
type transcriptReader struct {
	s         *stress
	next      int  // the line that is to come; -1 is any up to lines
	lines     int  // that were begun where the log begins, or goes on
	old       int  // lines below were there before retention took what was next
	joined    bool // the line in front of a gap may go on
	partial   bool // the last line was not complete
	missing   uint64
	respawns  int
	overtaken bool
}

func (r *transcriptReader) line(line string) error {
	if m := stressRule.FindStringSubmatch(line); m != nil {
		return r.rule(m)
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	t := &r.s.truth
	joined := r.joined
	r.joined = false
	n := -1
	if m := stressLine.FindStringSubmatch(line); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	if n < 0 || n >= len(t.lines) || t.torn[n] || n < r.old {
		return nil // a part of a line that was cut off
	}
	if r.next < 0 {
		r.next = max(r.old, min(n, r.lines))
	}
	r.next = t.whole(r.next)
	whole := line == t.lines[n]
	switch {
	case joined && !whole: // parts of two lines
		return nil
	case n != r.next, r.partial, !whole && !strings.HasPrefix(t.lines[n], line):
		return fmt.Errorf("line %.100q where %d should be", line, r.next)
	}
	r.partial = !whole // it is being written: then nothing follows it
	r.next++
	return nil
}

// rule reads a rule line.
func (r *transcriptReader) rule(m []string) error {
	if m[3] != "" {
		r.respawns++
	}
	if m[1] == "" {
		return nil
	}
	lost, _ := strconv.ParseUint(m[1], 10, 64)
	from, _ := strconv.ParseUint(m[2], 10, 64)
	r.missing += lost
	r.joined = true
	if err := r.s.missing(from, from+lost); err != nil {
		return err
	}
	before, behind := r.s.place(from), r.s.place(from+lost)
	r.s.mu.Lock()
	gap := r.s.truth.lost[from]
	r.s.mu.Unlock()
	if gap != lost { // retention took it
		r.old, r.lines, r.next, r.overtaken = max(before.lines, r.next), behind.lines, -1, true
		r.partial = false
	}
	return nil
}

// searches looks for all lines, answer by answer: they come in order, each once, and
// none is left out but where bytes are said to be missing.
func searches(s *stress, r *rand.Rand) stressReader {
	q := SearchRequest{Pattern: "^line "}
	next := -1
	return func(ctx context.Context) (bool, error) {
		q.Limit, q.Scan = 1+r.IntN(5000), 1<<(16+r.IntN(6))
		a, err := Search(ctx, s, q, time.Now)
		if err != nil {
			return false, err
		}
		missed := a.MissedBytes
		if q.Cursor == nil { // that what came before the answer is evicted leaves no hole in it
			missed -= a.From
		}
		if missed > 0 {
			next = -1
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range a.Matches {
			found := stressLine.FindStringSubmatch(m.Line)
			n := len(s.truth.lines)
			if found != nil {
				n, _ = strconv.Atoi(found[1])
			}
			if n >= len(s.truth.lines) || s.truth.torn[n] {
				continue // a part of a line that was cut off
			}
			gone := missed > 0 && n > next // somewhere in this answer
			if next >= 0 && n != s.truth.whole(next) && !gone || !strings.HasPrefix(s.truth.lines[n], m.Line) {
				return false, fmt.Errorf("%.100q where line %d should be: %d of %d bytes", m.Line, next, a.Offset, s.term.Offset())
			}
			next = n + 1
		}
		if q.Cursor = nil; a.More {
			q.Cursor = &a.Cursor
		} else {
			next = -1
		}
		return !a.More, nil
	}
}

// whole is the first line from n on that was not cut off.
func (t *truth) whole(n int) int {
	for t.torn[n] {
		n++
	}
	return n
}

// begun counts the programs that took over within [from, to).
func (t *truth) begun(from, to uint64) (n int) {
	for at, k := range t.respawns {
		if from <= at && at < to {
			n += k
		}
	}
	return n
}
