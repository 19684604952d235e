package recorder

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// enter makes dir the working directory of the calling goroutine's thread alone, and
// of what it starts; then the thread ends with the goroutine. done is false if the
// system does not let it.
func enter(dir string) (done bool, err error) {
	runtime.LockOSThread()
	// The first thread would not end.
	if unix.Gettid() == os.Getpid() || unix.Unshare(unix.CLONE_FS) != nil {
		runtime.UnlockOSThread()
		return false, nil
	}
	return true, unix.Chdir(dir)
}
