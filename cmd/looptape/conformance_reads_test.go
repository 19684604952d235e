package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"looptape/cmd/internal/manifest"
)

// read is one call that only reads, and whether it fails.
type read struct {
	verb   string
	params obj
	fails  bool
}

// selections are all forms of a selection of capture_rows, those that fail too.
func selections(page rowsPage) (reads []read) {
	b := page.Bounds
	for _, good := range []obj{
		{}, {"tail": 1}, {"tail": 1000000}, {"epoch": page.Epoch}, {"epoch": page.Epoch, "start": b.Active},
		{"epoch": page.Epoch, "end": b.End}, {"epoch": page.Epoch, "start": b.Oldest, "end": b.Active}, {"epoch": page.Epoch, "start": b.End, "end": b.End},
		{"max_rows": 1}, {"max_bytes": page.Cols * 4},
	} {
		reads = append(reads, read{"pane.capture_rows", good, false})
	}
	for _, bad := range []obj{
		{"tail": 1, "epoch": page.Epoch}, {"start": b.Oldest}, {"end": b.End}, {"epoch": page.Epoch, "start": b.End, "end": b.Oldest},
		{"epoch": page.Epoch + 1}, {"epoch": 0, "start": 0, "end": 1}, {"epoch": page.Epoch, "end": b.End + 1}, {"epoch": page.Epoch, "start": b.End + 7},
		{"max_bytes": 1}, {"max_rows": 0}, {"tail": 0}, {"epoch": -1}, {"pane": "p99"},
	} {
		reads = append(reads, read{"pane.capture_rows", bad, true})
	}
	for _, r := range reads {
		if r.params["pane"] == nil {
			r.params["pane"] = page.Pane
		}
	}
	return reads
}

// otherReads are calls of the other verbs that only read.
func otherReads(pane string) []read {
	return []read{
		{"pane.capture", obj{"pane": pane}, false},
		{"pane.capture", obj{"pane": "p99"}, true},
		{"pane.capture_since", obj{"pane": pane}, false},
		{"pane.capture_since", obj{"pane": pane, "since": 0, "format": "raw"}, false},
		{"pane.capture_since", obj{"pane": pane, "since": 0, "max_bytes": 7}, false},
		{"pane.capture_since", obj{"pane": pane, "since": 1000000, "wait_ms": 10}, false},
		{"pane.capture_since", obj{"cursor": "cs1:AAAA"}, true},
		{"pane.capture_at", obj{"pane": pane, "offset": 3}, false},
		{"pane.capture_at", obj{"pane": pane}, true},
		{"pane.search", obj{"pane": pane, "pattern": "[a-z]+"}, false},
		{"pane.search", obj{"pane": pane, "pattern": "("}, true},
		{"pane.wait", obj{"pane": pane, "since": 0, "pattern": "[A-Z]", "timeout_ms": 1000}, false},
		{"pane.wait", obj{"pane": pane, "pattern": "never", "timeout_ms": 20}, false},
		{"pane.wait", obj{"pane": pane, "pattern": "("}, true},
		{"pane.commands", obj{"pane": pane}, false},
		{"pane.commands", obj{"pane": "p99"}, true},
		{"pane.get", obj{"pane": pane}, false},
		{"pane.get", obj{"pane": "p99"}, true},
		{"pane.list", obj{}, false},
		{"pane.list", obj{"state": "asleep"}, true},
		{"window.list", obj{}, false},
		{"session.list", obj{}, false},
		{"doctor", obj{}, false},
		{"manifest", obj{}, false},
		{"skill", obj{}, false},
	}
}

// streamed are the verbs that only read and stream: they are called by the wire.
var streamedReads = []read{
	{"pane.export", obj{"format": "text"}, false},
	{"pane.export", obj{"format": "raw"}, false},
	{"pane.export", obj{"format": "asciicast"}, false},
	{"pane.export", obj{"format": "tape"}, true},
	{"events", obj{"wait_ms": 0}, false},
}

// perform runs reads by the rig's way, each as often as times says, and checks
// whether they fail.
func (r *rig) perform(reads []read, times int) {
	r.Helper()
	for _, c := range reads {
		for range times {
			a := r.d.call(r, nobody, c.verb, c.params)
			if (a.err != nil) != c.fails {
				r.Fatalf("%s %v: %.300s", c.verb, c.params, a.text)
			}
		}
	}
}

// performFast is perform on one connection, for what streams too.
func (r *rig) performFast(reads []read, times int) {
	r.Helper()
	for _, c := range reads {
		for range times {
			result, err := r.c.Stream(r.s.ctx, c.verb, c.params, ignore)
			if (err != nil) != c.fails {
				r.Fatalf("%s %v: %.300s, %v", c.verb, c.params, result, err)
			}
		}
	}
}

// everyRead performs all reads of a pane, those that the rig's way can make by it
// unless fast, and makes sure that the tables above name every verb that only reads.
func (r *rig) everyRead(page rowsPage, fast bool) {
	r.Helper()
	rows, others := selections(page), otherReads(page.Pane)
	var streams []read
	for _, s := range streamedReads {
		params := obj{}
		for name, value := range s.params {
			params[name] = value
		}
		if s.verb != "events" {
			params["pane"] = page.Pane
		}
		streams = append(streams, read{s.verb, params, s.fails})
	}
	named := map[string]bool{}
	for _, list := range [][]read{rows, others, streams} {
		for _, c := range list {
			named[c.verb] = true
		}
	}
	for _, v := range manifest.Verbs {
		if (v.Right == manifest.Read || v.Right == manifest.None) && !v.Binary && !named[v.Name] {
			r.Errorf("%s is not among the reads of the test", v.Name)
		}
	}
	if !fast {
		r.perform(append(rows, others...), 1)
	}
	r.performFast(append(streams, others...), 1)
	r.performFast(rows, 50)
}

func ignore(json.RawMessage) error { return nil }

// caseEvents is case 21.
func caseEvents(r *rig) {
	lines := r.followEvents()
	p := r.feed(20, 4, obj{"scrollback": 5})
	p.write(strings.Repeat(r.canary+"\r\n", 20))
	page := r.rows(obj{"pane": p.pane})
	bell := func() string {
		p.write("\a")
		return fmt.Sprintf(`"event":"bell","resource":"pane:%s","data":{"offset":%d}`, p.pane, p.wrote)
	}
	for want := bell(); !strings.Contains(<-lines, want); {
	}
	r.everyRead(page, false)
	if want, got := bell(), <-lines; !strings.Contains(got, want) {
		r.Fatalf("reads caused %s", got)
	}
}

// followEvents starts "looptape events --json" and returns the lines that it
// prints, until the daemon ends.
func (r *rig) followEvents() <-chan string {
	r.Helper()
	cmd := exec.CommandContext(r.s.ctx, "looptape", "events", "--after", "0", "--json")
	cmd.Env = r.env(nobody)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	lines := make(chan string, 1000)
	r.heard.Go(func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
		cmd.Wait()
	})
	return lines
}

// caseCanary is case 23: every read of a pane that prints the canary; noLeaks
// does the rest.
func caseCanary(r *rig) {
	p := r.feed(40, 4, obj{"scrollback": 5})
	p.write(strings.Repeat(r.canary+"\r\n", 20))
	page := r.rows(obj{"pane": p.pane})
	if !strings.Contains(page.text, r.canary) {
		r.Errorf("the result lacks it: %.300s", page.text)
	}
	r.everyRead(page, false)
	stranger, err := r.s.bear(r.s.grantTo(r.c, "stranger", "read pane:p9").token)
	if err != nil {
		r.Fatal(err)
	}
	defer stranger.Close()
	for _, c := range append(selections(page), otherReads(p.pane)...) {
		stranger.Call(r.s.ctx, c.verb, c.params) // denied, or nothing is there
	}
	// What writes is on record neither, when it succeeds and when it fails.
	r.callAs(owner, "pane.write", obj{"pane": p.pane, "text": r.canary})
	r.failsAs(nobody, "denied.write", `{"right":"write","resource":"pane:p0"}`, "pane.write", obj{"pane": p.pane, "text": r.canary})
	r.callAs(owner, "pane.kill", obj{"pane": p.pane, "signal": "KILL"})
	r.s.until(r.c, p.pane, "exited", exited)
	r.everyRead(r.rows(obj{"pane": p.pane}), true)
	r.restart(syscall.SIGTERM)
	r.everyRead(r.rows(obj{"pane": p.pane}), true)
}
