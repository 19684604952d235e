package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"looptape/replay"
)

const (
	// hangUpGrace is how long a program may take to end after SIGHUP.
	hangUpGrace = 5 * time.Second
	// hangUpPoll is how often it is looked for meanwhile.
	hangUpPoll = 5 * time.Millisecond
)

// StartError says why a program could not be started.
type StartError struct {
	Param string // what is wrong: "argv" or "cwd"
	Err   error
}

func (e *StartError) Error() string { return e.Err.Error() }
func (e *StartError) Unwrap() error { return e.Err }

// KillError says that a process goes on, though a signal was to end it.
type KillError struct {
	PID int   // a process, or the leader of a process group
	Err error // why it got no signal: EPERM; nil if it got SIGKILL and has not ended yet
}

func (e *KillError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the system does not let the daemon signal process %d, which runs as another user (%v): quit it in its terminal, or have that user or root do it, as by 'sudo kill %[1]d'", e.PID, e.Err)
	}
	return fmt.Sprintf("process %d has not ended %v after SIGKILL: it waits in the kernel, as for a disk or a network file system that does not answer, and ends when that does", e.PID, hangUpGrace)
}

func (e *KillError) Unwrap() error { return e.Err }

// child is the program of a pane: the leader of a session whose controlling
// terminal is the pane's PTY.
type child struct {
	pid    int
	reaped chan struct{} // closed once exit is set
	exit   replay.Exit
}

// checkDir says what is wrong with a working directory.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s", dir)
	case errors.As(err, &path):
		return fmt.Errorf("the directory %s: %w", dir, path.Err)
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%s is not a directory", dir)
	}
	return err
}

// startChild runs the program at path on tty.
func startChild(tty *os.File, path string, argv []string, dir string, env []string) (*child, error) {
	// Pdeathsig stays unset: a later daemon may take over a running child.
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir: dir, Env: env, Files: []*os.File{tty, tty, tty},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
	})
	if limit := new(LimitError); errors.As(asLimit(err, "processes"), &limit) {
		return nil, limit
	}
	if err != nil {
		return nil, &StartError{"argv", err}
	}
	c := &child{pid: p.Pid, reaped: make(chan struct{})}
	p.Release() // reap waits for it, not the os package
	go c.reap()
	return c, nil
}

// reap waits for the child, and ends with it. Who waits for reap waits for
// c.reaped.
func (c *child) reap() {
	status := waitChild(c.pid)
	if status.Signaled() {
		c.exit = replay.Exit{Signaled: true, Number: int(status.Signal())}
	} else {
		c.exit = replay.Exit{Number: status.ExitStatus()}
	}
	close(c.reaped)
}

// lookPath finds the program name as execvp would in the child: names with a
// slash as they are, others in the PATH of env; both relative to dir.
func lookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", errors.New("the name of the program is empty")
	}
	if strings.Contains(name, "/") {
		return name, executable(within(dir, name))
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range filepath.SplitList(path) {
		if d == "" {
			d = "."
		}
		if candidate := filepath.Join(d, name); executable(within(dir, candidate)) == nil {
			if !filepath.IsAbs(candidate) {
				candidate = "./" + candidate
			}
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%s: no such program in PATH (%s)", name, path)
}

func within(dir, path string) string {
	if filepath.IsAbs(path) || dir == "" {
		return path
	}
	return filepath.Join(dir, path)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case info.Mode()&0o111 == 0:
		return &fs.PathError{Op: "exec", Path: path, Err: fs.ErrPermission}
	}
	return nil
}

// signal sends sig to the foreground process group, or to the program's own
// group if there is none.
func (c *child) signal(foreground int, sig unix.Signal) error {
	group := c.pid
	if foreground > 0 {
		group = foreground
	}
	err := unix.Kill(-group, sig)
	if err == unix.EPERM {
		return &KillError{group, err}
	}
	return err
}

// hangUp ends the whole session of the child: SIGHUP now, SIGKILL to what is
// left after 5 s, helpers that outlive their leader included. It returns when
// none is left, or 5 s after the SIGKILL: then a *KillError. foreground is the PTY's
// foreground group, or 0.
func (c *child) hangUp(foreground int) error {
	if foreground > 0 {
		unix.Kill(-foreground, unix.SIGHUP)
		unix.Kill(-foreground, unix.SIGCONT) // a stopped program takes no signal
	}
	for _, pid := range c.members() {
		unix.Kill(pid, unix.SIGHUP)
		unix.Kill(pid, unix.SIGCONT)
	}
	refused := make(map[int]error)
	for _, pid := range c.left(hangUpGrace) {
		if err := unix.Kill(pid, unix.SIGKILL); err == unix.EPERM {
			refused[pid] = err
		}
	}
	left := c.left(hangUpGrace) // a process that sleeps in the kernel may take longer
	if len(left) == 0 {
		return nil
	}
	return &KillError{left[0], refused[left[0]]}
}

// left waits until no process of the session is left, at most for patience, and
// lists those that are, the child first.
func (c *child) left(patience time.Duration) (pids []int) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(hangUpPoll) {
		if c.isReaped() && len(c.members()) == 0 {
			return nil
		}
	}
	return c.members()
}

func (c *child) isReaped() bool {
	select {
	case <-c.reaped:
		return true
	default:
		return false
	}
}
