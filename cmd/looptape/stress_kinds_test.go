package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"looptape/cmd/internal/wire"
)

// stressReader reads once, and reports whether it has come to the end of what there
// was.
type stressReader func(s *stress, c *wire.Client) (ended bool, err error)

// stressKinds are the kinds of readers.
var stressKinds = []struct {
	name string
	make func(p *stressPane, r *rand.Rand) stressReader
}{
	{"text by cursors", func(p *stressPane, r *rand.Rand) stressReader {
		return (&stressFollower{p: p, r: r, format: "text", cursors: true}).read
	}},
	{"raw by cursors", func(p *stressPane, r *rand.Rand) stressReader {
		return (&stressFollower{p: p, r: r, format: "raw", cursors: true}).read
	}},
	{"raw by offsets", func(p *stressPane, r *rand.Rand) stressReader {
		return (&stressFollower{p: p, r: r, format: "raw"}).read
	}},
	{"rows", stressRows},
	{"screens", stressScreens},
	{"raw exports", stressRawExports},
	{"transcripts", stressTranscripts},
	{"waits", stressWaits},
	{"commands", stressCommands},
}

// stressFollower reads a pane's stream from its first byte on.
type stressFollower struct {
	p       *stressPane
	r       *rand.Rand
	format  string
	cursors bool

	cursor string
	at     uint64
}

func (f *stressFollower) read(s *stress, c *wire.Client) (ended bool, err error) {
	q := obj{"format": f.format, "max_bytes": 1 << f.r.IntN(21), "wait_ms": 50}
	if f.format == "text" {
		q["max_lines"] = 1 + f.r.IntN(100000)
	}
	if f.cursor != "" {
		q["cursor"] = f.cursor
	} else {
		q["pane"], q["since"] = f.p.id, f.at
	}
	a, err := try[sinceAnswer](s.server, c, "pane.capture_since", q)
	if code(err) == "conflict.respawned" {
		f.cursor = ""
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("at %d: %w", f.at, err)
	}
	if a.Missed {
		if a.MissedBytes != a.From-f.at {
			return false, fmt.Errorf("at %d: missed %d bytes up to %d", f.at, a.MissedBytes, a.From)
		}
		if err := s.missing(c, f.p, f.at, a.From); err != nil {
			return false, err
		}
		f.at = a.From
	}
	if err := f.check(&a); err != nil {
		return false, err
	}
	f.at = a.Offset
	if f.cursors {
		f.cursor = a.Cursor
	}
	return a.Closed, nil
}

func (f *stressFollower) check(a *sinceAnswer) error {
	bad := func(what string) error {
		b := *a
		b.Text, b.Data = "", nil
		return fmt.Errorf("at %d: %s: %+v", f.at, what, b)
	}
	begins := f.p.begins[1 : len(f.p.begins)-1]
	from, _ := slices.BinarySearch(begins, a.From+1)
	to, at := slices.BinarySearch(begins, a.Offset)
	switch {
	case a.From != f.at || a.Offset < a.From || a.End < a.Offset || a.Closed && a.Offset != a.End:
		return bad("the answer")
	case f.format == "raw" && !bytes.Equal(a.Data, f.p.bytes(a.From, a.Offset)), f.format == "text" && a.Text != f.p.text(a.From, a.Offset):
		return bad("something else")
	case from < to:
		return bad(fmt.Sprintf("no end at the respawn at %d", begins[from]))
	case a.Boundary != "" && (!at || a.Boundary != "respawn" || !a.More || a.Closed):
		return bad("the boundary")
	case a.Boundary == "" && at && a.From < a.Offset && a.Offset < a.End:
		return bad("no boundary")
	}
	return nil
}

// stressRows reads the rows that a pane retains, page by page, until something makes
// them others.
func stressRows(p *stressPane, r *rand.Rand) stressReader {
	return func(s *stress, c *wire.Client) (bool, error) {
		q := obj{"pane": p.id, "max_rows": 1 + r.IntN(10000), "max_bytes": 16 << 20}
		var rows []string
		for {
			a, err := try[struct {
				Epoch uint32
				End   uint64
				Next  *uint64
				Lines []string
			}](s.server, c, "pane.capture_rows", q)
			if code(err) == "conflict.epoch" || code(err) == "not_found.rows" {
				break // what was read so far stays true
			}
			if err != nil {
				return false, err
			}
			rows = append(rows, a.Lines...)
			if a.Next == nil {
				break
			}
			q["epoch"], q["start"], q["end"] = a.Epoch, *a.Next, a.End
		}
		for i := range rows {
			rows[i] = strings.TrimRight(rows[i], " ")
		}
		for len(rows) > 0 && rows[len(rows)-1] == "" {
			rows = rows[:len(rows)-1]
		}
		first := slices.IndexFunc(rows, func(row string) bool { return p.find(row) >= 0 })
		if first < 0 {
			return true, nil // nothing that can be told apart
		}
		k := p.find(rows[first]) - first
		for i, row := range rows {
			if want, _ := p.line(k + i); row != want && (i < len(rows)-1 || !strings.HasPrefix(want, row)) {
				return false, fmt.Errorf("row %d of %d is %q, not %q", i, len(rows), row, want)
			}
		}
		return true, nil
	}
}

// stressScreens reads the screen at offsets.
func stressScreens(p *stressPane, r *rand.Rand) stressReader {
	return func(s *stress, c *wire.Client) (bool, error) {
		info, err := try[paneInfo](s.server, c, "pane.get", obj{"pane": p.id})
		if err != nil {
			return false, err
		}
		offset := info.Oldest + r.Uint64N(info.Offset-info.Oldest+1)
		if r.IntN(2) == 0 { // what goes next
			offset = info.Oldest + r.Uint64N(min(info.Offset-info.Oldest, 1<<16)+1)
		}
		a, err := try[struct{ Text string }](s.server, c, "pane.capture_at", obj{"pane": p.id, "offset": offset})
		if code(err) == "not_found.offset" {
			return true, s.missing(c, p, offset, offset+1)
		}
		if err != nil || slices.Contains(p.begins, offset) { // there are two screens
			return true, err
		}
		begin := p.begins[p.program(offset)]
		if n := (offset - begin) / stressLine; n > 30 {
			begin += (n - 30) * stressLine
		}
		want := strings.Split(p.text(begin, offset), "\n")
		want = want[max(0, len(want)-24):]
		for i, row := range strings.Split(a.Text, "\n") {
			if row = strings.TrimRight(row, " "); i < len(want) && row != want[i] || i >= len(want) && row != "" {
				return false, fmt.Errorf("offset %d: row %d is %q, of %q", offset, i, row, want)
			}
		}
		return true, nil
	}
}

// stressRawExports exports the bytes.
func stressRawExports(p *stressPane, _ *rand.Rand) stressReader {
	return func(s *stress, c *wire.Client) (bool, error) {
		data, a, err := s.stream(c, p, "raw")
		if code(err) == "not_found.evicted" {
			return true, nil // all that there was when it began
		}
		if err == nil {
			err = s.missing(c, p, 0, a.From)
		}
		at, missed := a.From, a.From
		for err == nil && len(data) > 0 {
			n := common(data, p.bytes(at, min(at+uint64(len(data)), a.Offset)))
			at, data = at+uint64(n), data[n:]
			if len(data) > 0 { // retention overtook it
				behind := p.sync(data)
				// The first bytes behind what is missing may be those that would have come.
				err = s.missing(c, p, at, behind-min(behind, stressLine))
				missed += behind - at
				at = behind
			}
		}
		if err == nil && (at+a.MissedBytes-missed != a.Offset || missed > a.MissedBytes) {
			err = fmt.Errorf("it ends at %d, with %d bytes missing: %+v", at, missed, a)
		}
		return true, err
	}
}

var stressSync = regexp.MustCompile(`\n(\d{15})\r`)

// sync is the offset at which data begins, found by the first number in it.
func (p *stressPane) sync(data []byte) uint64 {
	m := stressSync.FindSubmatchIndex(data)
	if m == nil {
		return p.end() - uint64(len(data))
	}
	k := p.find(string(data[m[2]:m[3]]))
	_, i := p.line(k)
	return p.begins[i] + uint64(k-p.lines[i])*stressLine - uint64(m[2])
}

var stressRule = regexp.MustCompile(`^---- looptape: (?:up to (\d+) bytes from offset (\d+) on are missing|(respawned)|the recording ended) `)

// stressTranscripts exports the lines.
func stressTranscripts(p *stressPane, _ *rand.Rand) stressReader {
	return func(s *stress, c *wire.Client) (bool, error) {
		data, a, err := s.stream(c, p, "text")
		if code(err) == "not_found.evicted" {
			return true, nil
		}
		if err == nil {
			err = s.missing(c, p, 0, a.From)
		}
		if err != nil {
			return false, err
		}
		t := stressTranscript{p: p, from: a.From, next: -1, most: p.lineAt(a.From) + 2}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSuffix(line, "\n"); t.take(line) != nil {
				return false, fmt.Errorf("from %d: %w", a.From, t.err)
			}
		}
		for _, gap := range t.gaps {
			if err := s.missing(c, p, gap[0], gap[1]); err != nil {
				return false, err
			}
		}
		if a.Offset > a.From && t.next >= 0 && t.next < p.lineAt(a.Offset-1)-1 || t.missed+a.From != a.MissedBytes {
			return false, fmt.Errorf("it ends at line %d, %d bytes missing: %+v", t.next, t.missed, a)
		}
		return true, nil
	}
}

// stressTranscript reads a transcript line by line.
type stressTranscript struct {
	p        *stressPane
	next     int // the line that is to come; -1 is any from least to most
	least    int
	most     int
	program  int // that wrote the last line
	respawns int // rules since then
	from     uint64
	missed   uint64
	gaps     [][2]uint64
	err      error
}

func (t *stressTranscript) take(line string) error {
	rule := stressRule.FindStringSubmatch(line)
	switch {
	case rule != nil && rule[1] != "":
		lost, _ := strconv.ParseUint(rule[1], 10, 64)
		from, _ := strconv.ParseUint(rule[2], 10, 64)
		t.missed += lost
		t.gaps = append(t.gaps, [2]uint64{from, from + lost})
		t.from, t.next, t.least, t.most = from+lost, -1, max(t.next-1, 0), t.p.lineAt(from+lost)+2
		return nil
	case rule != nil:
		if rule[3] != "" {
			t.respawns++
		}
		return nil
	}
	k := t.p.find(line)
	if t.next < 0 {
		if k < 0 {
			return nil // a part of one
		}
		if t.next = k; k < t.least || k > t.most {
			t.err = fmt.Errorf("line %q is number %d, not %d to %d", line, k, t.least, t.most)
			return t.err
		}
		t.respawns = 0
		_, t.program = t.p.line(k)
	}
	want, program := t.p.line(t.next)
	// What was history where the export begins, or goes on, has no rules.
	least, most := 0, 0
	for _, begin := range t.p.begins[t.program+1 : program+1] {
		if begin > t.from {
			least++
		}
		if begin >= t.from {
			most++
		}
	}
	if !strings.HasPrefix(want, line) || t.respawns < least || t.respawns > most {
		t.err = fmt.Errorf("line %q behind %d respawns, where %q should be behind %d", line, t.respawns, want, least)
	}
	t.next, t.respawns, t.program = t.next+1, 0, program
	return t.err
}
