//go:build conformance

package replay_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An xterm is a running xterm/screen.mjs.
type xterm struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// startXterm installs xterm.js into a cache folder outside the repository,
// once for each version of xterm/package-lock.json, and starts it. Without
// Node the test is skipped.
func startXterm(t *testing.T) *xterm {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node on PATH")
	}
	lock, err := os.ReadFile("xterm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "looptape", fmt.Sprintf("xterm-%x", sha256.Sum256(lock))[:16])
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@xterm", "headless")); err != nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"package.json", "package-lock.json"} {
			b, err := os.ReadFile(filepath.Join("xterm", name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		npm.Dir = dir
		if out, err := npm.CombinedOutput(); err != nil {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
	}
	cmd := exec.Command("node", "xterm/screen.mjs", dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &xterm{in, bufio.NewReaderSize(out, 1<<20)}
}

// look returns what xterm.js shows behind the steps of c; false when it failed.
func (x *xterm) look(t *testing.T, c termCase) (view, bool) {
	c.Screen, c.Cursor, c.History = nil, nil, nil
	line, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if line, err = x.out.ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	var got termCase
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if got.Screen == nil {
		return view{}, false
	}
	return view{got.Screen, *got.Cursor, *got.History}, true
}

// tmuxConf makes a server whose windows have exactly the session's size and
// whose history is fed by scrolling alone.
const tmuxConf = `set -g status off
set -g history-limit 10000
set -g remain-on-exit on
set -g default-shell /bin/sh
set -g exit-empty off
set -gq scroll-on-clear off
`

// tmuxLook returns what tmux shows behind the steps of each case, a server of
// its own for every 50 of them. Without tmux the result is nil.
func tmuxLook(t *testing.T, cases []termCase) []view {
	if _, err := exec.LookPath("tmux"); err != nil {
		return nil
	}
	views := make([]view, len(cases))
	for i := 0; i < len(cases); i += 50 {
		end := min(i+50, len(cases))
		tmuxBatch(t, cases[i:end], views[i:end])
	}
	return views
}

// A tmux is a server of its own, with its socket and the input files in dir.
type tmux struct {
	t   *testing.T
	dir string
}

func (m *tmux) run(args ...string) string {
	cmd := exec.Command("tmux", append([]string{"-S", m.path("sock"), "-f", m.path("conf")}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (m *tmux) path(format string, args ...any) string {
	return filepath.Join(m.dir, fmt.Sprintf(format, args...))
}

func (m *tmux) write(path string, b []byte) {
	if err := os.WriteFile(path, b, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// tmuxBatch runs each case in a session: its shell writes step after step to
// the terminal, and waits before each but the first for a file named N.go.
func tmuxBatch(t *testing.T, cases []termCase, views []view) {
	m := &tmux{t, t.TempDir()}
	m.write(m.path("conf"), []byte(tmuxConf))
	m.run("start-server")
	defer m.run("kill-server")
	most := 0
	for i, c := range cases {
		script := "stty raw -echo"
		for k, s := range c.Steps {
			file := m.path("%d.%d", i, k)
			m.write(file, s.In)
			script += fmt.Sprintf("; until [ -e %s.go ]; do sleep 0.01; done; cat %s; : > %s.done", file, file, file)
		}
		most = max(most, len(c.Steps))
		m.run("new-session", "-d", "-s", fmt.Sprint("c", i), "-x", strconv.Itoa(c.Cols), "-y", strconv.Itoa(c.Rows),
			script+"; exec sleep 1000")
	}
	for k := range most {
		for i, c := range cases {
			if k >= len(c.Steps) {
				continue
			}
			if size := c.Steps[k].Resize; size != nil {
				m.run("resize-window", "-t", fmt.Sprint("c", i), "-x", strconv.Itoa(size[0]), "-y", strconv.Itoa(size[1]))
			}
			m.write(m.path("%d.%d.go", i, k), nil)
		}
		for i, c := range cases {
			for wait := 0; k < len(c.Steps) && wait < 2000; wait++ {
				if _, err := os.Stat(m.path("%d.%d.done", i, k)); err == nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		// What cat wrote, tmux must read.
		time.Sleep(200 * time.Millisecond)
	}
	for i, c := range cases {
		views[i] = m.look(fmt.Sprint("c", i), c)
	}
}

// look reads the view of a session.
func (m *tmux) look(name string, c termCase) view {
	cols, rows := c.Cols, c.Rows
	for _, s := range c.Steps {
		if s.Resize != nil {
			cols, rows = s.Resize[0], s.Resize[1]
		}
	}
	out := m.run("display-message", "-p", "-t", name, "#{cursor_x} #{cursor_y} #{history_size}", ";",
		"capture-pane", "-p", "-t", name, "-S", "-")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	var x, y, h int
	if _, err := fmt.Sscan(lines[0], &x, &y, &h); err != nil {
		m.t.Fatal(err)
	}
	lines = lines[1:]
	for j := range lines {
		lines[j] = strings.TrimRight(lines[j], " ")
	}
	for len(lines) < h+rows {
		lines = append(lines, "")
	}
	return view{lines[h:], [2]int{min(x, cols-1), y}, lines[:h]}
}

// agreed returns c with the expectations that both views share.
func agreed(c termCase, a, b view) *termCase {
	c.Screen, c.Cursor, c.History = nil, nil, nil
	if slices.Equal(a.Screen, b.Screen) {
		c.Screen = a.Screen
	}
	if a.Cursor == b.Cursor {
		c.Cursor = &a.Cursor
	}
	if slices.Equal(a.History, b.History) {
		c.History = &a.History
	}
	return &c
}

// env returns an integer setting of the run.
func env(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// TestConformance compares the terminal with xterm.js and, where it is
// installed, tmux: on the case files and on generated streams. It prints the
// agreement by group. A difference on the case files fails; one on a generated
// stream, where the references may agree by chance, is made smaller and printed
// for a person to judge. LOOPTAPE_STREAMS is the number of streams a group (100),
// LOOPTAPE_SEED the first seed (1), LOOPTAPE_GROUP the only group (all).
// LOOPTAPE_SHOW is how many differences a group are printed (5), LOOPTAPE_APART
// how many between the references (0); LOOPTAPE_CASES names a file to which
// differences are appended as cases.
func TestConformance(t *testing.T) {
	x := startXterm(t)
	t.Logf("%-22s %8s %12s %12s %12s %12s", "group", "cases", "refs agree", "= xterm.js", "= tmux", "= both")
	for _, file := range []string{"terminal.jsonl", "programs.jsonl", "generated.jsonl"} {
		byGroup := map[string][]termCase{}
		var order []string
		for _, c := range readCases(t, file) {
			if byGroup[c.Group] == nil {
				order = append(order, c.Group)
			}
			byGroup[c.Group] = append(byGroup[c.Group], c)
		}
		for _, g := range order {
			compareGroup(t, x, g, byGroup[g], nil)
		}
	}
	n, first := env("LOOPTAPE_STREAMS", 100), env("LOOPTAPE_SEED", 1)
	for _, g := range groupNames() {
		if only := os.Getenv("LOOPTAPE_GROUP"); only != "" && only != g {
			continue
		}
		var cases []termCase
		var streams []*stream
		for i := range n {
			s := generate(g, uint64(first+i), 25)
			streams = append(streams, s)
			cases = append(cases, s.asCase(fmt.Sprintf("%s-%d", g, first+i), g))
		}
		compareGroup(t, x, "generated/"+g, cases, streams)
	}
}

// compareGroup prints one line of agreement and reports disagreements.
func compareGroup(t *testing.T, x *xterm, group string, cases []termCase, streams []*stream) {
	theirs := tmuxLook(t, cases)
	refs, ourX, ourT, both := 0, 0, 0, 0
	shown, apart := 0, 0
	for i, c := range cases {
		ours := look(t, c.run(whole))
		vx, ok := x.look(t, c)
		if !ok {
			continue
		}
		vt := vx
		if theirs != nil {
			vt = theirs[i]
		}
		d := agreed(c, vx, vx).diff(vt)
		count(&refs, d == "")
		if d != "" && apart < env("LOOPTAPE_APART", 0) {
			apart++
			t.Logf("REFERENCES DIFFER %s %dx%d %s\nwant xterm.js, got tmux:\n%s", c.Name, c.Cols, c.Rows, c.quote(), d)
		}
		count(&ourX, agreed(c, vx, vx).diff(ours) == "")
		count(&ourT, agreed(c, vt, vt).diff(ours) == "")
		want := agreed(c, vx, vt)
		if streams == nil && c.Screen != nil {
			want = &c // The file says what was agreed on.
		}
		if want.diff(ours) == "" {
			both++
			continue
		}
		if streams == nil {
			t.Fail()
		}
		if shown++; shown <= env("LOOPTAPE_SHOW", 5) {
			if streams != nil {
				*want = shrink(t, x, want.Name, group, streams[i], *want)
			}
			t.Logf("DIFFERS %s %dx%d %s\n%s", want.Name, c.Cols, c.Rows, want.quote(), want.diff(look(t, want.run(whole))))
			record(t, *want)
		}
	}
	t.Logf("%-22s %8d %12d %12d %12d %12d", group, len(cases), refs, ourX, ourT, both)
}

func count(n *int, yes bool) {
	if yes {
		*n++
	}
}

// record appends c to the file that LOOPTAPE_CASES names.
func record(t *testing.T, c termCase) {
	name := os.Getenv("LOOPTAPE_CASES")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	writeJSON(t, &b, c)
	if _, err := f.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// shrink leaves out operations of s as long as both references still agree
// on something that the terminal shows differently.
func shrink(t *testing.T, x *xterm, name, group string, s *stream, want termCase) termCase {
	best := &want
	ops := s.ops
	try := func(ops []caseStep) bool {
		c := termCase{Name: name, Group: strings.TrimPrefix(group, "generated/"), Cols: s.cols, Rows: s.rows,
			Steps: joinSteps(ops)}
		vx, ok := x.look(t, c)
		if !ok || agreed(c, vx, vx).diff(look(t, c.run(whole))) == "" {
			return false
		}
		vt := vx
		if theirs := tmuxLook(t, []termCase{c}); theirs != nil {
			vt = theirs[0]
		}
		less := agreed(c, vx, vt)
		if less.diff(look(t, c.run(whole))) == "" {
			return false
		}
		best = less
		return true
	}
	for size := len(ops) / 2; size >= 1; size /= 2 {
		for i := 0; i+size <= len(ops); {
			less := slices.Concat(ops[:i], ops[i+size:])
			if try(less) {
				ops = less
			} else {
				i += size
			}
		}
	}
	return *best
}

// TestUpdateGenerated writes testdata/generated.jsonl anew: the inputs stay,
// what both references show is taken from them.
func TestUpdateGenerated(t *testing.T) {
	if os.Getenv("LOOPTAPE_UPDATE") == "" {
		t.Skip("LOOPTAPE_UPDATE is not set")
	}
	x := startXterm(t)
	cases := readCases(t, "generated.jsonl")
	theirs := tmuxLook(t, cases)
	if theirs == nil {
		t.Fatal("no tmux on PATH")
	}
	var b bytes.Buffer
	for i, c := range cases {
		vx, ok := x.look(t, c)
		if !ok {
			t.Fatalf("xterm.js fails on %s", c.Name)
		}
		writeJSON(t, &b, agreed(c, vx, theirs[i]))
	}
	if err := os.WriteFile("testdata/generated.jsonl", b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeJSON appends a line.
func writeJSON(t *testing.T, b *bytes.Buffer, v any) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
}

// TestUpdateRecordings writes testdata/recordings.jsonl anew: the places in
// the recordings stay, what both references show there is taken from them.
func TestUpdateRecordings(t *testing.T) {
	if os.Getenv("LOOPTAPE_UPDATE") == "" {
		t.Skip("LOOPTAPE_UPDATE is not set")
	}
	x := startXterm(t)
	places := readRecordings(t)
	cases := make([]termCase, len(places))
	for i, p := range places {
		cases[i] = termCase{Name: p.Name, Cols: p.Cols, Rows: p.Rows, Steps: []caseStep{{In: recording(t, p.Name)[:p.At]}}}
	}
	theirs := tmuxLook(t, cases)
	if theirs == nil {
		t.Fatal("no tmux on PATH")
	}
	var b bytes.Buffer
	for i, p := range places {
		vx, ok := x.look(t, cases[i])
		if !ok {
			t.Fatalf("xterm.js fails on %s", p.Name)
		}
		p.termCase = *agreed(p.termCase, vx, theirs[i])
		if p.Screen == nil || p.Cursor == nil || p.History == nil {
			t.Logf("%s at %d: not agreed on: screen %v, cursor %v, history %v", p.Name, p.At,
				p.Screen == nil, p.Cursor == nil, p.History == nil)
		}
		writeJSON(t, &b, p)
	}
	if err := os.WriteFile("testdata/recordings.jsonl", b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
