package recorder

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLimits: what the system has no more of is told apart from what is wrong with
// the program.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		err          error
		what, advice string
	}{
		{unix.EMFILE, "descriptors", "ulimit -n"},
		{unix.ENFILE, "descriptors", "ulimit -n"},
		{unix.ENOSPC, "terminals", "pty/max"}, // as opening /dev/ptmx says
	} {
		var limit *LimitError
		err := asLimit(fmt.Errorf("open a PTY: %w", &os.PathError{Op: "open", Path: "/dev/ptmx", Err: c.err}), "terminals")
		if !errors.As(err, &limit) || limit.What != c.what || !strings.Contains(err.Error(), c.advice) {
			t.Errorf("%v becomes %v", c.err, err)
		}
	}
	var limit *LimitError
	if err := asLimit(&os.PathError{Op: "fork/exec", Path: "/bin/true", Err: unix.EAGAIN}, "processes"); !errors.As(err, &limit) || limit.What != "processes" {
		t.Errorf("no more processes: %v", err)
	}
	if err := asLimit(unix.EACCES, "processes"); err != unix.EACCES {
		t.Errorf("a file that may not be executed: %v", err)
	}
	if err := asLimit(nil, "processes"); err != nil {
		t.Errorf("no error: %v", err)
	}
}
