package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"looptape/cmd/internal/wire"
)

// caseCombinations is case 11, and the order of the checks.
func caseCombinations(r *rig) {
	p := r.feed(20, 4, nil)
	p.write(r.canary)
	p.untouched(func() {
		for _, c := range []struct {
			params        obj
			param, reason string
		}{
			{obj{"tail": 1, "epoch": 1}, "tail", "exclusive"},
			{obj{"tail": 1, "start": 0}, "tail", "exclusive"},
			{obj{"tail": 1, "end": 0}, "tail", "exclusive"},
			{obj{"tail": 1, "start": 5, "end": 4}, "tail", "exclusive"},
			{obj{"start": 0}, "start", "epoch_required"},
			{obj{"end": 0}, "end", "epoch_required"},
			{obj{"start": 5, "end": 4}, "start", "epoch_required"},
			{obj{"epoch": 1, "start": 5, "end": 4}, "end", "order"},
			{obj{"epoch": 7, "start": 5, "end": 4}, "end", "order"}, // before the epoch is looked at
			{obj{"epoch": 1, "start": 900, "end": 800}, "end", "order"},
		} {
			c.params["pane"] = p.pane
			r.fails("invalid_params.rows", fmt.Sprintf(`{"param":%q,"reason":%q}`, c.param, c.reason), "pane.capture_rows", c.params)
		}
		// The epoch comes before the bounds, and the pane before either.
		r.fails("conflict.epoch", `{"screen":"primary","epoch":1,"oldest":0,"end":4}`, "pane.capture_rows", obj{"pane": p.pane, "epoch": 2, "start": 900})
		r.fails("not_found.pane", "", "pane.capture_rows", obj{"pane": "p9", "tail": 1, "start": 0})
	})
}

// caseRanges is case 12.
func caseRanges(r *rig) {
	p := r.feed(20, 4, nil)
	p.write(r.canary)
	p.untouched(func() {
		for _, c := range []struct {
			param string
			bad   []any
		}{
			{"max_rows", []any{0, 10001}},
			{"max_bytes", []any{0, 16777217}},
			{"tail", []any{0, -1, 9007199254740992}},
			{"start", []any{-1, 9007199254740992}},
			{"end", []any{-1}},
			{"epoch", []any{-1, 4294967296}},
		} {
			for _, value := range c.bad {
				// Before the pane is looked for, and before the rules of the selection.
				for _, pane := range []string{p.pane, "p9"} {
					r.fails("invalid_params.range", fmt.Sprintf(`{"param":%q}`, c.param), "pane.capture_rows", obj{"pane": pane, c.param: value})
				}
			}
		}
	})
}

// caseOutside is case 13, with what contract.md, section 6 adds.
func caseOutside(r *rig) {
	p := r.feed(20, 4, obj{"scrollback": 10})
	p.write(strings.Repeat(r.canary+"\r\n", 50)) // rows 37 to 50 are retained
	page := r.rows(obj{"pane": p.pane})
	if page.Bounds != (rowBounds{37, 47, 51}) {
		r.Fatalf("%.300s", page.text)
	}
	p.untouched(func() {
		for _, c := range []struct {
			params          obj
			reason, message string
		}{
			{obj{"end": 52}, "future", "row 51 does not exist yet"},
			{obj{"start": 40, "end": 60}, "future", "rows 51 to 59 do not exist yet"},
			{obj{"start": 52}, "future", ""},
			{obj{"start": 60, "end": 60}, "future", "row 60 is outside the retained rows"},
			{obj{"start": 36}, "evicted", "row 36 is no longer retained"},
			{obj{"start": 0, "end": 51}, "evicted", "rows 0 to 36 are no longer retained"},
			{obj{"start": 3, "end": 5}, "evicted", "rows 3 to 4 are no longer retained"},
			{obj{"start": 36, "end": 60}, "evicted", "row 36 is no longer retained"},
			{obj{"end": 36}, "evicted", ""},
			{obj{"start": 7, "end": 7}, "evicted", "row 7 is outside the retained rows"},
		} {
			c.params["pane"], c.params["epoch"] = p.pane, 1
			e := r.fails("not_found.rows", page.bounds(c.reason), "pane.capture_rows", c.params)
			if c.message != "" && e.Message != c.message {
				r.Errorf("%v: %q, not %q", c.params, e.Message, c.message)
			}
		}
	})
}

// caseEmpty is case 14.
func caseEmpty(r *rig) {
	p := r.feed(20, 4, obj{"scrollback": 10})
	p.write(strings.Repeat(r.canary+"\r\n", 50))
	p.untouched(func() {
		for _, at := range []uint64{37, 40, 47, 51} {
			page := r.rows(obj{"pane": p.pane, "epoch": 1, "start": at, "end": at})
			if len(page.Lines) != 0 || !page.Done || page.Start != at || page.End != at || !strings.Contains(page.text, `"lines":[]`) {
				r.Errorf("at %d: %.300s", at, page.text)
			}
		}
		for _, params := range []obj{{"start": 51}, {"end": 37}} { // the defaults make it empty
			params["pane"], params["epoch"] = p.pane, 1
			if page := r.rows(params); len(page.Lines) != 0 || !page.Done {
				r.Errorf("%v: %.300s", params, page.text)
			}
		}
	})
}

// caseBytes is case 15.
func caseBytes(r *rig) {
	p := r.feed(20, 4, nil)
	row := strings.Repeat("─", 20) // 60 bytes
	p.write(strings.Repeat(row+"\r\n", 10) + r.canary)
	page := r.rows(obj{"pane": p.pane, "max_bytes": 150})
	r.equal("two and a half rows", page.Lines, []string{row, row})
	if page.Done || *page.Next != 2 {
		r.Errorf("%.300s", page.text)
	}
	for _, limit := range []int{120, 179} {
		r.equal("two rows", r.rows(obj{"pane": p.pane, "max_bytes": limit}).Lines, []string{row, row})
	}
	r.equal("one row", r.rows(obj{"pane": p.pane, "max_bytes": 60}).Lines, []string{row})
	r.fails("unsupported.result_size", `{"row":0,"bytes":60}`, "pane.capture_rows", obj{"pane": p.pane, "max_bytes": 59})
	r.fails("unsupported.result_size", `{"row":10,"bytes":20}`, "pane.capture_rows", obj{"pane": p.pane, "tail": 1, "max_bytes": 19})
	lines, _ := r.all(nobody, obj{"pane": p.pane, "max_bytes": 250})
	r.equal("all rows", lines, append(strings.Split(strings.Repeat(row+"\n", 10), "\n")[:10], padded(20, r.canary)...))
	// Of nothing, nothing is too large.
	r.rows(obj{"pane": p.pane, "epoch": 1, "start": 3, "end": 3, "max_bytes": 1})
}

// caseWide is case 16.
func caseWide(r *rig) {
	const cols, n = 65535, 70
	p := r.feed(cols, 4, nil)
	line := func(i int) string { return strings.Repeat(r.canary+fmt.Sprintf("%05d ", i), cols)[:cols] }
	for i := range n { // the screen's last row is full, and the cursor waits at its end
		p.write(line(i))
	}
	grown := peak(r.T, r.s.cmd.Process.Pid)
	check := func(who caller, params obj, most int) {
		r.Helper()
		params["pane"] = p.pane
		lines, pages := r.all(who, params)
		for i, page := range pages {
			if len(page.Lines) != min(most, n-i*most) {
				r.Fatalf("%v: page %d of %d rows", params, i, len(page.Lines))
			}
		}
		if len(lines) != n {
			r.Fatalf("%v: %d rows", params, len(lines))
		}
		for i := range lines {
			if lines[i] != line(i) {
				r.Fatalf("%v: row %d is %.80q", params, i, lines[i])
			}
		}
	}
	check(nobody, obj{}, 4) // 4 x 65535 <= 262144
	check(nobody, obj{"max_bytes": 16777216}, 15)
	check(caller{maxFrame: 64 << 20}, obj{"max_bytes": 16777216, "max_rows": 10000}, 64) // 64 x 65535 <= 2^22
	// A page of 64 rows is 4 MiB of text, of which there are a few copies at once.
	if most := 64; grown() > most<<20 {
		r.Errorf("the daemon grew by %d MiB, more than %d", grown()>>20, most)
	} else {
		r.Logf("the daemon grew by %d MiB", grown()>>20)
	}
}

// peak notes how much memory a process takes; what it returns is by how much the
// largest since is larger, in bytes.
func peak(t *testing.T, pid int) (grown func() int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	value := func(field string) int {
		status, err := os.ReadFile(dir + "status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(status), field+":")
		kib, err := strconv.Atoi(strings.Fields(rest + " x")[0])
		if !ok || err != nil {
			t.Fatalf("no %s: %s", field, status)
		}
		return kib << 10
	}
	if err := os.WriteFile(dir+"clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	from := value("VmRSS")
	return func() int { return max(0, value("VmHWM")-from) }
}

// caseFrame is case 17.
func caseFrame(r *rig) {
	const frame = 4096
	p := r.feed(80, 24, nil)
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "%s %d %s\r\n", r.canary, i, strings.Repeat(`"\`, i%30)) // which JSON escapes
	}
	p.write(text.String())
	want := r.plain(text.String(), 80, 24)
	small := caller{maxFrame: frame}
	lines, pages := r.all(small, obj{"pane": p.pane})
	r.equal("all rows in small frames", lines, want)
	for _, page := range pages {
		r.fits(page, want, frame, len("9999")-1) // of ids that count the calls of a session
	}
	wide := r.feed(5000, 2, nil)
	wide.write(strings.Repeat("x", 4999))
	r.failsAs(small, "unsupported.result_size", `{"row":0,"bytes":5000}`, "pane.capture_rows", obj{"pane": wide.pane})
	if page := r.rowsAs(caller{maxFrame: 2 * frame}, obj{"pane": wide.pane}); len(page.Lines) != 1 {
		r.Errorf("%d rows of 5000 bytes fit 8192", len(page.Lines))
	}
	r.exactFrames(p, want)
}

// envelope is what an answer to a request with a one-digit id has around its
// result.
const envelope = len(`{"id":2,"ok":}` + "\n")

// fits checks that a page is the largest that fits a frame, in which the request's
// id may take slack digits more than one.
func (r *rig) fits(page rowsPage, want []string, frame, slack int) {
	r.Helper()
	size := len(page.text) + envelope
	if size > frame {
		r.Fatalf("an answer of %d bytes: %.300s", size, page.text)
	}
	if page.Done {
		return
	}
	// One more row would not fit, neither with a next nor as the last page.
	raw, err := wire.Marshal(want[*page.Next])
	if err != nil {
		r.Fatal(err)
	}
	more := size + len(",") + len(raw)
	if *page.Next+1 == page.End {
		more -= len(fmt.Sprintf(`"next":%d,`, *page.Next)) + len("false") - len("true")
	} else {
		more += len(strconv.FormatUint(*page.Next+1, 10)) - len(strconv.FormatUint(*page.Next, 10))
	}
	if more+slack <= frame {
		r.Fatalf("one more row would make %d bytes of at most %d: %.300s", more, frame, page.text)
	}
}

// exactFrames asks for a few rows by connections with every limit around their
// size: what fits exactly comes, and one byte less makes it a shorter page.
func (r *rig) exactFrames(p *program, want []string) {
	r.Helper()
	params := obj{"pane": p.pane, "epoch": 1, "start": 200, "end": 245}
	whole := r.rowsAs(caller{maxFrame: 1 << 20}, params)
	size := len(whole.text) + envelope
	for frame := size - 3; frame <= size+3; frame++ {
		c, err := dialFrame(r.s.dir, frame)
		if err != nil {
			r.Fatal(err)
		}
		raw, err := c.Call(r.s.ctx, "pane.capture_rows", params)
		var e *wire.Error
		if errors.As(err, &e) {
			r.Fatalf("a frame of %d: %+v", frame, e)
		}
		page := r.page(string(raw))
		if page.Done != (frame >= size) {
			r.Errorf("a frame of %d for %d bytes: %d rows, done %v", frame, size, len(page.Lines), page.Done)
		}
		r.fits(page, want, frame, 0)
		c.Close()
	}
}

// caseCapture is case 24: pane.capture, by contract.md, section 5.
func caseCapture(r *rig) {
	p := r.feed(100, 50, nil)
	text := strings.Repeat(r.canary+"\r\n", 60) + "the end"
	p.write("\x1b]2;a title\x07" + text + "\x1b[?25l")
	want := strings.Join(r.plain(text, 100, 50)[11:], "\n")
	var screen, other string
	p.untouched(func() {
		a := r.call("pane.capture", obj{"pane": p.pane})
		screen = a.text
		r.screen(a, fmt.Sprintf(`{"pane":%q,"screen":"primary","epoch":1,"offset":%d,"cols":100,"rows":50,"cursor":{"col":7,"row":49,"visible":false},"title":"a title"}`, p.pane, p.wrote), want)
		size := len(screen) + envelope
		data := fmt.Sprintf(`{"bytes":%d,"max_frame":%d}`, size, size-1)
		r.failsAs(caller{maxFrame: size - 1}, "unsupported.result_size", data, "pane.capture", obj{"pane": p.pane})
		r.failsAs(caller{maxFrame: 4096}, "unsupported.result_size", fmt.Sprintf(`{"bytes":%d,"max_frame":4096}`, size), "pane.capture", obj{"pane": p.pane})
		other = r.callAs(caller{maxFrame: size}, "pane.capture", obj{"pane": p.pane}).text
		r.fails("not_found.pane", "", "pane.capture", obj{"pane": "p9"})
		r.fails("invalid_params.missing", `{"param":"pane"}`, "pane.capture", obj{})
	})
	if other != screen {
		r.Errorf("with a frame that just fits: %.300s", other)
	}
	p.write("\x1b[?1049h\x1b[3;5H漢\x1b[?25h")
	rows := padded(100, strings.Split(strings.Repeat("\n", 49), "\n")...)
	rows[2] = "    漢" + strings.Repeat(" ", 94)
	r.screen(r.call("pane.capture", obj{"pane": p.pane}),
		fmt.Sprintf(`{"pane":%q,"screen":"alternate","epoch":2,"offset":%d,"cols":100,"rows":50,"cursor":{"col":6,"row":2,"visible":true},"title":"a title"}`, p.pane, p.wrote),
		strings.Join(rows, "\n"))
}

// screen compares a result of pane.capture: its fields but the text, and the
// text.
func (r *rig) screen(a answer, fields, text string) {
	r.Helper()
	raw, err := wire.Marshal(text)
	if err != nil {
		r.Fatal(err)
	}
	want := fields[:len(fields)-1] + `,"text":` + string(raw) + "}"
	if a.text != want || !json.Valid([]byte(a.text)) {
		r.Fatalf("%s instead of\n%s", a.text, want)
	}
}
