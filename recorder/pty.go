package recorder

import (
	"fmt"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// master is the daemon's end of a PTY, non-blocking and known to Go's poller.
type master struct {
	file *os.File
	raw  syscall.RawConn
}

// openPTY opens a PTY of the given size. The caller closes both ends.
func openPTY(cols, rows int) (*master, *os.File, error) {
	m, tty, err := pty.Open()
	if err != nil {
		return nil, nil, asLimit(fmt.Errorf("open a PTY: %w", err), "terminals")
	}
	defer m.Close()
	own, err := repoll(m)
	if err == nil {
		err = own.setSize(cols, rows)
	}
	if err == nil {
		err = setUTF8(tty)
	}
	if err != nil {
		tty.Close()
		if own != nil {
			own.Close()
		}
		return nil, nil, asLimit(fmt.Errorf("set up a PTY: %w", err), "terminals")
	}
	return own, tty, nil
}

// repoll returns a second handle of the PTY that Go's poller waits for. The one
// that creack/pty makes has been switched to blocking for good by its ioctls.
func repoll(m *os.File) (*master, error) {
	raw, err := m.SyscallConn()
	if err != nil {
		return nil, err
	}
	var dup int
	if cerr := raw.Control(func(fd uintptr) {
		if dup, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			err = unix.SetNonblock(dup, true)
		}
	}); cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(dup), m.Name())
	raw, err = file.SyscallConn()
	return &master{file: file, raw: raw}, err
}

// Close hangs up: the kernel sends SIGHUP to the foreground group of the PTY.
// Whoever waits for the master to become readable or writable returns.
func (m *master) Close() error { return m.file.Close() }

// tryRead reads what is there, without waiting. The error is EAGAIN if nothing
// is, and EIO while no process has the slave open.
func (m *master) tryRead(buf []byte) (n int, err error) {
	cerr := m.raw.Control(func(fd uintptr) {
		for {
			n, err = unix.Read(int(fd), buf)
			if err != unix.EINTR {
				return
			}
		}
	})
	if cerr != nil {
		return 0, cerr
	}
	return max(n, 0), err
}

// waitReadable blocks until a read would not return EAGAIN.
func (m *master) waitReadable() error {
	return m.raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

func (m *master) setSize(cols, rows int) error {
	return m.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
	})
}

// foreground is the process group that reads from the terminal, 0 if none does.
func (m *master) foreground() int {
	var pgrp int
	if err := m.control(func(fd int) (err error) {
		pgrp, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	}); err != nil {
		return 0
	}
	return pgrp
}

func (m *master) control(do func(fd int) error) (err error) {
	if cerr := m.raw.Control(func(fd uintptr) { err = do(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}
