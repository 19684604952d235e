package recorder

import (
	"os"

	"golang.org/x/sys/unix"
)

// setUTF8 makes the line editor of the kernel erase whole UTF-8 characters.
func setUTF8(tty *os.File) error {
	raw, err := tty.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) {
		var t *unix.Termios
		if t, err = unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
			t.Iflag |= unix.IUTF8
			err = unix.IoctlSetTermios(int(fd), unix.TCSETS, t)
		}
	})
	if cerr != nil {
		return cerr
	}
	return err
}
