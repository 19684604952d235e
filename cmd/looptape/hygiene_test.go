package main_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"looptape/cmd/internal/wire"
)

// TestInheritedDescriptors: a program in a pane has its terminal as descriptors 0,
// 1 and 2, and nothing of the daemon's or of what the daemon inherited, which
// closes all that it has at an exec.
func TestInheritedDescriptors(t *testing.T) {
	t.Parallel()
	s := newIdle(t)
	s.prelude = "exec 7</dev/null 8>&2" // what a careless parent leaves open
	s.start()
	c := s.client()
	for range 5 { // clients, panes and readers, so that there is something to inherit
		s.client()
		s.run(c, 80, 24, "sleep", "1000")
	}
	s.run(c, 80, 24, "seq", "1", "100000")
	pane := s.run(c, 80, 24, "sh", "-c", "for fd in /proc/self/fd/*; do echo $fd; done; readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2")
	s.until(c, pane, "exited", exited)
	lines := strings.Split(strings.TrimSpace(string(s.raw(c, pane))), "\r\n")
	// The shell expands * by a directory that it has open meanwhile, as 3.
	var fds []string
	for _, line := range lines {
		if fd, ok := strings.CutPrefix(line, "/proc/self/fd/"); ok && fd != "3" {
			fds = append(fds, fd)
		}
	}
	if strings.Join(fds, " ") != "0 1 2" {
		t.Errorf("a program has the descriptors %v", fds)
	}
	if n := len(lines); n < 3 || !strings.HasPrefix(lines[n-1], "/dev/pts/") || lines[n-1] != lines[n-2] || lines[n-1] != lines[n-3] {
		t.Errorf("its descriptors are %q", lines)
	}

	dir := fmt.Sprintf("/proc/%d/fdinfo", s.cmd.Process.Pid)
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.ReadFile(filepath.Join(dir, name.Name()))
		if fd, _ := strconv.Atoi(name.Name()); err != nil || fd <= 2 {
			continue // or it is closed by now
		}
		_, rest, _ := strings.Cut(string(info), "flags:")
		flags, err := strconv.ParseInt(strings.Fields(rest)[0], 8, 64)
		if err != nil || flags&unix.O_CLOEXEC == 0 {
			what, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.cmd.Process.Pid, name.Name()))
			t.Errorf("descriptor %s of the daemon (%s) is inherited: flags %o", name.Name(), what, flags)
		}
	}
}

// TestOwnSession: each program leads a session of its own, on a terminal of its own.
func TestOwnSession(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	seen := map[string]bool{}
	for range 3 {
		pane := s.run(c, 80, 24, "sh", "-c", "cat /proc/self/stat; echo $$; sleep 1000")
		s.until(c, pane, "writing", func(i paneInfo) bool { return bytes.Count(s.raw(c, pane), []byte("\n")) == 2 })
		lines := strings.Split(string(s.raw(c, pane)), "\r\n")
		_, stat, _ := strings.Cut(lines[0], ") ")
		f := strings.Fields(stat) // state ppid pgrp session tty_nr ...
		leader := lines[1]
		if f[3] != leader || f[2] != leader || f[4] == "0" {
			t.Errorf("the program %s runs in the group %s and the session %s, on the terminal %s", leader, f[2], f[3], f[4])
		}
		if seen[leader] || seen["tty "+f[4]] {
			t.Errorf("the session %s or the terminal %s is another pane's too", leader, f[4])
		}
		seen[leader], seen["tty "+f[4]] = true, true
	}
}

// TestOrphans: after kill -9 of the daemon, programs have their SIGHUP, and nobody
// holds a terminal open.
func TestOrphans(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	var panes []string
	for i := range 8 {
		script := fmt.Sprintf(`trap 'echo HUP >%s/%d; exit' HUP; echo $$ >>%s; echo ready; while :; do sleep 0.05; done`, dir, i, pids)
		panes = append(panes, s.run(c, 80, 24, "sh", "-c", script))
	}
	// One that stopped reading, one that writes all the time, one idle.
	panes = append(panes, s.run(c, 80, 24, "sh", "-c", "echo $$ >>"+pids+"; echo ready; exec yes"))
	panes = append(panes, s.run(c, 80, 24, "sh", "-c", "echo $$ >>"+pids+"; echo ready; exec cat"))
	for _, p := range panes {
		s.until(c, p, "ready", func(i paneInfo) bool { return i.Offset >= 7 })
	}
	s.end(syscall.SIGKILL)
	assertGone(t, pids)
	for i := range 8 {
		if got, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i))); err != nil || string(got) != "HUP\n" {
			t.Errorf("program %d ended without SIGHUP: %q, %v", i, got, err)
		}
	}
}

// TestModes: whatever the umask, the files of a state directory are 0600 and its
// directories 0700 from the moment they exist: nobody changes a mode later.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, umask := range []string{"000", "077"} {
		s := newIdle(t)
		s.prelude = "umask " + umask
		if err := os.MkdirAll(filepath.Join(s.dir, "store"), 0o700); err != nil {
			t.Fatal(err)
		}
		modes := newModeWatch(t)
		modes.add(s.dir)
		modes.add(filepath.Join(s.dir, "store"))
		s.start()
		modes.add(filepath.Join(s.dir, "store", "db"))
		c := s.client()
		for range 3 {
			pane := s.run(c, 80, 24, "sh", "-c", "umask; seq 1 200000")
			s.until(c, pane, "exited", exited)
			if got := string(s.raw(c, pane)[:4]); got != "0"+umask {
				t.Errorf("a program under umask %s has umask %s", umask, got)
			}
		}
		unknown, err := wire.Dial(s.ctx, filepath.Join(s.dir, "looptape.sock"), wire.Hello{Client: "test"})
		if err != nil {
			t.Fatal(err)
		}
		s.refuses(unknown, "pane.kill", obj{"pane": "p0"}, "denied.") // for the audit log
		unknown.Close()
		if err := s.end(syscall.SIGTERM); err != nil {
			t.Errorf("stop: %v\n%s", err, s.log)
		}
		s.start() // which opens, and writes anew, what is there
		s.end(syscall.SIGKILL)
		for _, change := range modes.changes() {
			t.Errorf("umask %s: %s changed its mode", umask, change)
		}
		files := 0
		if err := filepath.WalkDir(filepath.Dir(s.dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("umask %s: %s has mode %v", umask, path, info.Mode())
			}
			files++
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if files < 12 {
			t.Errorf("%d files: the test tests nothing", files)
		}
	}
}

// modeWatch sees which files in some directories are made, and have their mode
// changed.
type modeWatch struct {
	t    *testing.T
	fd   int
	dirs map[int32]string
}

func newModeWatch(t *testing.T) *modeWatch {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	return &modeWatch{t, fd, map[int32]string{}}
}

func (w *modeWatch) add(dir string) {
	w.t.Helper()
	wd, err := unix.InotifyAddWatch(w.fd, dir, unix.IN_ATTRIB|unix.IN_CREATE)
	if err != nil {
		w.t.Fatal(err)
	}
	w.dirs[int32(wd)] = dir
}

// changes ends the watch and lists what has changed its mode.
func (w *modeWatch) changes() (paths []string) {
	defer unix.Close(w.fd)
	made := 0
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if err != nil {
			break // EAGAIN: that was all
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask, size := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
			name := string(bytes.TrimRight(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size], "\x00"))
			b = b[unix.SizeofInotifyEvent+size:]
			if mask&unix.IN_ATTRIB != 0 && name != "" {
				paths = append(paths, filepath.Join(w.dirs[wd], name))
			}
			if mask&unix.IN_CREATE != 0 {
				made++
			}
		}
	}
	if made < 10 {
		w.t.Errorf("%d files were made: the test tests nothing", made)
	}
	return paths
}
