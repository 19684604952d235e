package recorder

import (
	"context"
	"fmt"
	"os"
)

// execHead is how much of a file the kernel looks at to see what it is.
const execHead = 256

// LateError says that a program had not started when the context ended: its directory
// or its file is on a file system that does not answer, or the system is busy. What
// still comes of it is ended.
type LateError struct {
	Over <-chan struct{} // closed once nothing is left of it: until then it holds a thread, and maybe a PTY
	Err  error           // the cause of the context's end
}

func (e *LateError) Error() string { return fmt.Sprintf("the program has not started: %v", e.Err) }
func (e *LateError) Unwrap() error { return e.Err }

// started is a program that runs on a PTY, or why there is none.
type started struct {
	pty   *master
	child *child
	err   error
}

// start runs the program of c on a new PTY, but waits for that no longer than ctx.
func start(ctx context.Context, c Config) (started, error) {
	result := make(chan started, 1)
	go c.start(result)
	select {
	case s := <-result:
		return s, s.err
	case <-ctx.Done():
		over := make(chan struct{})
		go c.undo(result, over)
		return started{}, &LateError{over, context.Cause(ctx)}
	}
}

// start is the part that may wait for a file system, for as long as that takes. It ends
// with the result; nobody waits for it longer than they like.
func (c Config) start(result chan<- started) {
	pty, child, err := c.startOnPTY()
	result <- started{pty, child, err}
}

// startOnPTY first does itself what may wait for a file system. From the fork to the
// exec, all of this process waits: for the garbage collector, which waits for that
// thread, and for the lock of all forks.
func (c Config) startOnPTY() (*master, *child, error) {
	dir := c.Dir
	if dir != "" {
		if err := checkDir(dir); err != nil {
			return nil, nil, &StartError{"cwd", err}
		}
		entered, err := enter(dir)
		if err != nil {
			return nil, nil, &StartError{"cwd", fmt.Errorf("the directory %s: %w", dir, err)}
		}
		if entered {
			dir = ""
		}
	}
	path, err := lookPath(c.Argv[0], c.Dir, c.Env)
	if err != nil {
		return nil, nil, &StartError{"argv", err}
	}
	touch(within(c.Dir, path))
	pty, tty, err := openPTY(c.Cols, c.Rows)
	if err != nil {
		return nil, nil, err
	}
	defer tty.Close()
	child, err := startChild(tty, path, c.Argv, dir, c.Env)
	if err != nil {
		pty.Close()
		return nil, nil, err
	}
	return pty, child, nil
}

// touch reads the beginning of a program, if it can, as an exec does.
func touch(path string) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		f.Read(make([]byte, execHead))
	}
}

// undo ends what comes of a start that was given up. It closes over when nothing is
// left, and ends; the holder of the LateError may wait for that.
func (c Config) undo(result <-chan started, over chan<- struct{}) {
	defer close(over)
	s := <-result
	if s.err != nil {
		return
	}
	s.pty.Close()
	if err := s.child.hangUp(0); err != nil {
		c.Logger.Error("a program that started too late goes on, unrecorded", "argv", c.Argv, "err", err)
	}
}
