//go:build !linux

package recorder

import "golang.org/x/sys/unix"

// waitChild returns how the child ended, and reaps it; it costs a thread.
func waitChild(pid int) unix.WaitStatus { return waitBlocking(pid) }

// members knows the leader only where there is no /proc.
func (c *child) members() []int {
	if c.isReaped() {
		return nil
	}
	return []int{c.pid}
}
