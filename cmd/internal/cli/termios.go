package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// rawMode makes the terminal f pass on every key as it is, and returns what it was set
// to before.
func rawMode(f *os.File) (before *unix.Termios, err error) {
	before, err = unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return nil, err
	}
	raw := *before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	return before, unix.IoctlSetTermios(int(f.Fd()), setTermios, &raw)
}

// setMode sets a terminal to what rawMode returned.
func setMode(f *os.File, mode *unix.Termios) error {
	return unix.IoctlSetTermios(int(f.Fd()), setTermios, mode)
}

// terminalSize is the size of the terminal f. One that does not know it has 80x24.
func terminalSize(f *os.File) (cols, rows int) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col == 0 || w.Row == 0 {
		return 80, 24
	}
	return int(w.Col), int(w.Row)
}
