package recorder

import "golang.org/x/sys/unix"

// waitBlocking reaps the child pid in a blocking system call.
func waitBlocking(pid int) unix.WaitStatus {
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			return status
		}
	}
}
