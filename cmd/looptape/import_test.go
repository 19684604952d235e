package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
	"looptape/store"
)

// imported is what pane.import answers.
type imported struct {
	Import, Session, Window, Pane string
	Lines, Ignored                int
	Offset                        uint64
}

// importFile imports a file in pieces into a new session, and returns the pane.
func (s *server) importFile(c *wire.Client, file []byte, piece int) string {
	s.t.Helper()
	params := obj{"session": call[struct{ Session string }](s, c, "session.create", obj{}).Session}
	for {
		n := min(piece, len(file))
		params["data"], params["end"] = file[:n], n == len(file)
		r := call[imported](s, c, "pane.import", params)
		if file = file[n:]; len(file) == 0 {
			return r.Pane
		}
		params["import"] = r.Import
	}
}

// TestImportExport: what is exported, imported and exported again is the same file, of
// either version; and the archive shows what the pane showed.
func TestImportExport(t *testing.T) {
	s := newServer(t)
	c := s.client()
	// Invalid UTF-8, wide characters, more than a frame at once, every control, the
	// alternate screen, a signal.
	program := `printf 'caf\303\251 \346\274\242 \377\346\274 \033[1;31mred\033[m "q\\" \001\177\t\n'
		head -c 700000 /dev/zero | tr '\0' 'z'; head -c 200000 /dev/zero | tr '\0' '\377'
		read x; printf '\033[?1049h\033[5;5Hfull screen'; read x; printf '\033[?1049lback\r\n'; kill -9 $$`
	pane := s.run(c, 80, 24, "sh", "-c", program)
	s.until(c, pane, "waiting", func(p paneInfo) bool { return p.Offset >= 900000 })
	call[obj](s, c, "pane.resize", obj{"pane": pane, "cols": 40, "rows": 10})
	call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
	s.until(c, pane, "full-screen", func(p paneInfo) bool { return p.Screen == "alternate" })
	time.Sleep(20 * time.Millisecond) // an interval that is not zero
	call[obj](s, c, "pane.resize", obj{"pane": pane, "cols": 70, "rows": 20})
	call[obj](s, c, "pane.write", obj{"pane": pane, "text": "\n"})
	s.until(c, pane, "exited", exited)
	again := func(state string) {
		shown := call[obj](s, c, "pane.capture", obj{"pane": pane})
		for _, format := range []string{"asciicast", "asciicast-v2"} {
			first := s.export(c, pane, format)
			copied := s.importFile(c, []byte(first), 100_003)
			if second := s.export(c, copied, format); second != first {
				a, b := strings.Split(first, "\n"), strings.Split(second, "\n")
				for i := range a {
					if i >= len(b) || a[i] != b[i] {
						t.Fatalf("%s, %s: of %d and %d lines, line %d is\n%.300s\nand then\n%.300s", state, format, len(a), len(b), i+1, a[i], b[min(i, len(b)-1)])
					}
				}
				t.Fatalf("%s, %s: %d lines became %d", state, format, len(a), len(b))
			}
			got := call[obj](s, c, "pane.capture", obj{"pane": copied})
			if got["text"] != shown["text"] || fmt.Sprint(got["cursor"]) != fmt.Sprint(shown["cursor"]) {
				t.Errorf("%s, %s: the archive shows\n%s\nthe pane\n%s", state, format, got["text"], shown["text"])
			}
			info := call[struct {
				State string
				Exit  *struct{ Code int }
			}](s, c, "pane.get", obj{"pane": copied})
			if info.State != "archived" || format == "asciicast" && state != "of two programs" && (info.Exit == nil || info.Exit.Code != 128+9) {
				t.Errorf("%s, %s: %+v", state, format, info)
			}
			if r := call[struct{ Sound bool }](s, c, "pane.verify", obj{"pane": copied}); !r.Sound {
				t.Errorf("%s, %s: the archive is not sound", state, format)
			}
		}
	}
	again("of a program")
	s.end(syscall.SIGTERM)
	s.start()
	c = s.client()
	again("as an archive")
	call[obj](s, c, "pane.respawn", obj{"pane": pane, "argv": []string{"sh", "-c", "printf 'another \\033[7mprogram\\033[m\\n'; exit 5"}})
	s.until(c, pane, "exited", exited)
	again("of two programs")
}

// castFile is a recording of n lines that are numbered.
func castFile(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"version":3,"term":{"cols":100,"rows":30},"timestamp":1700000000,"command":"make"}` + "\n")
	for i := range n {
		fmt.Fprintf(&b, `[0.001, "o", "\u001b[3%dm%08d a line of a build that goes on and on, in a colour of its own\u001b[m\r\n"]`+"\n", i%8, i)
	}
	return b.Bytes()
}

// TestImportDies: of an import whose client or daemon dies nothing stays; one that
// was answered is there after a kill -9.
func TestImportDies(t *testing.T) {
	s := newServer(t)
	file := castFile(20000)
	half := func(c *wire.Client) (imported, error) {
		session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
		return try[imported](s, c, "pane.import", obj{"session": session, "data": file[:500_000]})
	}
	c, other := s.client(), s.client()
	for range 4 {
		if r, err := half(other); err != nil || r.Import == "" || r.Pane != "" || r.Offset == 0 {
			t.Fatalf("half a file: %+v, %v", r, err)
		}
	}
	wantCode := func(err error, code string) {
		t.Helper()
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != code {
			t.Fatalf("%v, want %s", err, code)
		}
	}
	_, err := half(c)
	wantCode(err, "limit.imports")
	_, err = try[imported](s, c, "pane.import", obj{"session": "s0", "import": "i0", "data": file[500_000:600_000], "end": true})
	wantCode(err, "not_found.import") // it belongs to another connection
	other.Close()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err = half(c); err == nil {
			break
		}
		if wantCode(err, "limit.imports"); time.Now().After(deadline) {
			t.Fatal("imports of a client that has gone are under way still")
		}
	}
	if list := call[struct{ Panes []any }](s, c, "pane.list", obj{}); len(list.Panes) != 0 {
		t.Errorf("half an import is listed: %v", list)
	}
	s.end(syscall.SIGKILL)
	s.start()
	c = s.client()
	if list := call[struct{ Panes []any }](s, c, "pane.list", obj{}); len(list.Panes) != 0 {
		t.Errorf("after a kill half an import is listed: %v", list)
	}
	pane := s.importFile(c, file, 1<<19)
	want := s.export(c, pane, "asciicast")
	s.end(syscall.SIGKILL)
	s.start()
	c = s.client()
	if got := s.export(c, pane, "asciicast"); got != want {
		t.Errorf("after a kill the export has %d bytes, before %d", len(got), len(want))
	}
	if rows, _ := s.rows(c, pane); !strings.HasPrefix(rows[len(rows)-2], "00019999 a line") {
		t.Errorf("the last row: %q", rows[len(rows)-2])
	}
	s.end(syscall.SIGTERM)
	st, err := store.Open(filepath.Join(s.dir, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if panes, err := st.Panes(); err != nil || len(panes) != 1 {
		t.Errorf("the store has the logs of %v, %v", panes, err)
	}
	for r := range st.Scan("import/") {
		t.Errorf("a note is left: %s %s", r.Key, r.Value)
	}
}

// TestImportRevoked: the imports of a token that is revoked end with it, though their
// client stays connected and calls nothing.
func TestImportRevoked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	owner := s.client()
	c, _ := s.bearer(owner, "importer", "manage session:*")
	session := call[struct{ Session string }](s, owner, "session.create", obj{}).Session
	file := castFile(1000)
	for range 4 {
		call[imported](s, c, "pane.import", obj{"session": session, "data": file})
	}
	if _, err := try[imported](s, owner, "pane.import", obj{"session": session, "data": file}); code(err) != "limit.imports" {
		t.Fatal(err)
	}
	call[obj](s, owner, "grant.revoke", obj{"name": "importer"})
	s.awaitImports(owner)
	if e := s.end(syscall.SIGTERM); e != nil {
		t.Errorf("the daemon ends with %v", e)
	}
}

// sessions lists them, each with the number of its windows.
func (s *server) sessions(c *wire.Client) (windows []int) {
	s.t.Helper()
	for _, se := range call[struct{ Sessions []struct{ Windows []string } }](s, c, "session.list", obj{}).Sessions {
		windows = append(windows, len(se.Windows))
	}
	return windows
}

// TestImportKilled: kill -9 of the daemon in the middle of any piece of an import leaves
// the whole pane, in its session, or nothing.
func TestImportKilled(t *testing.T) {
	s := newServer(t)
	const piece = 100_000
	file := castFile(20000)
	pieces := (len(file) + piece - 1) / piece
	whole := 0
	for round, at := range []int{0, 1, pieces / 2, pieces - 1, pieces - 1, pieces - 1} {
		c := s.client()
		params := obj{"session": call[struct{ Session string }](s, c, "session.create", obj{"provisional": true}).Session}
		for i := range at {
			params["data"] = file[i*piece : (i+1)*piece]
			params["import"] = call[imported](s, c, "pane.import", params).Import
		}
		params["data"], params["end"] = file[at*piece:min(len(file), (at+1)*piece)], at == pieces-1
		done := make(chan error, 1)
		go func() {
			_, err := try[imported](s, c, "pane.import", params)
			done <- err
		}()
		time.Sleep(time.Duration(round) * 5 * time.Millisecond) // any moment will do
		s.end(syscall.SIGKILL)
		answered := <-done == nil && at == pieces-1
		s.start()
		c = s.client()
		list := call[struct {
			Panes []struct{ Pane, State string }
		}](s, c, "pane.list", obj{})
		n := len(list.Panes)
		if n < whole || n > whole+1 || answered && n == whole || at < pieces-1 && n > whole {
			t.Fatalf("round %d: %d whole panes, now %d", round, whole, n)
		}
		if windows := s.sessions(c); len(windows) != n || slices.Contains(windows, 0) {
			t.Fatalf("round %d: %d panes in sessions of %d windows", round, n, windows)
		}
		if whole = n; whole == 0 {
			continue
		}
		last := list.Panes[whole-1]
		if n := strings.Count(s.export(c, last.Pane, "asciicast"), "\n"); n != 20001 || last.State != "archived" {
			t.Fatalf("round %d: %+v has %d lines", round, last, n)
		}
	}
}

// TestImportProgramKilled: kill -9 of "looptape import" at any moment leaves the whole
// pane, in its session, or nothing; and no event tells of anything else.
func TestImportProgramKilled(t *testing.T) {
	s := newServer(t)
	c := s.client()
	file := castFile(20000) // three pieces and a part of one
	for _, n := range []int{0, 1000, 600_000, 1_200_000, len(file)} {
		before := len(s.sessions(c))
		cmd := exec.Command("looptape", "import", "--dir", s.dir, "-")
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(file[:n]); err != nil {
			t.Fatal(err)
		}
		if n == len(file) {
			in.Close() // it may come to its end
		}
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
		// The daemon has seen its connection end once four others find a place.
		s.awaitImports(c)
		sessions := s.sessions(c)
		panes := len(call[struct{ Panes []any }](s, c, "pane.list", obj{}).Panes)
		if slices.Contains(sessions, 0) || len(sessions) != panes || len(sessions) > before && n < len(file) {
			t.Errorf("killed behind %d bytes: %d panes, sessions of %d windows", n, panes, sessions)
		}
	}
	made := map[string]int{}
	for _, e := range s.now(c, 0) {
		kind, _, _ := strings.Cut(e.Resource, ":")
		made[e.Event+" "+kind]++
	}
	if made["created session"] != made["created pane"] || made["closed session"] > 0 {
		t.Errorf("%v", made)
	}
}

// awaitImports waits until no import is under way.
func (s *server) awaitImports(c *wire.Client) {
	s.t.Helper()
	head := []byte(`{"version":2,"width":80,"height":24}` + "\n")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		other, err := dial(s.dir)
		if err != nil {
			s.t.Fatal(err)
		}
		session := call[struct{ Session string }](s, other, "session.create", obj{"provisional": true}).Session
		n := 0
		for n < 4 && err == nil {
			if _, err = try[imported](s, other, "pane.import", obj{"session": session, "data": head}); err == nil {
				n++
			}
		}
		if other.Close(); n == 4 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("an import is under way still: %v", err)
		}
	}
}

// TestImportMemory: a large file takes a bounded amount of the daemon's memory.
func TestImportMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("imports 24 MB")
	}
	s := newServer(t)
	c := s.client()
	piece := castFile(5000)
	header, events, _ := bytes.Cut(piece, []byte{'\n'})
	params := obj{"session": call[struct{ Session string }](s, c, "session.create", obj{}).Session, "data": append(header, '\n')}
	params["import"] = call[imported](s, c, "pane.import", params).Import
	params["data"] = events
	size := 0
	for ; size < 24<<20; size += len(events) {
		call[imported](s, c, "pane.import", params)
	}
	params["data"], params["end"] = []byte{}, true
	r := call[imported](s, c, "pane.import", params)
	if want := size/len(events)*5000 + 1; r.Lines != want {
		t.Errorf("%d lines of %d", r.Lines, want)
	}
	pid := call[struct{ PID int }](s, c, "doctor", obj{}).PID
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc")
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kb int
	fmt.Sscan(peak, &kb)
	if kb == 0 || kb > 192<<10 {
		t.Errorf("after %d MB the daemon has taken %d MB", size>>20, kb>>10)
	}
}

// TestImportRefuses: a line of a file that cannot be, deep inside, ends the import with
// nothing left, whatever was in front of it.
func TestImportRefuses(t *testing.T) {
	s := newServer(t)
	c := s.client()
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	good := castFile(3000)
	for line, what := range map[string]string{
		`[-1, "o", "x"]`:          "negative",
		`[1e308, "o", "x"]`:       "too many",
		`[1, "r", "65535x65535"]`: "4194304 cells",
		`[1, "r", "0x0"]`:         "no size",
		`garbage`:                 "not an event",
		"[1, \"o\", \"\xff\"]":    "not UTF-8",
	} {
		r := call[imported](s, c, "pane.import", obj{"session": session, "data": good})
		_, err := try[imported](s, c, "pane.import", obj{"session": session, "import": r.Import, "data": []byte(line + "\n"), "end": true})
		var e *wire.Error
		if !errors.As(err, &e) || e.Code != "invalid_params.cast" || !strings.HasPrefix(e.Message, "line 3002: ") || !strings.Contains(e.Message, what) {
			t.Errorf("%s: %v", line, err)
		}
		if _, err = try[imported](s, c, "pane.import", obj{"session": session, "import": r.Import}); !errors.As(err, &e) || e.Code != "not_found.import" {
			t.Errorf("behind %s: %v", line, err)
		}
	}
	huge := []byte(`{"version":2,"width":65535,"height":65535}` + "\n")
	if _, err := try[imported](s, c, "pane.import", obj{"session": session, "data": huge}); err == nil || !strings.Contains(err.Error(), "4194304 cells") {
		t.Errorf("a huge screen: %v", err)
	}
	if list := call[struct{ Panes json.RawMessage }](s, c, "pane.list", obj{}); string(list.Panes) != "[]" {
		t.Errorf("left: %s", list.Panes)
	}
}
