package recorder

import (
	"bytes"
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

// sessionMembers lists the processes of the session whose leader is or was
// leader.
func sessionMembers(leader int) []int {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return []int{leader}
	}
	members := []int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (command) state ppid pgrp session ...; the command may hold anything
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 3 && string(fields[3]) == strconv.Itoa(leader) {
			members = append(members, pid)
		}
	}
	return members
}
