package daemon

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// samePeer says whether the process at the other end runs as this user.
func samePeer(nc *net.UnixConn) bool {
	raw, err := nc.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); cerr != nil || err != nil {
		return false
	}
	return cred.Uid == uint32(os.Geteuid())
}
