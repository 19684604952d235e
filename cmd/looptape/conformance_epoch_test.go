package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// bounds is the data of errors that tell the current bounds: of conflict.epoch,
// or of not_found.rows with a reason.
func (p rowsPage) bounds(reason string) string {
	if reason != "" {
		reason = fmt.Sprintf(`"reason":%q,`, reason)
	}
	return fmt.Sprintf(`{%s"screen":%q,"epoch":%d,"oldest":%d,"end":%d}`, reason, p.Screen, p.Epoch, p.Bounds.Oldest, p.Bounds.End)
}

// stale checks that the rows of page before cannot be read any more, and that
// the error tells the present ones, which it returns.
func (r *rig) stale(before rowsPage) (now rowsPage) {
	r.Helper()
	now = r.rows(obj{"pane": before.Pane})
	if now.Epoch <= before.Epoch {
		r.Fatalf("epoch %d behind %d", now.Epoch, before.Epoch)
	}
	pinned := []obj{ // in turn
		{"epoch": before.Epoch, "start": before.Start, "end": before.End},
		{"epoch": before.Epoch, "start": before.Start},
		{"epoch": before.Epoch, "end": before.End},
		{"epoch": before.Epoch},
	}[before.Epoch%4]
	pinned["pane"] = before.Pane
	e := r.fails("conflict.epoch", now.bounds(""), "pane.capture_rows", pinned)
	if want := fmt.Sprintf("row epoch %d is no longer current", before.Epoch); e.Message != want {
		r.Errorf("%q, not %q", e.Message, want)
	}
	return now
}

// caseAlternate is case 9.
func caseAlternate(r *rig) {
	var text []string
	for n := range 200 {
		text = append(text, fmt.Sprintf("%s %d", r.canary[:10], n))
	}
	dir := r.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte(strings.Join(text, "\n")+"\n"), 0o600); err != nil {
		r.Fatal(err)
	}
	type ids struct{ Session, Pane string }
	session := call[ids](r.s, r.c, "session.create", obj{}).Session
	pane := call[ids](r.s, r.c, "window.create", obj{
		"session": session, "cols": 20, "rows": 4, "cwd": dir, "env": map[string]string{"LESS": "", "LESSOPEN": ""},
		"argv": []string{"sh", "-c", "stty -echo; seq 1 1000; read go; less log; exec sleep 1000"},
	}).Pane
	r.s.until(r.c, pane, "written", func(i paneInfo) bool { return i.Offset >= 4893 })
	before := r.rows(obj{"pane": pane, "max_rows": 10})
	if before.Screen != "primary" {
		r.Errorf("%.300s", before.text)
	}

	call[obj](r.s, r.c, "pane.write", obj{"pane": pane, "text": "\n"})
	r.s.until(r.c, pane, "showing less", func(i paneInfo) bool {
		screen := call[struct{ Text string }](r.s, r.c, "pane.capture", obj{"pane": pane}).Text
		return i.Screen == "alternate" && strings.HasPrefix(screen[strings.LastIndex(screen, "\n")+1:], "log")
	})
	less := r.rows(obj{"pane": pane})
	if less.Screen != "alternate" || less.Bounds != (rowBounds{0, 0, 4}) || len(less.Lines) != 4 {
		r.Fatalf("%.300s", less.text)
	}
	r.equal("the screen of less", less.Lines[:3], padded(20, text[:3]...))
	r.stale(before)

	call[obj](r.s, r.c, "pane.write", obj{"pane": pane, "text": "q"})
	r.s.until(r.c, pane, "done with less", func(i paneInfo) bool { return i.Screen == "primary" })
	after := r.stale(before)
	if after.Screen != "primary" || after.Epoch <= less.Epoch {
		r.Fatalf("%.300s", after.text)
	}
	r.equal("the history after less", after.Lines[:1000], counted(1000, 20)[:1000])
	r.stale(less)
}

// caseErased is case 10, and the other ways to begin an epoch or not to.
func caseErased(r *rig) {
	p := r.feed(20, 4, nil)
	var text strings.Builder
	for n := range 10 {
		fmt.Fprintf(&text, "%s %d\r\n", r.canary[:10], n)
	}
	p.write(text.String())
	lines := r.plain(text.String(), 20, 4)
	page := r.rows(obj{"pane": p.pane})
	r.equal("rows", page.Lines, lines)
	for range 2 { // the second time there is nothing to erase
		p.write("\x1b[3J")
		page = r.stale(page)
		r.equal("rows without history", page.Lines, lines[7:])
	}
	for range 2 {
		p.write("\x1bc")
		page = r.stale(page)
		r.equal("rows after a reset", page.Lines, padded(20, "", "", "", ""))
	}
	p.write("x")
	for _, same := range []string{"\x1b[2J", "\x1b[?1049l", "\x1b[!p", "\x1b[8;4;20t", "\r\n"} {
		p.write(same)
		if now := r.rows(obj{"pane": p.pane}); now.Epoch != page.Epoch {
			r.Errorf("%q begins epoch %d", same, now.Epoch)
		}
	}
	r.erasedBehind(p)
	page = r.rows(obj{"pane": p.pane})
	for _, size := range [][2]int{{20, 5}, {21, 5}, {20, 4}} {
		for range 2 { // the second time nothing changes
			call[obj](r.s, r.c, "pane.resize", obj{"pane": p.pane, "cols": size[0], "rows": size[1]})
			now := r.rows(obj{"pane": p.pane})
			if now.Cols != size[0] || now.Rows != size[1] {
				r.Errorf("after a resize to %v: %.300s", size, now.text)
			}
			if now.Epoch != page.Epoch {
				page = r.stale(page)
				continue
			}
			if page.Cols != size[0] || page.Rows != size[1] {
				r.Errorf("a resize to %v begins no epoch", size)
			}
		}
	}
}

// erasedBehind switches to the alternate screen, which has no history, and erases
// from there that of the other one.
func (r *rig) erasedBehind(p *program) {
	r.Helper()
	p.write("\x1bc" + strings.Repeat("a line\r\n", 10))
	page := r.rows(obj{"pane": p.pane})
	p.write("\x1b[?1049h" + strings.Repeat("\r\n", 10) + "other")
	page = r.stale(page)
	r.equal("the alternate screen", page.Lines, padded(20, "", "", "", "other"))
	for _, again := range []string{"\x1b[?1049h", "\x1b[?47h", "\x1b[?1047h"} {
		p.write(again)
		now := r.rows(obj{"pane": p.pane})
		if now.Epoch != page.Epoch || now.Screen != "alternate" || now.Bounds != (rowBounds{0, 0, 4}) {
			r.Errorf("on the alternate screen %q: %.300s", again, now.text)
		}
	}
	p.write("\x1b[3J")
	page = r.stale(page)
	if page.Screen != "alternate" || page.Bounds != (rowBounds{0, 0, 4}) {
		r.Errorf("%.300s", page.text)
	}
	p.write("\x1b[?1049l")
	page = r.stale(page)
	if page.Screen != "primary" || page.Bounds != (rowBounds{0, 0, 4}) {
		r.Errorf("%.300s", page.text)
	}
	r.equal("the screen without its history", page.Lines, padded(20, "a line", "a line", "a line", ""))
}

// caseEnded is case 22.
func caseEnded(r *rig) {
	file := filepath.Join(r.TempDir(), "text")
	text := strings.Repeat(r.canary+" one\n", 5) + strings.Repeat("two\n", 20)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	pane := r.s.run(r.c, 30, 6, "cat", file)
	want := r.plain(strings.ReplaceAll(text, "\n", "\r\n"), 30, 6)
	r.s.until(r.c, pane, "exited", exited)
	ended := r.rows(obj{"pane": pane})
	r.equal("rows of an exited pane", ended.Lines, want)
	pinned := obj{"pane": pane, "epoch": ended.Epoch, "start": 3, "end": 7}
	r.equal("pinned rows of an exited pane", r.rows(pinned).Lines, want[3:7])

	lines := r.s.run(r.c, 30, 6, "sh", "-c", `cat "$1"; exec sleep 1000`, "sh", file)
	r.s.until(r.c, lines, "written", func(i paneInfo) bool { return i.Durable == uint64(len(text)+strings.Count(text, "\n")) })
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		r.s.until(r.c, pane, "durable", func(i paneInfo) bool { return i.Durable == i.Offset })
		r.restart(sig)
		told := len(r.happened()) + 1
		archived := r.rows(obj{"pane": pane})
		r.equal(fmt.Sprintf("rows of an archive after %v", sig), archived.Lines, want)
		if archived.Epoch <= ended.Epoch || archived.Offset < ended.Offset || archived.Screen != "primary" {
			r.Errorf("an archive after %v: %.300s", sig, archived.text)
		}
		r.equal(fmt.Sprintf("rows of a pane that ran until %v", sig), r.rows(obj{"pane": lines}).Lines, want)
		if caused := r.happened()[told:]; len(caused) > 0 { // although the first read puts a log in order
			r.Errorf("reads of archives after %v caused %q", sig, caused)
		}
		r.stale(ended)
		r.fails("not_found.rows", archived.bounds("future"), "pane.capture_rows", obj{"pane": pane, "epoch": archived.Epoch, "end": archived.Bounds.End + 1})
	}
	// What ran until a crash: the same rows, at an offset that nobody has seen.
	crashed := r.s.run(r.c, 30, 6, "sh", "-c", `cat "$1"; exec sleep 1000`, "sh", file)
	r.s.until(r.c, crashed, "written", func(i paneInfo) bool { return i.Durable == uint64(len(text)+strings.Count(text, "\n")) })
	before := r.rows(obj{"pane": crashed})
	r.restart(syscall.SIGKILL)
	told := len(r.happened()) + 1
	r.equal("rows of a pane that crashed", r.rows(obj{"pane": crashed}).Lines, want)
	r.stale(before)
	if caused := r.happened()[told:]; len(caused) > 0 {
		r.Errorf("reads of a pane that crashed caused %q", caused)
	}
}
