package main_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// counted are the rows of seq 1 n on cols columns, the cursor's row included.
func counted(n, cols int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, strconv.Itoa(i+1))
	}
	return padded(cols, append(lines, "")...)
}

// seq runs the worked example's program: 2893 digits and 1000 CR LF.
func (r *rig) seq(argv string) (pane string) {
	r.Helper()
	pane = r.s.run(r.c, 20, 4, "/bin/sh", "-c", argv)
	r.s.until(r.c, pane, "done", func(i paneInfo) bool { return i.Offset >= 4893 })
	return pane
}

const example = "seq 1 1000; exec sleep 1000"

// The results and errors that seed 000, section 1 prints.
var workedExample = []struct{ params, want string }{
	{`{"tail":3}`, `{"pane":"p0","screen":"primary","epoch":1,"offset":4893,"cols":20,"rows":4,"bounds":{"oldest":0,"active":997,"end":1001},"start":998,"end":1001,"done":true,"lines":["999                 ","1000                ","                    "]}`},
	{`{"epoch":1,"start":0,"end":1001,"max_rows":2}`, `{"pane":"p0","screen":"primary","epoch":1,"offset":4893,"cols":20,"rows":4,"bounds":{"oldest":0,"active":997,"end":1001},"start":0,"end":1001,"next":2,"done":false,"lines":["1                   ","2                   "]}`},
	{`{"epoch":1,"start":2,"end":1001,"max_rows":2}`, `{"pane":"p0","screen":"primary","epoch":1,"offset":4893,"cols":20,"rows":4,"bounds":{"oldest":0,"active":997,"end":1001},"start":2,"end":1001,"next":4,"done":false,"lines":["3                   ","4                   "]}`},
	{`{"epoch":0,"start":0,"end":10}`, `{"error":{"code":"conflict.epoch","message":"row epoch 0 is no longer current","data":{"screen":"primary","epoch":1,"oldest":0,"end":1001}}}`},
	{`{"epoch":1,"start":990,"end":2000}`, `{"error":{"code":"not_found.rows","message":"rows 1001 to 1999 do not exist yet","data":{"reason":"future","screen":"primary","epoch":1,"oldest":0,"end":1001}}}`},
	{`{"tail":3,"start":0}`, `{"error":{"code":"invalid_params.rows","message":"tail cannot be combined with epoch, start or end","data":{"param":"tail","reason":"exclusive"}}}`},
	{`{"tail":1}`, `{"pane":"p0","screen":"primary","epoch":1,"offset":4893,"cols":20,"rows":4,"bounds":{"oldest":0,"active":997,"end":1001},"start":1000,"end":1001,"done":true,"lines":["                    "]}`},
}

// caseExample is case 1.
func caseExample(r *rig) {
	pane := r.seq(example)
	for _, e := range workedExample {
		params := obj{}
		if err := json.Unmarshal([]byte(e.params), &params); err != nil {
			r.Fatal(err)
		}
		params["pane"] = pane
		if got := r.d.call(r, nobody, "pane.capture_rows", params).text; got != e.want {
			r.Errorf("%s:\n%s instead of\n%s", e.params, got, e.want)
		}
	}
	lines, pages := r.all(nobody, obj{"pane": pane, "max_rows": 100})
	if len(pages) != 11 {
		r.Errorf("%d pages", len(pages))
	}
	r.equal("all rows", lines, counted(1000, 20))
}

// caseScreen is case 2.
func caseScreen(r *rig) {
	pane := r.seq(example)
	var screen struct {
		Offset uint64
		Text   string
	}
	if err := json.Unmarshal([]byte(r.call("pane.capture", obj{"pane": pane}).text), &screen); err != nil {
		r.Fatal(err)
	}
	p := r.rows(obj{"pane": pane, "tail": 1})
	p = r.rows(obj{"pane": pane, "epoch": p.Epoch, "start": p.Bounds.Active, "end": p.Bounds.End})
	if p.Offset != screen.Offset {
		r.Fatalf("as of %d and of %d", p.Offset, screen.Offset)
	}
	r.equal("the screen", p.Lines, strings.Split(screen.Text, "\n"))
	r.equal("the screen", p.Lines, counted(1000, 20)[997:])
}

// caseGraphemes is case 3.
func caseGraphemes(r *rig) {
	const family = "\U0001F468\u200D\U0001F469\u200D\U0001F467"
	p := r.feed(20, 12, nil)
	p.write(r.canary + "\r\n" +
		"\u00E9\r\n" + "e\u0301\r\n" + "漢字\r\n" + family + "\r\n" + "a\tb\r\n" + "\"\\\r\n" +
		"\u00E9e\u0301漢字" + family + "\t\"\\<>\r\n" +
		"0123456789012345678漢x\r\n" + "\u2028\u2029\uFFFD~")
	pad := func(text string, width int) string { return text + strings.Repeat(" ", 20-width) }
	want := []string{
		pad(r.canary, 14),
		pad("\u00E9", 1), pad("e\u0301", 1), pad("漢字", 4), pad(family, 2), pad("a       b", 9), pad(`"\`, 2),
		pad("\u00E9e\u0301漢字"+family+strings.Repeat(" ", 8)+`"\<>`, 20),
		"0123456789012345678 ", // the wide character does not fit the last column
		pad("漢x", 3),
	}
	var page rowsPage
	p.untouched(func() { page = r.rows(obj{"pane": p.pane, "tail": 12}) })
	r.equal("rows", page.Lines[:len(want)], want)
	// Separators have no width of their own and no place in a row; what stands
	// for them is plain text all the same.
	if last := page.Lines[len(want)]; !strings.HasSuffix(strings.TrimRight(last, " "), "\uFFFD~") {
		r.Errorf("the last row: %q", last)
	}
	for i := 0; i < len(page.text); i++ {
		if page.text[i] == '\\' {
			if i++; page.text[i] != '"' && page.text[i] != '\\' {
				r.Fatalf("an escape that JSON does not require: %.20q", page.text[i-1:])
			}
		}
	}
}

// caseSequences is case 4.
func caseSequences(r *rig) {
	p := r.feed(20, 5, nil)
	p.write("gone\x1b[2J\x1b[H" + r.canary + "\r\n" +
		"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[m\r\n" +
		"\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\\r\n" +
		"\x1b]2;a title\x07titled\x1bPq#0~\x1b\\\r\n")
	var page rowsPage
	p.untouched(func() { page = r.rows(obj{"pane": p.pane}) })
	r.equal("rows", page.Lines, padded(20, r.canary, "red rgb", "link", "titled", ""))
	p.write("\x1b[2J")
	r.equal("rows after a clear", r.rows(obj{"pane": p.pane}).Lines, padded(20, "", "", "", "", ""))
}

// caseBusy is case 5. The rows of seq are numbered, so that a row which is not
// whole, or not in its place, shows.
func caseBusy(r *rig) {
	pane := r.s.run(r.c, 20, 4, "seq", "1", "1000000000000")
	r.s.until(r.c, pane, "writing", func(i paneInfo) bool { return i.Offset > 4893 })
	params := obj{"pane": pane, "tail": 50}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { r.consistent(r.d.call(r, nobody, "pane.capture_rows", params).text, 0) })
	}
	all.Wait()
	for range 100 { // connections
		all.Go(func() {
			c, err := dial(r.s.dir)
			if err != nil {
				r.Error(err)
				return
			}
			defer c.Close()
			offset := uint64(0)
			for range 10 {
				raw, err := c.Call(r.s.ctx, "pane.capture_rows", params)
				if err != nil {
					r.Error(err)
					return
				}
				offset = r.consistent(string(raw), offset)
			}
		})
	}
	all.Wait()
}

// consistent checks an answer with the newest 50 rows of a pane that runs seq,
// not older than offset, and returns its offset.
func (r *rig) consistent(text string, offset uint64) uint64 {
	var p rowsPage
	if err := json.Unmarshal([]byte(text), &p); err != nil || len(p.Lines) != 50 {
		r.Errorf("%.300s: %v", text, err)
		return offset
	}
	if !p.Done || p.Start+50 != p.End || p.End != p.Bounds.End || p.Bounds.End-p.Bounds.Active != 4 || p.Offset < offset {
		r.Errorf("behind %d: %.300s", offset, text)
	}
	if bad := misnumbered(p); bad != "" {
		r.Error(bad)
	}
	return p.Offset
}

// misnumbered says which row of a page of seq's is not the line that belongs
// there. The last row of the screen may hold the beginning of its line.
func misnumbered(p rowsPage) string {
	for i, line := range p.Lines {
		row := p.Start + uint64(i)
		want := fmt.Sprintf("%-*d", p.Cols, row+1)
		if line != want && (row != p.Bounds.End-1 || len(line) != len(want) || !strings.HasPrefix(want, strings.TrimRight(line, " "))) {
			return fmt.Sprintf("row %d is %q, not %q", row, line, want)
		}
	}
	return ""
}

// caseOutrun is case 6: first with a pane that writes between two pages, then
// with one that never stops.
func caseOutrun(r *rig) {
	p := r.feed(20, 4, obj{"scrollback": 100})
	line := func(n int) string { return fmt.Sprintf("%s %d\r\n", r.canary[:10], n) }
	write := func(from, to int) {
		var text strings.Builder
		for n := from; n < to; n++ {
			text.WriteString(line(n))
		}
		p.write(text.String())
	}
	write(0, 200) // row n holds line n; rows 97 to 200 are retained
	first := r.rows(obj{"pane": p.pane, "max_rows": 10})
	if first.Bounds != (rowBounds{97, 197, 201}) || first.Start != 97 || first.End != 201 {
		r.Fatalf("%.300s", first.text)
	}
	write(200, 205) // rows 102 to 205
	pinned := obj{"pane": p.pane, "epoch": first.Epoch, "start": *first.Next, "end": first.End, "max_rows": 10}
	second := r.rows(pinned)
	if second.Start != 107 || second.Lines[0] != padded(20, strings.TrimSpace(line(107)))[0] {
		r.Fatalf("%.300s", second.text)
	}
	write(205, 300) // rows 197 to 300
	pinned["start"] = *second.Next
	e := r.fails("not_found.rows", `{"reason":"evicted","screen":"primary","epoch":1,"oldest":197,"end":301}`, "pane.capture_rows", pinned)
	if e.Message != "rows 117 to 196 are no longer retained" {
		r.Error(e.Message)
	}
	pinned["start"] = 197 // explicitly
	rest := r.rows(pinned)
	r.equal("what is left of the selection", rest.Lines, padded(20, strings.TrimSpace(line(197)), strings.TrimSpace(line(198)), strings.TrimSpace(line(199)), strings.TrimSpace(line(200))))

	type ids struct{ Session, Pane string }
	session := call[ids](r.s, r.c, "session.create", obj{}).Session
	busy := call[ids](r.s, r.c, "window.create", obj{"session": session, "cols": 20, "rows": 4, "scrollback": 3000, "argv": []string{"seq", "1", "1000000000000"}}).Pane
	r.s.until(r.c, busy, "writing", func(i paneInfo) bool { return i.Offset > 40000 })
	evicted := 0
	for rounds, deadline := 0, time.Now().Add(patience); rounds < 5 || evicted == 0; rounds++ {
		if evicted += r.outrun(busy); time.Now().After(deadline) {
			r.Fatalf("in %d rounds the reader was outrun %d times", rounds, evicted)
		}
	}
}

// outrun reads a pinned range of a pane that runs seq, and counts how often it
// was outrun. It goes on where the error says.
func (r *rig) outrun(pane string) (evicted int) {
	p := r.rows(obj{"pane": pane, "max_rows": 500})
	start := p.Start
	for {
		if p.Start != start {
			r.Fatalf("a page of %d instead of %d", p.Start, start)
		}
		if bad := misnumbered(p); bad != "" {
			r.Fatal(bad)
		}
		if p.Done {
			return evicted
		}
		start = *p.Next
		a := r.d.call(r, nobody, "pane.capture_rows", obj{"pane": pane, "epoch": p.Epoch, "start": start, "end": p.End, "max_rows": 500})
		if a.err == nil {
			p = r.page(a.text)
			continue
		}
		var gone struct {
			Reason      string
			Epoch       uint32
			Oldest, End uint64
		}
		raw, _ := a.err.Data.(json.RawMessage)
		if err := json.Unmarshal(raw, &gone); err != nil || a.err.Code != "not_found.rows" || gone.Reason != "evicted" || gone.Epoch != p.Epoch || gone.Oldest <= start || gone.End-gone.Oldest != 3004 {
			r.Fatalf("at row %d: %s", start, a.text)
		}
		evicted++
		if gone.Oldest >= p.End {
			return evicted
		}
		start = gone.Oldest
		a = r.d.call(r, nobody, "pane.capture_rows", obj{"pane": pane, "epoch": p.Epoch, "start": start, "end": p.End, "max_rows": 500})
		if a.err != nil { // outrun again
			return evicted
		}
		p = r.page(a.text)
	}
}

// caseHistory is case 7: history does not change, whatever programs may do to
// the screen.
func caseHistory(r *rig) {
	p := r.feed(20, 4, obj{"scrollback": 50})
	var text strings.Builder
	for n := range 30 {
		fmt.Fprintf(&text, "%s %d\r\n", r.canary, n)
	}
	p.write(text.String())
	want := r.plain(text.String(), 20, 4)
	read := func() []string {
		return r.rows(obj{"pane": p.pane, "epoch": 1, "start": 10, "end": 20}).Lines
	}
	r.equal("history", read(), want[10:20])
	for _, more := range []string{
		"more\r\n",
		"\x1b[H\x1b[2J\x1b[Hcleared",
		"\x1b[1;1H\x1b[10L\x1b[10M\x1b[5S\x1b[5T\x1b[?6h\x1b[2;3r\x1b[H\n\n\n\n\x1b[r\x1b[?6l",
		"\x1b[100A\x1bM\x1bM\x1bMup\x1b[1@\x1b[2P\x1b[3X\x1b[1J\x1b[0J\x1b#8",
		"\x1b[4;20H" + "x\r\n\u0301" + "\x1b[5b",
		strings.Repeat("wrapped ", 20) + "\r\n",
	} {
		p.write(more)
		r.equal(fmt.Sprintf("history after %q", more), read(), want[10:20])
	}
	if b := r.rows(obj{"pane": p.pane, "tail": 1}); b.Epoch != 1 || b.Bounds.Oldest > 10 {
		r.Errorf("not what the case is about: %.300s", b.text)
	}
}
