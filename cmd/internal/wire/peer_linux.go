package wire

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SamePeer says whether the process at the other end runs as this user.
func SamePeer(nc *net.UnixConn) bool {
	var cred *unix.Ucred
	var err error
	if !control(nc, func(fd int) { cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED) }) || err != nil {
		return false
	}
	return cred.Uid == uint32(os.Geteuid())
}

// hungUp says whether the peer has closed both halves of the connection: it
// waits for no answer any more.
func hungUp(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	poll := []unix.PollFd{{}}
	return control(sc, func(fd int) {
		poll[0].Fd = int32(fd)
		unix.Poll(poll, 0)
	}) && poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

func control(sc syscall.Conn, f func(fd int)) bool {
	raw, err := sc.SyscallConn()
	return err == nil && raw.Control(func(fd uintptr) { f(int(fd)) }) == nil
}
