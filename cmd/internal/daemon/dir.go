package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// SocketName is the socket's default name in the state directory.
const SocketName = "looptape.sock"

// LogName is the file that a daemon in the background logs to.
const LogName = "daemon.log"

// maxSocketPath is the longest path of a Unix socket, without its final NUL.
const maxSocketPath = 107

// ResolveDir finds the state directory: the flag, else LOOPTAPE_DIR, else
// looptape under XDG_STATE_HOME, else ~/.local/state/looptape. It returns an
// absolute path.
func ResolveDir(flag string) (string, error) {
	dir := flag
	if dir == "" {
		dir = os.Getenv("LOOPTAPE_DIR")
	}
	if dir == "" {
		if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
			dir = filepath.Join(state, "looptape")
		}
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("there is no home directory to keep recordings in: give --dir, or set LOOPTAPE_DIR")
		}
		dir = filepath.Join(home, ".local", "state", "looptape")
	}
	return filepath.Abs(dir)
}

// ResolveSocket finds the socket: the flag, else LOOPTAPE_SOCKET, else
// looptape.sock in the state directory.
func ResolveSocket(flag, dir string) string {
	if flag != "" {
		return flag
	}
	if s := os.Getenv("LOOPTAPE_SOCKET"); s != "" {
		return s
	}
	return filepath.Join(dir, SocketName)
}

// PrepareDir makes the state directory, or checks the one that is there.
func PrepareDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the state directory: %w", err)
	}
	info, err := CheckDir(dir)
	if err == nil && info.Mode().Perm() != 0o700 {
		err = os.Chmod(dir, 0o700)
	}
	return err
}

// CheckDir checks that the state directory belongs to this user, and that
// nobody else may write to it, or could put another in its place by a link.
func CheckDir(dir string) (fs.FileInfo, error) {
	uid := uint32(os.Geteuid())
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != uid && owner != 0 {
			return nil, fmt.Errorf("%s is a link of uid %d's: give another --dir", dir, owner)
		}
		if info, err = os.Stat(dir); err != nil {
			return nil, err
		}
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	switch {
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory: give another --dir", dir)
	case owner != uid:
		return nil, fmt.Errorf("%s belongs to uid %d, and this is uid %d: give another --dir", dir, owner, uid)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("others may write to %s (mode %04o), so what it holds cannot be trusted: chmod 700 it, or give another --dir", dir, info.Mode().Perm())
	}
	return info, nil
}
