package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// scripted is what one of many panes runs, and what that writes.
type scripted struct {
	script string
	exits  bool
	want   []byte
	pane   string
}

// scripts are programs of five kinds, in turn: each writes numbered lines that name
// it, and none writes what another does.
func scripts(n int) []*scripted {
	list := make([]*scripted, n)
	for i := range list {
		p := &scripted{}
		lines := 1 + i*7%400
		for k := range lines {
			p.want = fmt.Appendf(p.want, "pane %d line %d\r\n", i, k+1)
		}
		say := fmt.Sprintf(`seq -f "pane %d line %%.0f" 1 %d`, i, lines)
		switch i % 5 {
		case 0: // prints and exits
			p.script, p.exits = "exec "+say, true
		case 1: // prints and stays
			p.script = say + "; exec sleep 1000"
		case 2: // exits later, with something to say
			p.script, p.exits = say+fmt.Sprintf("; sleep %d.%d; echo the end", i%3, i%10), true
			p.want = append(p.want, "the end\r\n"...)
		case 3: // trickles, and stays
			p.script = say + "; for i in 1 2 3 4 5 6 7 8; do sleep 0.4; echo later $i; done; exec sleep 1000"
			for k := range 8 {
				p.want = fmt.Appendf(p.want, "later %d\r\n", k+1)
			}
		case 4: // waits for input, and says what it got
			p.script = "stty -echo; " + say + "; read line; echo got $line; exec sleep 1000"
			p.want = fmt.Appendf(p.want, "got input %d\r\n", i)
		}
		list[i] = p
	}
	return list
}

// TestPanesAtOnce: 500 panes at once on one daemon. Each recording is exact,
// descriptors and threads are bounded, and after a restart everything can be read.
// It prints how long things take and how much memory, and asserts neither.
func TestPanesAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("runs 500 programs")
	}
	const panes, clients = 500, 10
	s := newServer(t)
	pid := s.cmd.Process.Pid
	began := time.Now()
	before, idle := descriptors(t, pid), status(t, pid)
	list := scripts(panes)

	var lock sync.Mutex
	var creations, commits []time.Duration
	var all sync.WaitGroup
	for k := range clients {
		all.Go(func() {
			c, err := dial(s.dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for i := k; i < panes; i += clients {
				p := list[i]
				at := time.Now()
				p.pane, err = s.tryRun(c, p.script)
				took := time.Since(at)
				if err != nil {
					t.Errorf("pane %d: %v", i, err)
					return
				}
				lock.Lock()
				creations = append(creations, took)
				lock.Unlock()
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.Fatal(s.log)
	}
	t.Logf("%d panes after %v; window.create takes %s", panes, time.Since(began).Round(time.Millisecond), quantiles(creations))

	// Everything is written, some of it while we look. What is on its way to the disk
	// takes about as long to get there as a commit does.
	c := s.client()
	most, threads := 0, 0
	for i, p := range list {
		if i%5 == 4 { // once the terminal does not echo any more
			s.until(c, p.pane, "waiting", func(info paneInfo) bool { return info.Offset > 0 })
			call[obj](s, c, "pane.write", obj{"pane": p.pane, "text": fmt.Sprintf("input %d\n", i)})
		}
		info := s.until(c, p.pane, "recorded", func(i paneInfo) bool { return i.Offset >= uint64(len(p.want)) })
		at := time.Now()
		if info.Durable < info.Offset {
			s.until(c, p.pane, "durable", func(i paneInfo) bool { return i.Durable >= info.Offset })
			commits = append(commits, time.Since(at))
		}
		most, threads = max(most, descriptors(t, pid)), max(threads, status(t, pid)["Threads"])
		if p.exits {
			s.until(c, p.pane, "exited", exited)
		}
	}
	t.Logf("everything is recorded after %v; %d descriptors, %d threads", time.Since(began).Round(time.Millisecond), most, threads)
	busy := status(t, pid)
	t.Logf("memory: %d KiB resident, %d with %d panes, %d at most", idle["VmRSS"], busy["VmRSS"], panes, busy["VmHWM"])
	if len(commits) > 0 {
		t.Logf("%d panes were found not durable yet, for %s", len(commits), quantiles(commits))
	}
	if limit := before + 2*panes + 3*clients + 40; most > limit {
		t.Errorf("%d descriptors, more than %d", most, limit)
	}
	if threads > 64 {
		t.Errorf("%d threads", threads)
	}
	s.sameOutput(c, list, "live")
	// A fifth exited at once, a fifth by and by: nothing of them is left open.
	s.settles(before+1+2*panes*3/5, "with 300 programs that run")

	at := time.Now()
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("stop: %v\n%s", err, s.log)
	}
	stopped := time.Since(at)
	s.start()
	t.Logf("stopped in %v, listens again after %v more; the store takes %d KiB",
		stopped.Round(time.Millisecond), (time.Since(at) - stopped).Round(time.Millisecond), tree(t, s.dir)>>10)
	c = s.client()
	at = time.Now()
	s.sameOutput(c, list, "archived")
	for _, p := range list {
		want, err := layOut(p.want, 80)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := s.rows(c, p.pane)
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: %d rows that are not the %d written", p.pane, len(got), len(want))
		}
		if info := call[paneInfo](s, c, "pane.get", obj{"pane": p.pane}); info.State != "archived" {
			t.Errorf("%s is %s", p.pane, info.State)
		}
	}
	t.Logf("all archives are read after %v, %d KiB resident; %v in all",
		time.Since(at).Round(time.Millisecond), status(t, s.cmd.Process.Pid)["VmRSS"], time.Since(began).Round(time.Millisecond))
}

// TestKillMany: a session of 200 programs, each with a helper, ends at once.
func TestKillMany(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	type ids struct{ Session, Pane string }
	session := call[ids](s, c, "session.create", obj{}).Session
	pids := filepath.Join(t.TempDir(), "pids")
	var panes []string
	for range 200 {
		panes = append(panes, call[ids](s, c, "window.create", obj{"session": session, "argv": []string{
			"sh", "-c", "sleep 1000 & echo $! $$ >>" + pids + "; echo ready; exec sleep 1000",
		}}).Pane)
	}
	for _, p := range panes {
		s.until(c, p, "ready", func(i paneInfo) bool { return i.Offset > 0 })
	}
	began := time.Now()
	call[obj](s, c, "session.kill", obj{"session": session})
	t.Logf("session.kill took %v", time.Since(began).Round(time.Millisecond))
	assertGone(t, pids)
	for _, p := range panes {
		info := call[struct{ Exit struct{ Signal string } }](s, c, "pane.get", obj{"pane": p})
		if info.Exit.Signal != "SIGHUP" {
			t.Errorf("%s ended by %q", p, info.Exit.Signal)
		}
	}
}

// tryRun is run for a goroutine that is not the test's.
func (s *server) tryRun(c *wire.Client, script string) (pane string, err error) {
	type ids struct{ Session, Pane string }
	in, err := try[ids](s, c, "session.create", obj{})
	if err != nil {
		return "", err
	}
	made, err := try[ids](s, c, "window.create", obj{"session": in.Session, "argv": []string{"sh", "-c", script}})
	return made.Pane, err
}

// sameOutput compares what was recorded with what was written.
func (s *server) sameOutput(c *wire.Client, list []*scripted, when string) {
	s.t.Helper()
	for i, p := range list {
		if got := s.raw(c, p.pane); !bytes.Equal(got, p.want) {
			s.t.Errorf("%s: pane %d: %d bytes recorded, %d written; byte %d differs", when, i, len(got), len(p.want), common(got, p.want))
		}
	}
}

// status are the numbers in /proc/PID/status.
func status(t testing.TB, pid int) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		name, rest, _ := strings.Cut(line, ":")
		if f := strings.Fields(rest); len(f) > 0 {
			if n, err := strconv.Atoi(f[0]); err == nil {
				numbers[name] = n
			}
		}
	}
	return numbers
}

// tree is how many bytes the files under dir hold.
func tree(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	for _, file := range regularFiles(t, dir) {
		if info, err := os.Stat(filepath.Join(filepath.Dir(dir), file)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// quantiles describes how long something took.
func quantiles(took []time.Duration) string {
	slices.Sort(took)
	at := func(q int) time.Duration { return took[min(len(took)*q/100, len(took)-1)].Round(10 * time.Microsecond) }
	return fmt.Sprintf("%v (median), %v (99 %%), %v at most", at(50), at(99), at(100))
}
