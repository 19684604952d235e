package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listen opens the socket. The caller holds the store's lock, so that a socket
// at the default place that answers nobody is left over from a dead daemon.
func listen(path string) (*net.UnixListener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket %s is longer than %d bytes: give a shorter --socket", path, maxSocketPath)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s is there and is no socket: move it away, or give another --socket", path)
		}
		// Only a socket that refuses is nobody's; a busy daemon says otherwise.
		nc, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("another daemon listens on %s: stop it, or give another --socket", path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the stale socket: %w", err)
		}
	}
	// Until programs run in panes, nothing else is affected by the umask.
	was := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(was)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}
