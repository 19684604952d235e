package recorder

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// LimitError says that the system lets no more programs start.
type LimitError struct {
	What string // what there is too little of: "descriptors", "terminals" or "processes"
	Err  error
}

func (e *LimitError) Error() string {
	advice := map[string]string{
		"descriptors": "too many files are open: end a program, or start the daemon with a higher 'ulimit -n'",
		"terminals":   "the system has no terminal left: end a program, or raise /proc/sys/kernel/pty/max",
		"processes":   "the system starts no more processes: end some, or raise 'ulimit -u'",
	}
	return fmt.Sprintf("%s (%v)", advice[e.What], e.Err)
}

func (e *LimitError) Unwrap() error { return e.Err }

// asLimit makes a LimitError of what the system says when it has no more; full is
// what it has no more of where it says ENOSPC or EAGAIN.
func asLimit(err error, full string) error {
	switch {
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return &LimitError{"descriptors", err}
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		return &LimitError{full, err}
	}
	return err
}
