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

// child is the program of a pane: the leader of a session whose controlling
// terminal is the pane's PTY.
type child struct {
	pid    int
	tty    uint64        // device number of its terminal
	reaped chan struct{} // closed once exit is set
	exit   replay.Exit
}

// checkDir says what is wrong with a working directory; "" is this process's.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
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

// startChild runs argv on tty. argv[0] is looked up in the PATH of env.
func startChild(tty *os.File, argv []string, dir string, env []string) (*child, error) {
	if err := checkDir(dir); err != nil {
		return nil, &StartError{"cwd", err}
	}
	path, err := lookPath(argv[0], dir, env)
	if err != nil {
		return nil, &StartError{"argv", err}
	}
	var device unix.Stat_t
	if err := unix.Stat(tty.Name(), &device); err != nil {
		return nil, err
	}
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
	c := &child{pid: p.Pid, tty: uint64(device.Rdev), reaped: make(chan struct{})}
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
	if foreground > 0 {
		return unix.Kill(-foreground, sig)
	}
	return unix.Kill(-c.pid, sig)
}

// hangUp ends the whole session of the child: SIGHUP now, SIGKILL to what is
// left after 5 s, helpers that outlive their leader included. It returns when
// none is left, or 5 s after the SIGKILL. foreground is the PTY's foreground group,
// or 0.
func (c *child) hangUp(foreground int) {
	if foreground > 0 {
		unix.Kill(-foreground, unix.SIGHUP)
		unix.Kill(-foreground, unix.SIGCONT) // a stopped program takes no signal
	}
	for _, pid := range c.members() {
		unix.Kill(pid, unix.SIGHUP)
		unix.Kill(pid, unix.SIGCONT)
	}
	if c.gone(hangUpGrace) {
		return
	}
	for _, pid := range c.members() {
		unix.Kill(pid, unix.SIGKILL)
	}
	c.gone(hangUpGrace) // a process that sleeps in the kernel may take longer
}

// gone waits until no process of the session is left, at most for patience, and
// reports whether none is.
func (c *child) gone(patience time.Duration) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(hangUpPoll) {
		if c.isReaped() && len(c.members()) == 0 {
			return true
		}
	}
	return false
}

func (c *child) isReaped() bool {
	select {
	case <-c.reaped:
		return true
	default:
		return false
	}
}
