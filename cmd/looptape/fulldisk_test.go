package main_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"looptape/cmd/internal/wire"
)

// health is what the tests read of doctor.
type health struct {
	Advice []string
	Store  struct {
		State string
		Full  string `json:"full_since"`
	}
	Panes []struct {
		Pane            string
		Offset, Durable uint64
		NotRecorded     *uint64 `json:"not_recorded_since"`
		Gaps            int
		GapBytes        uint64 `json:"gap_bytes"`
		Oldest, Retain  uint64
		Evicted         uint64 `json:"evicted_bytes"`
	}
}

// smallDisk mounts a file system of a few megabytes, for a state directory.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	return disk
}

// fillUp takes what a disk has left.
func fillUp(t *testing.T, disk string) (file string) {
	t.Helper()
	file = filepath.Join(disk, "fill")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); ; {
		if _, err := f.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			return file
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk is F11 of the field cases: a small disk fills up while three
// panes write, and is freed. The programs go on, doctor says since where nothing
// is recorded, and the recording resumes behind a gap of exactly that size.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "64m")
	s := &server{t: t, ctx: t.Context(), dir: filepath.Join(disk, "s")}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	c := s.client()
	// Fixed lines of 64 bytes, so that the test can tell from any byte what it is.
	const program = `i=0; while :; do printf '%062d\n' $i; i=$((i+1)); done`
	panes := []string{}
	for range 3 {
		panes = append(panes, s.run(c, 80, 24, "sh", "-c", program))
	}
	for _, pane := range panes {
		s.until(c, pane, "writing", func(i paneInfo) bool { return i.Durable > 1<<16 })
	}
	fill := fillUp(t, disk)
	full := s.untilHealth(c, "unrecorded", func(h health) bool {
		return h.Panes[0].NotRecorded != nil && h.Panes[1].NotRecorded != nil && h.Panes[2].NotRecorded != nil
	})
	if full.Store.State != "full" || full.Store.Full == "" {
		t.Errorf("the store: %+v", full.Store)
	}
	if text := strings.Join(full.Advice, "\n"); !strings.Contains(text, "free some space on the disk of "+s.dir) || !strings.Contains(text, "Nothing is recorded of p0, p1, p2:") {
		t.Errorf("on a full disk doctor says %q", text)
	}
	// The programs go on, though nothing is recorded, and the screen follows.
	for i, pane := range panes {
		from := *full.Panes[i].NotRecorded
		s.until(c, pane, "going on", func(p paneInfo) bool { return p.Offset > from+1<<14 && p.State == "running" })
	}
	// What a reader asks for of the gap is missed, exactly.
	a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": panes[0], "since": *full.Panes[0].NotRecorded, "format": "raw"})
	if !a.Missed || a.MissedBytes != a.End-*full.Panes[0].NotRecorded || a.Offset != a.End {
		t.Errorf("inside the open gap: %+v after %d", a, *full.Panes[0].NotRecorded)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	well := s.untilHealth(c, "recording again", func(h health) bool {
		for i, p := range h.Panes {
			if p.NotRecorded != nil || p.Gaps == 0 || p.Durable <= *full.Panes[i].NotRecorded+1<<16 {
				return false
			}
		}
		return h.Store.State == "ok"
	})
	if text := strings.Join(well.Advice, "\n"); strings.Contains(text, "full") || strings.Contains(text, "Nothing is recorded") {
		t.Errorf("when it records again doctor says %q", text)
	}
	for i, pane := range panes {
		from := *full.Panes[i].NotRecorded
		end := s.checkAround(c, pane, from)
		var got []string
		for _, h := range s.now(c, 0) {
			if h.Event == "gap" && h.Resource == "pane:"+pane {
				got = append(got, fmt.Sprintf("%s %d", h.Data.Gap, *h.Data.Offset))
				if h.Data.Gap == "closed" && *h.Data.Bytes != end-from {
					t.Errorf("%s: a gap of %d bytes, not %d", pane, *h.Data.Bytes, end-from)
				}
			}
		}
		if want := []string{fmt.Sprintf("open %d", from), fmt.Sprintf("closed %d", end)}; !slices.Equal(got, want) {
			t.Errorf("%s: gaps are told as %q, not %q", pane, got, want)
		}
		if p := well.Panes[i]; p.Gaps != 1 || p.GapBytes != end-from {
			t.Errorf("%s: doctor counts %+v, not one gap of %d bytes", pane, p, end-from)
		}
	}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("stop: %v\n%s", err, s.log)
	}
}

// TestDeleteOnFullDisk: a disk that recordings have filled takes nothing any more, but
// the deletion of recordings, however much the panes have in flight; then it records
// again.
func TestDeleteOnFullDisk(t *testing.T) {
	t.Parallel()
	for _, writers := range []int{1, 4} {
		t.Run(fmt.Sprint(writers), func(t *testing.T) {
			t.Parallel()
			deleteOnFullDisk(t, writers)
		})
	}
}

func deleteOnFullDisk(t *testing.T, writers int) {
	disk := smallDisk(t, "24m")
	s := &server{t: t, ctx: t.Context(), dir: filepath.Join(disk, "s")}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	c := s.client()
	var panes []string
	for range writers {
		panes = append(panes, s.run(c, 80, 24, "sh", "-c", "head -c 30000000 /dev/urandom | base64; sleep 1000"))
	}
	full := s.untilHealth(c, "unrecorded", func(h health) bool {
		for _, p := range h.Panes {
			if p.NotRecorded == nil {
				return false
			}
		}
		return true
	})
	if text := strings.Join(full.Advice, "\n"); full.Store.State != "full" || !strings.Contains(text, "until 12.0 MiB are free there (now it is ") {
		t.Errorf("on a full disk: %+v", full)
	}
	var kills sync.WaitGroup
	for _, pane := range panes {
		kills.Go(func() {
			if _, err := try[obj](s, c, "pane.kill", obj{"pane": pane}); err != nil {
				t.Error(err)
			}
		})
	}
	kills.Wait()
	for _, pane := range panes {
		for deadline := time.Now().Add(2 * patience); ; time.Sleep(20 * time.Millisecond) {
			_, err := try[obj](s, c, "pane.delete", obj{"pane": pane})
			if err == nil {
				break
			}
			if e := wire.AsError(err); !strings.HasPrefix(e.Code, "conflict") || time.Now().After(deadline) { // it has not exited yet
				t.Fatalf("%v\n%s", err, s.log)
			}
		}
	}
	s.untilHealth(c, "ok without the panes", func(h health) bool { return h.Store.State == "ok" && len(h.Panes) == 0 })
	next := s.run(c, 80, 24, "sh", "-c", "echo hi; sleep 1000")
	s.until(c, next, "recorded", func(i paneInfo) bool { return i.Durable == 4 })
	s.end(syscall.SIGKILL)
	s.start()
	c = s.client()
	for _, pane := range panes {
		if _, err := try[paneInfo](s, c, "pane.get", obj{"pane": pane}); err == nil {
			t.Errorf("after a crash the pane %s is there again", pane)
		}
	}
}

// TestImportOnFullDisk: an import that fills the disk, and comes to nothing, leaves it
// as it was.
func TestImportOnFullDisk(t *testing.T) {
	t.Parallel()
	s := &server{t: t, ctx: t.Context(), dir: filepath.Join(smallDisk(t, "24m"), "s")}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	c, importer := s.client(), s.client()
	params := obj{"session": call[struct{ Session string }](s, importer, "session.create", obj{"provisional": true}).Session}
	params["data"] = []byte(`{"version":2,"width":80,"height":24}` + "\n")
	params["import"] = call[imported](s, importer, "pane.import", params).Import
	went := make(chan struct{})
	go func() { // until the disk takes no more, or the client has gone
		defer close(went)
		for {
			noise := make([]byte, 60<<10)
			rand.Read(noise)
			params["data"] = fmt.Appendf(nil, "[0, \"o\", %q]\n", base64.StdEncoding.EncodeToString(noise))
			if _, err := try[imported](s, importer, "pane.import", params); err != nil {
				return
			}
		}
	}()
	s.untilHealth(c, "full", func(h health) bool { return h.Store.State == "full" })
	importer.Close()
	<-went
	s.untilHealth(c, "ok", func(h health) bool { return h.Store.State == "ok" })
	pane := s.run(c, 80, 24, "sh", "-c", "echo hi; sleep 1000")
	s.until(c, pane, "recorded", func(i paneInfo) bool { return i.Durable == 4 })
}

// untilHealth polls doctor until ok.
func (s *server) untilHealth(c *wire.Client, what string, ok func(health) bool) health {
	s.t.Helper()
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(50 * time.Millisecond) {
		h := call[health](s, c, "doctor", obj{})
		if ok(h) {
			return h
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("not %s: %+v\n%s", what, h, s.log)
		}
	}
}

// TestCrashInGap kills the daemon while nothing is recorded: the offsets and the
// epochs that were seen meanwhile do not come again.
func TestCrashInGap(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "64m")
	s := &server{t: t, ctx: t.Context(), dir: filepath.Join(disk, "s")}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	c := s.client()
	pane := s.run(c, 80, 24, "sh", "-c", `yes "$(printf '\033c123456789')"`)
	s.until(c, pane, "writing", func(i paneInfo) bool { return i.Durable > 1<<16 })
	fill := fillUp(t, disk)
	var seen paneInfo
	s.until(c, pane, "far ahead of the log", func(i paneInfo) bool { seen = i; return i.Offset > i.Durable+8<<20 })
	s.end(syscall.SIGKILL)
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	s.start()
	c = s.client()
	got := call[paneInfo](s, c, "pane.get", obj{"pane": pane})
	if got.Offset < seen.Offset || got.Epoch <= seen.Epoch {
		t.Errorf("before the crash %+v, after it %+v", seen, got)
	}
	a := call[sinceAnswer](s, c, "pane.capture_since", obj{"pane": pane, "since": seen.Offset, "format": "raw"})
	if !a.Missed || a.From != got.Offset || a.MissedBytes != got.Offset-seen.Offset {
		t.Errorf("from where a client stood: %+v", a)
	}
}

// checkAround reads a stream with one gap, which begins at from: every byte is
// what the program wrote at that offset. It returns where the gap ends.
func (s *server) checkAround(c *wire.Client, pane string, from uint64) (end uint64) {
	s.t.Helper()
	params := obj{"pane": pane, "since": 0, "format": "raw", "max_bytes": 1 << 20}
	missed := uint64(0)
	for at := uint64(0); ; {
		a := call[sinceAnswer](s, c, "pane.capture_since", params)
		if a.Missed {
			missed++
			if at != from || a.From-at != a.MissedBytes {
				s.t.Errorf("%s: missed %d bytes at %d, not at %d", pane, a.MissedBytes, at, from)
			}
			at, end = a.From, a.From
		}
		if a.From != at || a.Offset != at+uint64(len(a.Data)) {
			s.t.Fatalf("%s: an answer from %d to %d at %d with %d bytes", pane, a.From, a.Offset, at, len(a.Data))
		}
		if want := fixedBytes(at, a.Offset); !bytes.Equal(a.Data, want) {
			s.t.Fatalf("%s: byte %d differs", pane, at+uint64(common(a.Data, want)))
		}
		if at = a.Offset; at > from+1<<16 && missed > 0 {
			break
		}
		delete(params, "since")
		params["cursor"] = a.Cursor
	}
	if missed != 1 {
		s.t.Errorf("%s: %d gaps", pane, missed)
	}
	return end
}

// fixedBytes are bytes [from, to) of the program: lines of 62 digits and CR LF.
func fixedBytes(from, to uint64) []byte {
	var b bytes.Buffer
	for i := from / 64; i <= to/64; i++ {
		fmt.Fprintf(&b, "%062d\r\n", i)
	}
	return b.Bytes()[from%64 : from%64+to-from]
}
