package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"looptape/cmd/internal/wire"
)

// rig is what a conformance case runs on: a daemon of its own, a way to call it,
// and a connection of the owner's for what the case is not about.
type rig struct {
	*testing.T
	s      *server
	c      *wire.Client
	d      driver
	config string // configuration directory of callers
	canary string // printed by the panes of the case, and found in results only

	mu       sync.Mutex
	sessions map[caller]*mcp.ClientSession
	told     []string // events, as JSON
	heard    sync.WaitGroup
	logs     []string // and events, of daemons that have ended
}

func newRig(t *testing.T, d driver) *rig {
	s := newServer(t)
	r := &rig{
		T: t, s: s, c: s.client(), d: d, config: t.TempDir(),
		canary:   fmt.Sprintf("CANARY%08X", rand.Uint32()),
		sessions: map[caller]*mcp.ClientSession{},
	}
	r.subscribe()
	return r
}

// subscribe follows the events of the daemon, from its first on.
func (r *rig) subscribe() {
	r.Helper()
	c := r.s.client()
	r.heard.Go(func() {
		c.Stream(context.Background(), "events", obj{"after": 0}, func(item json.RawMessage) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, string(item))
			return nil
		})
	})
}

// happened has something happen, and returns what had happened before.
func (r *rig) happened() (told []string) {
	r.Helper()
	id := call[struct{ Session string }](r.s, r.c, "session.create", obj{}).Session
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		told = slices.Clone(r.told)
		r.mu.Unlock()
		if n := len(told); n > 0 && strings.Contains(told[n-1], `"resource":"session:`+id+`"`) {
			return told[:n-1]
		}
		if time.Now().After(deadline) {
			r.Fatalf("the creation of %s is not told of, behind %q", id, told)
		}
	}
}

// restart ends the daemon by a signal and starts the next one.
func (r *rig) restart(sig syscall.Signal) {
	r.Helper()
	if err := r.s.end(sig); err != nil && sig == syscall.SIGTERM {
		r.Fatalf("stop: %v\n%s", err, r.s.log)
	}
	r.heard.Wait()
	r.logs = append(r.logs, r.s.log.String(), strings.Join(r.told, "\n"))
	r.told = nil
	r.s.start()
	r.c = r.s.client()
	r.subscribe()
}

// call runs a verb that is to succeed for somebody without a token.
func (r *rig) call(verb string, params obj) answer {
	r.Helper()
	return r.callAs(nobody, verb, params)
}

func (r *rig) callAs(who caller, verb string, params obj) answer {
	r.Helper()
	a := r.d.call(r, who, verb, params)
	if a.err != nil {
		r.Fatalf("%s %v: %s", verb, params, a.text)
	}
	return a
}

// fails runs a verb that is to fail with an error of that code and that data, as
// JSON.
func (r *rig) fails(code, data, verb string, params obj) *wire.Error {
	r.Helper()
	return r.failsAs(nobody, code, data, verb, params)
}

func (r *rig) failsAs(who caller, code, data, verb string, params obj) *wire.Error {
	r.Helper()
	a := r.d.call(r, who, verb, params)
	if a.err == nil {
		r.Fatalf("%s %v does not fail: %.300s", verb, params, a.text)
	}
	if got, _ := a.err.Data.(json.RawMessage); a.err.Code != code || string(got) != data || a.err.Message == "" {
		r.Fatalf("%s %v fails with %s, not with %s and %s", verb, params, a.text, code, data)
	}
	return a.err
}

// rowsPage is a result of capture_rows.
type rowsPage struct {
	Pane, Screen string
	Epoch        uint32
	Offset       uint64
	Cols, Rows   int
	Bounds       rowBounds
	Start, End   uint64
	Next         *uint64
	Done         bool
	Lines        []string

	text string // as it came
}

// rows reads one page for somebody without a token.
func (r *rig) rows(params obj) rowsPage {
	r.Helper()
	return r.rowsAs(nobody, params)
}

func (r *rig) rowsAs(who caller, params obj) rowsPage {
	r.Helper()
	return r.page(r.callAs(who, "pane.capture_rows", params).text)
}

// page decodes a page and checks what holds for every one: seed 000, sections 2,
// 5 and 6.
func (r *rig) page(text string) (p rowsPage) {
	r.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		r.Fatalf("%.300s: %v", text, err)
	}
	json.Unmarshal([]byte(text), &fields)
	want := []string{"pane", "screen", "epoch", "offset", "cols", "rows", "bounds", "start", "end", "done", "lines"}
	if !p.Done {
		want = append(want, "next")
	}
	for _, name := range want {
		if fields[name] == nil {
			r.Fatalf("no %s: %.300s", name, text)
		}
	}
	b, k := p.Bounds, uint64(len(p.Lines))
	switch {
	case len(fields) != len(want):
		r.Fatalf("more than %v: %.300s", want, text)
	case b.Oldest > b.Active || b.Active+uint64(p.Rows) != b.End || p.Start < b.Oldest || p.End > b.End || p.Start+k > p.End:
		r.Fatalf("the numbers do not agree: %.300s", text)
	case p.Done && p.Start+k != p.End, !p.Done && (*p.Next != p.Start+k || k == 0 || *p.Next >= p.End):
		r.Fatalf("neither the last page nor one with a next: %.300s", text)
	}
	for i, line := range p.Lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, isControl) {
			r.Fatalf("row %d is not plain text: %q", p.Start+uint64(i), line)
		}
	}
	p.text = text
	return p
}

func isControl(c rune) bool { return c < 0x20 || c >= 0x7F && c < 0xA0 }

// all reads a selection to its end, page by page as seed 000, section 1 does, and
// returns its lines. It checks that the pages chain and share their epoch and end.
func (r *rig) all(who caller, params obj) (lines []string, pages []rowsPage) {
	r.Helper()
	for {
		p := r.rowsAs(who, params)
		if n := len(pages); n > 0 && (p.Start != *pages[n-1].Next || p.End != pages[0].End || p.Epoch != pages[0].Epoch) {
			r.Fatalf("page %d does not follow: %.300s", n, p.text)
		}
		pages = append(pages, p)
		lines = append(lines, p.Lines...)
		if p.Done {
			return lines, pages
		}
		next := obj{"pane": p.Pane, "epoch": p.Epoch, "start": *p.Next, "end": p.End}
		for _, limit := range []string{"max_rows", "max_bytes"} {
			if v, ok := params[limit]; ok {
				next[limit] = v
			}
		}
		params = next
	}
}

// equal compares lines with those that are expected.
func (r *rig) equal(what string, got, want []string) {
	r.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			r.Fatalf("%s: line %d is %q, not %q", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		r.Fatalf("%s: %d lines, not %d", what, len(got), len(want))
	}
}

// noLeaks is case 23 for the case that has just run: the canary is in no file
// but the store's, and in no output that is not a pane's text.
func (r *rig) noLeaks() {
	r.Helper()
	seek := func(where string, text []byte) {
		r.Helper()
		if i := bytes.Index(text, []byte(r.canary)); i >= 0 {
			r.Errorf("%s shows what a pane printed: %.200q", where, text[max(0, i-100):])
		}
	}
	seek("doctor", []byte(r.callAs(owner, "doctor", obj{}).text))
	if err := r.s.end(syscall.SIGTERM); err != nil {
		r.Errorf("stop: %v", err)
	}
	seek("the daemon's output", []byte(strings.Join(append(r.logs, r.s.log.String()), "\n")))
	r.heard.Wait()
	seek("events", []byte(strings.Join(r.told, "\n")))
	err := filepath.WalkDir(r.s.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path == filepath.Join(r.s.dir, "store"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		seek(path, text)
		return err
	})
	if err != nil {
		r.Error(err)
	}
}

// program is a pane whose output the test writes, byte by byte: a cat that reads
// a named pipe. Another cat reports what the program is typed.
type program struct {
	r     *rig
	pane  string
	pipe  *os.File
	input string // file of what was typed
	typed []byte // by the test
	wrote int
}

// feed makes such a pane. more are further parameters of window.create.
func (r *rig) feed(cols, rows int, more obj) *program {
	r.Helper()
	dir := r.TempDir()
	p := &program{r: r, input: filepath.Join(dir, "input")}
	name := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		r.Fatal(err)
	}
	pipe, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		r.Fatal(err)
	}
	p.pipe = pipe
	r.Cleanup(func() { pipe.Close() })
	type ids struct{ Session, Pane string }
	params := obj{
		"session": call[ids](r.s, r.c, "session.create", obj{}).Session,
		"cols":    cols, "rows": rows,
		"argv": []string{"sh", "-c", `stty raw -echo; cat "$1" & exec cat >"$2"`, "sh", name, p.input},
	}
	for name, value := range more {
		params[name] = value
	}
	p.pane = call[ids](r.s, r.c, "window.create", params).Pane
	return p
}

// write has the program write text, and waits until the terminal shows it.
func (p *program) write(text string) {
	p.r.Helper()
	if _, err := p.pipe.WriteString(text); err != nil {
		p.r.Fatal(err)
	}
	p.wrote += len(text)
	p.r.s.until(p.r.c, p.pane, "fed", func(i paneInfo) bool { return i.Offset >= uint64(p.wrote) })
}

// fence types something and waits until it arrives: what was typed before it,
// by whomever, has arrived too.
func (p *program) fence() {
	p.r.Helper()
	call[obj](p.r.s, p.r.c, "pane.write", obj{"pane": p.pane, "text": "!"})
	p.arrives("!")
}

// arrives waits until the program has read what was typed before and then text, and
// nothing else.
func (p *program) arrives(text string) {
	p.r.Helper()
	p.typed = append(p.typed, text...)
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		got, err := os.ReadFile(p.input)
		if err == nil && bytes.Equal(got, p.typed) {
			return
		}
		if err == nil && !bytes.HasPrefix(p.typed, got) || time.Now().After(deadline) {
			p.r.Fatalf("the program was typed %q, not %q: %v", got, p.typed, err)
		}
	}
}

// untouched runs reads, none of which may have a side effect as seed 000,
// section 10 has it: no event, no byte to the program, no size change, and nothing
// else that a pane shows of itself.
func (p *program) untouched(reads func()) {
	p.r.Helper()
	p.fence()
	told := len(p.r.happened()) + 1
	before := p.state()
	reads()
	if after := p.state(); after != before {
		p.r.Fatalf("the reads changed the pane from %s to %s", before, after)
	}
	if caused := p.r.happened()[told:]; len(caused) > 0 {
		p.r.Fatalf("the reads caused %q", caused)
	}
	p.fence()
}

// state is everything that can be seen of a pane but how much of it is on disk.
func (p *program) state() string {
	p.r.Helper()
	info := call[obj](p.r.s, p.r.c, "pane.get", obj{"pane": p.pane})
	delete(info, "durable")
	screen := call[obj](p.r.s, p.r.c, "pane.capture", obj{"pane": p.pane})
	return fmt.Sprint(info, screen)
}

// plain is what a terminal shows of plain text: the rows up to the cursor's, or
// the whole first screen.
func (r *rig) plain(text string, cols, rows int) []string {
	r.Helper()
	lines, err := layOut([]byte(text), cols)
	if err != nil {
		r.Fatal(err)
	}
	if n := rows - len(lines); n > 0 {
		lines = append(lines, slices.Repeat([]string{strings.Repeat(" ", cols)}, n)...)
	}
	return lines
}

// padded pads each line to cols columns; lines are of single-width characters.
func padded(cols int, lines ...string) []string {
	for i, line := range lines {
		lines[i] = line + strings.Repeat(" ", cols-utf8.RuneCountInString(line))
	}
	return lines
}
