package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"looptape/cmd/internal/wire"
)

// stubborn is a program that SIGHUP does not end. It says its process id and its user
// when it is ready. Its arguments say what else it does:
//
//	notty   give up its terminal, so that nothing finds it by that
//	thread  end its first thread, so that the process looks like one that has ended
//	root    become root for good, as a setuid program can
func stubborn() {
	signal.Ignore(syscall.SIGHUP)
	for _, arg := range os.Args[1:] {
		var err error
		switch arg {
		case "notty":
			err = unix.IoctlSetInt(0, unix.TIOCNOTTY, 0)
		case "thread":
			endFirstThread()
		case "root":
			err = errors.Join(syscall.Setgid(0), syscall.Setuid(0))
		}
		if err != nil {
			fmt.Println(arg, err)
			os.Exit(1)
		}
	}
	fmt.Printf("process %d of user %d\n", os.Getpid(), os.Getuid())
	time.Sleep(lifetime)
}

// endFirstThread returns when the process has the state of one that has ended.
func endFirstThread() {
	var threads sync.WaitGroup
	end := func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
		}
		time.Sleep(lifetime) // keeps this thread: somebody else gets the first one
	}
	threads.Go(end)
	for {
		stat, err := os.ReadFile("/proc/self/stat")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if strings.Contains(string(stat), ") Z ") {
			return
		}
		threads.Go(end)
		time.Sleep(time.Millisecond)
	}
}

var readyLine = regexp.MustCompile(`process (\d+) of user (\d+)\r\n`)

// ready reads what a stubborn program says; ok is false as long as it is not all there.
func ready(said []byte) (pid, uid int, ok bool) {
	found := readyLine.FindSubmatch(said)
	if found == nil {
		return 0, 0, false
	}
	pid, _ = strconv.Atoi(string(found[1]))
	uid, _ = strconv.Atoi(string(found[2]))
	return pid, uid, true
}

// lives reports whether a process is there and has not ended.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// runStubborn runs a stubborn program in a window of its own, and returns when it is
// ready.
func (s *server) runStubborn(c *wire.Client, args ...string) (ids struct{ Session, Window, Pane string }, pid int) {
	s.t.Helper()
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	ids = call[struct{ Session, Window, Pane string }](s, c, "window.create", obj{"session": session, "argv": append([]string{"stubborn"}, args...)})
	s.until(c, ids.Pane, "ready", func(paneInfo) (ok bool) {
		pid, _, ok = ready(s.raw(c, ids.Pane))
		return ok
	})
	s.t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	return ids, pid
}

// TestKillStubborn: whatever a program has done to its terminal and its threads, it is
// ended, by each verb that does so.
func TestKillStubborn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	var kills sync.WaitGroup
	defer kills.Wait()
	for _, k := range []struct{ verb, on, how string }{
		{"pane.kill", "pane", "notty"},
		{"pane.kill", "pane", "thread"},
		{"window.kill", "window", "notty"},
		{"session.kill", "session", "notty"},
	} {
		ids, pid := s.runStubborn(c, k.how)
		id := map[string]string{"pane": ids.Pane, "window": ids.Window, "session": ids.Session}[k.on]
		kills.Go(func() {
			ctx, cancel := context.WithTimeout(s.ctx, patience)
			defer cancel()
			if _, err := c.Call(ctx, k.verb, obj{k.on: id}); err != nil {
				t.Errorf("%s of %s: %v", k.verb, k.how, err)
			}
			type killed struct{ Exit struct{ Signal string } }
			p, err := try[killed](s, c, "pane.get", obj{"pane": ids.Pane})
			if err != nil || p.Exit.Signal != "SIGKILL" || lives(pid) {
				t.Errorf("%s of %s: behind it the exit is %+v, %v; it lives: %v", k.verb, k.how, p, err, lives(pid))
			}
		})
	}
}

// TestStopNamesSurvivors: a program that goes on when the daemon stops is named, and
// what it wrote before is recorded.
func TestStopNamesSurvivors(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	ids, pid := s.runStubborn(c, "notty")
	quiet := s.run(c, 80, 24, "cat")
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Errorf("the daemon ends with %v", err)
	}
	if !lives(pid) {
		t.Error("the program has ended")
	}
	if said := s.log.String(); strings.Count(said, "goes on") != 1 || !strings.Contains(said, fmt.Sprintf("pid=%d\n", pid)) {
		t.Errorf("of process %d, which goes on, and %s, which does not, the daemon says:\n%s", pid, quiet, said)
	}
	s.start()
	if said := s.raw(s.client(), ids.Pane); !regexp.MustCompile(`^` + readyLine.String() + `$`).Match(said) {
		t.Errorf("recorded is %q", said)
	}
}

// bystander is a user whose daemon runs a setuid program, which it may not end.
type bystander struct {
	t   *testing.T
	dir string
	uid uint32
}

// newBystander makes a directory with the programs of such a user in it.
func newBystander(t *testing.T) *bystander {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a daemon as somebody else")
	}
	dir, err := os.MkdirTemp("", "lt") // short, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b := &bystander{t, dir, 12345}
	for name, mode := range map[string]os.FileMode{"looptape": 0o755, "stubborn": 0o755 | os.ModeSetuid} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		b.install(path, filepath.Join(dir, name), mode)
	}
	if err := errors.Join(os.Mkdir(dir+"/home", 0o700), os.Chown(dir+"/home", int(b.uid), int(b.uid)), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bystander) install(from, to string, mode os.FileMode) {
	b.t.Helper()
	in, err := os.Open(from)
	if err != nil {
		b.t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close(), os.Chmod(to, mode)); err != nil {
		b.t.Fatal(err)
	}
}

// command is a command line of the user's. One that takes too long is ended.
func (b *bystander) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*patience)
	b.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, "looptape"), args...)
	cmd.Dir = b.dir
	cmd.Env = []string{"PATH=" + b.dir + ":" + os.Getenv("PATH"), "LOOPTAPE_DIR=" + b.dir + "/home/s", "LOOPTAPE_TOKEN=@owner"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: b.uid, Gid: b.uid}}
	return cmd
}

// start starts a daemon, and a setuid program in it.
func (b *bystander) start() (daemon *exec.Cmd, log *bytes.Buffer, pid int) {
	b.t.Helper()
	daemon, log = b.command("serve"), &bytes.Buffer{}
	daemon.Stdout, daemon.Stderr = log, log
	if err := daemon.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.poll("a daemon", func() bool { return b.command("doctor").Run() == nil })
	if said, err := b.command("run", "--", "stubborn", "notty", "root").CombinedOutput(); err != nil {
		b.t.Fatalf("run: %v\n%s", err, said)
	}
	uid := 0
	b.poll("the program", func() (ok bool) {
		said, err := b.command("pane", "export", "--pane", "p0", "--format", "raw").Output()
		if err != nil {
			b.t.Fatal(err)
		}
		pid, uid, ok = ready(said)
		if !ok && bytes.Contains(said, []byte("not permitted")) {
			b.t.Skip("setuid programs have no effect here")
		}
		return ok
	})
	b.t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	if uid != 0 {
		b.t.Fatalf("the program runs as %d", uid)
	}
	return daemon, log, pid
}

func (b *bystander) poll(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s is not there", what)
		}
	}
}

// refuses checks that a command says that the system does not let the daemon signal
// the process, and exits accordingly.
func (b *bystander) refuses(pid int, args ...string) {
	cmd := b.command(args...)
	said, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(string(said), fmt.Sprintf("'sudo kill %d'", pid)) {
		b.t.Errorf("%v: %v\n%s", args, err, said)
	}
}

// TestKillOtherUser: a program that the daemon may not signal is not waited for: the
// caller is told why it goes on and what ends it. It goes on being recorded.
func TestKillOtherUser(t *testing.T) {
	t.Parallel()
	b := newBystander(t)
	daemon, log, pid := b.start()
	b.refuses(pid, "pane", "kill", "--pane", "p0", "--signal", "TERM")
	b.refuses(pid, "pane", "kill", "--pane", "p0")
	if said, err := b.command("pane", "list", "--state", "running").Output(); err != nil || !bytes.Contains(said, []byte("p0")) || !lives(pid) {
		t.Errorf("afterwards these run: %s (%v)", said, err)
	}
	syscall.Kill(pid, syscall.SIGKILL) // as the message says
	if said, err := b.command("pane", "wait", "--pane", "p0", "--exit", "--since", "0").CombinedOutput(); err != nil {
		t.Errorf("wait: %v\n%s", err, said)
	}
	daemon.Process.Signal(syscall.SIGTERM)
	if err := daemon.Wait(); err != nil || strings.Contains(log.String(), "goes on") {
		t.Errorf("the daemon ends with %v:\n%s", err, log)
	}
}

// TestStopOtherUser: a daemon that is told to stop while somebody waits for the end of
// such a program stops, says what becomes of that, and has recorded it.
func TestStopOtherUser(t *testing.T) {
	t.Parallel()
	b := newBystander(t)
	daemon, log, pid := b.start()
	kill := b.command("window", "kill", "--window", "w0")
	if err := kill.Start(); err != nil {
		t.Fatal(err)
	}
	b.poll("the end of the window", func() bool {
		said, err := b.command("window", "list").Output()
		return err == nil && !bytes.Contains(said, []byte("w0"))
	})
	daemon.Process.Signal(syscall.SIGTERM)
	if err := daemon.Wait(); err != nil || !strings.Contains(log.String(), fmt.Sprintf("pid=%d\n", pid)) {
		t.Errorf("the daemon ends with %v, and says of process %d:\n%s", err, pid, log)
	}
	kill.Wait()
	if code := kill.ProcessState.ExitCode(); code != 4 && code != 7 { // the program's user, or the stop
		t.Errorf("the kill ends with code %d", code)
	}
	if !lives(pid) {
		t.Error("the program has ended")
	}
	again := b.command("serve")
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	defer again.Wait()
	defer again.Process.Kill()
	b.poll("a daemon", func() bool { return b.command("doctor").Run() == nil })
	if said, err := b.command("pane", "export", "--pane", "p0", "--format", "raw").Output(); err != nil || !regexp.MustCompile(`^`+readyLine.String()+`$`).Match(said) {
		t.Errorf("recorded is %q, %v", said, err)
	}
}

// TestKillInKernel: a program that waits in the kernel, for a file system that does not
// answer, is not waited for. It ends when the file system answers, and that is recorded.
func TestKillInKernel(t *testing.T) {
	t.Parallel()
	m := newDeadMount(t, fuseGetattr, fuseLookup, fuseAccess)
	s := newServer(t)
	c := s.client()
	var panes []string
	for range 2 {
		panes = append(panes, s.run(c, 80, 24, "sh", "-c", `echo process $$ of user 0; exec cat "$0"`, m.dir+"/script"))
	}
	m.hold(fuseOpen, len(panes))
	pid, _, ok := ready(s.raw(c, panes[0]))
	if !ok {
		t.Fatalf("it says %q", s.raw(c, panes[0]))
	}
	if e := s.refuses(c, "pane.kill", obj{"pane": panes[0]}, "timeout.kill"); !strings.Contains(e.Message, fmt.Sprintf("process %d has not ended", pid)) {
		t.Errorf("the kill says: %s", e.Message)
	}
	if !lives(pid) {
		t.Error("the program has ended")
	}
	m.revive()
	for _, pane := range panes {
		s.until(c, pane, "exited", exited)
	}
	// The first signal that it got, as a rule.
	if p := call[struct{ Exit struct{ Signal string } }](s, c, "pane.get", obj{"pane": panes[0]}); p.Exit.Signal != "SIGHUP" && p.Exit.Signal != "SIGKILL" {
		t.Errorf("its exit is %+v", p)
	}
	if said := string(s.raw(c, panes[1])); !strings.Contains(said, "exec sleep 1000") {
		t.Errorf("the program that was not killed has read %q", said)
	}
}
