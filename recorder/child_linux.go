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

// members lists the processes of the child's session, the child first until it is
// reaped: what /proc says of it may look like that of one that has ended, while
// threads of it run. Until then the session's number is the child's alone, whether
// it has kept its terminal or not. Afterwards numbers come again: a session on a
// terminal is another one, since this one has lost its own with its leader.
func (c *child) members() (pids []int) {
	reaped := c.isReaped() // first: who is listed later may be
	if !reaped {
		pids = []int{c.pid}
	}
	all, err := processes.list()
	if err != nil {
		return pids
	}
	session := strconv.Itoa(c.pid)
	for _, p := range all {
		if p.session == session && p.pid != c.pid && (!reaped || p.terminal == "0") {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
