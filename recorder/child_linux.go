package recorder

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// waitChild returns how the child ended, and reaps it. It waits for a pidfd in
// Go's poller, so that an idle pane costs no thread.
func waitChild(pid int) unix.WaitStatus {
	if fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK); err == nil {
		file := os.NewFile(uintptr(fd), "pidfd")
		defer file.Close()
		var status unix.WaitStatus
		if raw, err := file.SyscallConn(); err == nil {
			done := false
			raw.Read(func(uintptr) bool {
				n, err := unix.Wait4(pid, &status, unix.WNOHANG, nil)
				done = n == pid || err != nil && err != unix.EINTR
				return done
			})
			if done {
				return status
			}
		}
	}
	return waitBlocking(pid)
}

// members lists the processes of the child's session. A session of the same
// number on another terminal is not the child's: numbers come again. (Once the
// leader is gone, the session has no terminal.)
func (c *child) members() (pids []int) {
	reaped := c.isReaped() // first: until then the session has its terminal
	all, err := processes.list()
	switch {
	case err == nil:
	case reaped:
		return nil
	default:
		return []int{c.pid}
	}
	session := strconv.Itoa(c.pid)
	// As the kernel prints a device number: minor 8..19, major, minor 0..7.
	minor, major := uint64(unix.Minor(c.tty)), uint64(unix.Major(c.tty))
	terminal := strconv.FormatUint(minor&0xFF|major<<8|minor&^0xFF<<12, 10)
	if reaped {
		terminal = "0"
	}
	for _, p := range all {
		if p.session == session && p.terminal == terminal {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
