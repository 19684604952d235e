package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"looptape/capture"
)

// The acceptance list of capture_since, by its numbers; where a test elsewhere proves a
// point, it is named.
//
//	 1  the first call is an exact instant        TestSinceList
//	 2  a follow-up has only what is new, and a   TestSinceList
//	    third one nothing
//	 3  no gap between the first screen and the   TestSinceList
//	    text behind it, under a fast writer
//	 4  a spinner's CR repeats its line           TestSinceList
//	 5  cuts inside SGR, OSC, DCS                 capture.TestFilterCuts, TestSinceInPieces
//	 6  cuts inside characters                    the same
//	 7  head, tail, one huge line                 TestSinceList, capture.TestSinceTail
//	 8  a cursor that is used again               TestSinceList
//	 9  malformed, version, checksum, other pane  capture.TestCursorDamage, since.txtar
//	10  eviction: missed, exact missed_bytes      TestFieldCursor
//	11  an exit gives the rest, and closed        TestSinceList
//	12  it goes on over a restart                 TestFieldCursor, restart.txtar
//	13  kill -9: exact, or missed                 TestKill9
//	14  many panes at once                        TestSinceList, TestPanes
//	15  denied before the lookup                  TestRightsFirst
//	16  the canary                                TestConformance, case 23
//	17  no events                                 TestReadsCauseNoEvents
//	18  the alternate screen is named             TestSinceList
//	19  raw equals an independent recording       TestRealBuild
//	20  a small delta costs the same whatever     BenchmarkSince
//	    the log's length
func TestSinceList(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	since := func(params obj) capture.SinceResult {
		t.Helper()
		return call[capture.SinceResult](s, c, "pane.capture_since", params)
	}
	typed := func(script string) string { return s.run(c, 40, 6, "/bin/sh", "-c", "stty -echo; "+script) }
	echo := func(pane, text string) {
		t.Helper()
		at := call[paneInfo](s, c, "pane.get", obj{"pane": pane}).Offset
		call[any](s, c, "pane.write", obj{"pane": pane, "text": text})
		s.until(c, pane, "echoed", func(p paneInfo) bool { return p.Offset > at })
	}

	t.Run("1, 2, 8", func(t *testing.T) {
		pane := typed("printf 'one\\ntwo'; cat")
		s.until(c, pane, "written", func(p paneInfo) bool { return p.Offset == 8 })
		first := since(obj{"pane": pane})
		if !first.First || *first.Text != "one\ntwo" || first.From != 8 || first.Offset != 8 || first.End != 8 {
			t.Fatalf("1: %+v", first)
		}
		echo(pane, "three\n")
		second := since(obj{"cursor": first.Cursor})
		if second.First || second.Missed || !strings.HasPrefix(*second.Text, "three") {
			t.Fatalf("2: %+v %q", second, *second.Text)
		}
		if third := since(obj{"cursor": second.Cursor}); *third.Text != "" || third.More {
			t.Fatalf("2: the third is %q", *third.Text)
		}
		if again := since(obj{"cursor": first.Cursor, "max_bytes": len(*second.Text)}); *again.Text != *second.Text || again.Cursor != second.Cursor {
			t.Fatalf("8: again it is %q", *again.Text)
		}
	})

	t.Run("3", func(t *testing.T) {
		pane := s.run(c, 40, 6, "/bin/sh", "-c", "seq 1 200000")
		for range 20 { // somewhere in its middle, as a rule
			first := since(obj{"pane": pane})
			second := since(obj{"cursor": first.Cursor, "wait_ms": 1000, "max_lines": 50})
			// The screen's last, blank row is not in its text: the second one begins a line,
			// or goes on with one.
			if !follow(strings.Split(*first.Text+"\n"+*second.Text, "\n")) && !follow(strings.Split(*first.Text+*second.Text, "\n")) {
				t.Fatalf("3: %q, then %q", *first.Text, *second.Text)
			}
		}
	})

	t.Run("4, 7, 11", func(t *testing.T) {
		pane := s.run(c, 40, 6, "/bin/sh", "-c", `printf '|\r/\r-\r\n'; head -c 3000000 /dev/zero | tr '\0' x; printf '\nend'`)
		s.until(c, pane, "exited", exited)
		if r := since(obj{"pane": pane, "since": 0, "max_lines": 3}); *r.Text != "|\n/\n-\n" || !r.More {
			t.Fatalf("4: %q, more %v", *r.Text, r.More)
		}
		var text strings.Builder
		r := since(obj{"pane": pane, "since": 7, "max_bytes": 999_983})
		for text.WriteString(*r.Text); !r.Closed; text.WriteString(*r.Text) {
			r = since(obj{"cursor": r.Cursor, "max_bytes": 999_983, "wait_ms": 1000})
		}
		if want := strings.Repeat("x", 3_000_000) + "\nend"; strings.TrimPrefix(text.String(), "\n") != want {
			t.Fatalf("7, 11: %d bytes, not %d", text.Len(), len(want))
		}
		r = since(obj{"pane": pane, "since": 7, "keep": "tail", "max_bytes": 10})
		if *r.Text != "xxxxxx\nend" || !r.Truncated || !r.Closed || r.TruncatedBytes != r.From-7 {
			t.Fatalf("7: the tail is %+v %q", r, *r.Text)
		}
	})

	t.Run("14", func(t *testing.T) {
		var panes, cursors []string
		for i := range 50 {
			pane := s.run(c, 20, 4, "/bin/sh", "-c", fmt.Sprintf("for i in 1 2 3 4 5 6 7 8 9; do echo %d.$i; done", i))
			panes, cursors = append(panes, pane), append(cursors, "")
		}
		got := make([]string, len(panes))
		for open := len(panes); open > 0; {
			for i, pane := range panes {
				if pane == "" {
					continue
				}
				params := obj{"pane": pane, "since": 0, "max_lines": 2}
				if cursors[i] != "" {
					params = obj{"cursor": cursors[i], "max_lines": 2, "wait_ms": 20}
				}
				r := since(params)
				got[i] += *r.Text
				cursors[i] = r.Cursor
				if r.Closed {
					panes[i] = ""
					open--
				}
			}
		}
		for i, text := range got {
			want := ""
			for n := range 9 {
				want += fmt.Sprintf("%d.%d\n", i, n+1)
			}
			if text != want {
				t.Fatalf("14: pane %d gives %q", i, text)
			}
		}
	})

	t.Run("18", func(t *testing.T) {
		pane := typed("printf 'main\\033[?1049h\\033[Halt'; cat")
		s.until(c, pane, "written", func(p paneInfo) bool { return p.Offset == 18 })
		if r := since(obj{"pane": pane}); r.Screen != "alternate" || *r.Text != "alt" {
			t.Fatalf("18: %+v %q", r, *r.Text)
		}
	})
}

// follow says whether lines are numbers that follow on one another; the last one may
// be cut.
func follow(lines []string) bool {
	for i := 1; i < len(lines)-1; i++ {
		before, err := strconv.Atoi(lines[i-1])
		n, err2 := strconv.Atoi(lines[i])
		if err != nil && i > 1 || err2 != nil || err == nil && n != before+1 {
			return false
		}
	}
	return true
}

// BenchmarkSince prints what reading costs, and of that what the daemon took of the
// processors: a poll that finds nothing, a hundred bytes at the end of a short and of a
// long recording, a megabyte of new text, and the screen at any offset. Beside them
// stands a call that only asks what the pane is.
func BenchmarkSince(b *testing.B) {
	s := newServer(b)
	c := s.client()
	record := func(script string) string {
		session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
		pane := call[struct{ Pane string }](s, c, "window.create", obj{"session": session, "argv": []string{"/bin/sh", "-c", script}, "retain": 2 << 30}).Pane
		s.until(c, pane, "exited", exited)
		return pane
	}
	end := func(pane string) uint64 { return call[paneInfo](s, c, "pane.get", obj{"pane": pane}).Offset }
	short, long := record("seq 1 150000"), record("seq 1 105000000") // 1 MB, 1 GB
	last := end(long)
	idle := s.run(c, 80, 24, "/bin/sh", "-c", "seq 1 1000; cat")
	s.until(c, idle, "written", func(p paneInfo) bool { return p.Offset > 4000 })
	for _, run := range []struct {
		name   string
		verb   string
		params func() obj
	}{
		{"get", "pane.get", func() obj { return obj{"pane": short} }},
		{"empty", "pane.capture_since", func() obj { return obj{"pane": idle, "since": end(idle)} }},
		{"100-bytes-of-1-MB", "pane.capture_since", func() obj { return obj{"pane": short, "since": end(short) - 100} }},
		{"100-bytes-of-1-GB", "pane.capture_since", func() obj { return obj{"pane": long, "since": last - 100} }},
		{"1-MB", "pane.capture_since", func() obj {
			return obj{"pane": long, "since": last - 1<<20, "max_bytes": 2 << 20, "max_lines": 1 << 20}
		}},
		{"at-of-1-GB", "pane.capture_at", func() obj { return obj{"pane": long, "offset": rand.Uint64N(last)} }},
	} {
		b.Run(run.name, func(b *testing.B) {
			params := run.params()
			c.Call(s.ctx, run.verb, params) // the first read of an archive replays
			slowest, before := time.Duration(0), s.processors()
			b.ResetTimer()
			for range b.N {
				if run.verb == "pane.capture_at" {
					params = run.params()
				}
				began := time.Now()
				if _, err := c.Call(s.ctx, run.verb, params); err != nil {
					b.Fatal(err)
				}
				slowest = max(slowest, time.Since(began))
			}
			b.ReportMetric(float64(s.processors()-before)/float64(b.N), "daemon-cpu-ns/op")
			b.ReportMetric(float64(slowest), "slowest-ns")
		})
	}
}

// processors is how long the daemon has had a processor.
func (s *server) processors() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	var ticks time.Duration
	for _, f := range strings.Fields(fields)[11:13] { // utime, stime
		n, err := strconv.Atoi(f)
		if err != nil {
			s.t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * time.Second / 100 // USER_HZ
}
