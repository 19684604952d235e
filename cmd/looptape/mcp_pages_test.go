package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPFrame: with a small max_frame results are small, and everything can
// still be read.
func TestMCPFrame(t *testing.T) {
	s := newServer(t)
	owner := s.client()
	pane := s.run(owner, 80, 24, "/bin/sh", "-c", "seq 1 2000; read x")
	s.until(owner, pane, "written", func(p paneInfo) bool { return p.Offset == 9*3+90*4+900*5+1001*6 })
	c := s.mcp("--max-frame", "4096")
	args, lines := obj{"pane": pane}, []string{}
	for {
		raw := tool[json.RawMessage](t, c, "pane_dcapture__rows", args)
		var r mcpRows
		if err := json.Unmarshal(raw, &r); err != nil || len(raw) > 4096 {
			t.Fatalf("%d bytes, %v", len(raw), err)
		}
		lines = append(lines, r.Lines...)
		if r.Next == nil {
			break
		}
		args = obj{"pane": pane, "epoch": r.Epoch, "start": *r.Next, "end": r.End}
	}
	for i, line := range lines[:2000] {
		if strings.TrimSpace(line) != fmt.Sprint(i+1) {
			t.Fatalf("row %d is %q", i, line)
		}
	}
	if text, pages := exportByPages(t, c, obj{"pane": pane}); text != numbers() || pages < 3 {
		t.Errorf("%d pages, %d bytes", pages, len(text))
	}
	if raw, _ := exportByPages(t, c, obj{"pane": pane, "format": "raw"}); raw != strings.ReplaceAll(numbers(), "\n", "\r\n") {
		t.Errorf("%d bytes", len(raw))
	}
	wantTool(t, c, "unsupported.result_size", "manifest", obj{})
}

func numbers() string {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// exportByPages reads a whole export by pages of pane_dexport.
func exportByPages(t *testing.T, c *mcp.ClientSession, args obj) (text string, pages int) {
	t.Helper()
	type page struct {
		From, To, Offset uint64
		Next             *uint64
		Done             bool
		Text             string
		Data             []byte
	}
	for {
		p := tool[page](t, c, "pane_dexport", args)
		pages++
		if p.Offset != uint64(len(text)) || p.Done != (p.Next == nil) {
			t.Fatalf("page %+v after %d bytes", p, len(text))
		}
		text += p.Text + string(p.Data)
		if p.Done {
			return text, pages
		}
		if *p.Next != uint64(len(text)) {
			t.Fatalf("the page ends at %d, not %d", len(text), *p.Next)
		}
		args["offset"], args["began"], args["to"] = *p.Next, p.From, p.To
	}
}

// TestMCPExport: the pages of an export are one export, whatever is written and
// however the pages are cut; of text a character is not cut.
func TestMCPExport(t *testing.T) {
	s := newServer(t)
	owner := s.client()
	pane := s.run(owner, 40, 5, "/bin/sh", "-c", `printf 'ä€😀\n%.0s' 1 2 3 4 5 6 7 8 9; while read x; do echo "more $x"; done`)
	s.until(owner, pane, "written", func(p paneInfo) bool { return p.Offset == 9*(9+2) })
	c := s.mcp()
	first := tool[struct{ From, To uint64 }](t, c, "pane_dexport", obj{"pane": pane, "max_bytes": 1})
	if first.From != 0 || first.To != 99 {
		t.Fatalf("%+v", first)
	}
	tool[obj](t, c, "pane_dwrite", obj{"pane": pane, "text": "a\nb\nc\nd\ne\nf\n"})
	s.until(owner, pane, "written on", func(p paneInfo) bool { return p.Offset == 99+6*(3+8) })
	want := strings.Repeat("ä€😀\n", 9)
	for _, n := range []int{1, 2, 3, 4, 5, 7, 1000} {
		text, pages := exportByPages(t, c, obj{"pane": pane, "to": 99, "max_bytes": n})
		if text != want || n < 3 && pages != 9*4 {
			t.Errorf("by %d bytes: %d pages, %q", n, pages, text)
		}
	}
	if text, _ := exportByPages(t, c, obj{"pane": pane, "format": "raw", "from": 99, "max_bytes": 7}); len(text) != 6*(3+8) || !strings.HasPrefix(text, "a\r\n") {
		t.Errorf("from 99 on: %q", text)
	}
	if text, pages := exportByPages(t, c, obj{"pane": pane, "from_time": "-1h", "to_time": "-0s", "max_bytes": 9}); !strings.HasPrefix(text, want+"a") || pages < 10 {
		t.Errorf("of the last hour: %d pages, %q", pages, text)
	}
	wantTool(t, c, "invalid_params.range", "pane_dexport", obj{"pane": pane, "max_bytes": 0})
	wantTool(t, c, "invalid_params.choice", "pane_dexport", obj{"pane": pane, "format": "gif", "max_bytes": 0})
	wantTool(t, c, "not_found.pane", "pane_dexport", obj{"pane": "p9", "offset": -1})
	wantTool(t, c, "not_found.evicted", "pane_dexport", obj{"pane": pane, "began": 5})
}

// TestMCPEvents: events come in batches, each behind the number of the one
// before, and as many as are asked for or fit.
func TestMCPEvents(t *testing.T) {
	s := newServer(t)
	owner := s.client()
	c := s.mcp()
	type batch struct {
		Events []struct {
			Seq      uint64
			Event    string
			Resource string
		}
		After  uint64
		Missed *uint64
		More   bool
	}
	begin := tool[batch](t, c, "events", obj{})
	if len(begin.Events) != 0 || begin.More || *begin.Missed != 0 {
		t.Errorf("without after: %+v", begin)
	}
	for range 10 {
		call[any](s, owner, "session.create", obj{"name": strings.Repeat("n", 500)})
	}
	small := s.mcp("--max-frame", "4096")
	for _, test := range []struct {
		c     *mcp.ClientSession
		limit int
		calls int // at least
	}{{c, 3, 4}, {c, 100, 1}, {small, 100, 2}} {
		after, calls := begin.After, 0
		var seen []string
		for {
			b := tool[batch](t, test.c, "events", obj{"after": after, "limit": test.limit})
			calls++
			for _, e := range b.Events {
				if e.Seq <= after || e.Event != "created" {
					t.Errorf("event %+v after %d", e, after)
				}
				after = e.Seq
				seen = append(seen, e.Resource)
			}
			if after = b.After; !b.More {
				break
			}
		}
		want := "session:s0 session:s1 session:s2 session:s3 session:s4 session:s5 session:s6 session:s7 session:s8 session:s9"
		if strings.Join(seen, " ") != want || calls < test.calls {
			t.Errorf("by %d: %d calls, %v", test.limit, calls, seen)
		}
	}
	wantTool(t, c, "invalid_params.range", "events", obj{"limit": 0})
}
