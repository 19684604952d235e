package daemon

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"looptape/cmd/internal/wire"
)

const (
	maxClients = 1024
	maxPanes   = 512
	// leastDescriptors is with how few descriptors a daemon starts.
	leastDescriptors = 64
	// paneDescriptors is what a pane holds: its PTY, and the pidfd of its program.
	paneDescriptors = 2
	// leastClients is how many clients are served whatever the panes take, so that
	// somebody can end one.
	leastClients = 8
	// maxStarts is how many programs start at once. Each takes six descriptors for
	// a moment.
	maxStarts = 4
	// maxTables is how many tables the store keeps open.
	maxTables = 256
)

// limits is what of the process's descriptors goes where (ulimit -n). The store
// and the daemon itself come first; a third of what is left is for clients, the
// rest for panes. Go has raised the soft limit to the hard one, and gives
// programs in panes the soft one back.
type limits struct {
	descriptors int // of the process
	tables      int // that the store keeps open
	clients     int // served at once
	panes       int // whose terminal is open
	starts      int // of programs at once
}

// findLimits looks at the process, before it opens anything.
func findLimits() (limits, error) {
	var n unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &n); err != nil {
		return limits{}, fmt.Errorf("find out how many files may be open: %w", err)
	}
	l := limits{descriptors: int(min(n.Cur, math.MaxInt32))}
	if l.descriptors < leastDescriptors-1 { // Go leaves one
		return l, l.tooFew(leastDescriptors)
	}
	l.tables = min(max(l.descriptors/8, 8), maxTables)
	l.starts = min(max(l.descriptors/64, 1), maxStarts)
	return l, nil
}

// divide gives clients and panes their part, when everything that the daemon
// needs for itself is open.
func (l *limits) divide() error {
	open := openDescriptors()
	// Some are open for a moment: tables that are written, directories that are
	// synced, a program that starts, a client that is refused.
	left := l.descriptors - open - l.tables - 16 - min((l.descriptors-leastDescriptors)/16, 64)
	l.clients = min(max(left/3, leastClients), maxClients)
	l.panes = min((left-l.clients)/paneDescriptors, maxPanes)
	if l.panes < 1 {
		return l.tooFew(l.descriptors - left + leastClients + paneDescriptors)
	}
	return nil
}

func (l *limits) tooFew(least int) error {
	return fmt.Errorf("this process may open %d files (ulimit -n), and a daemon needs %d: raise the limit, then start it again", l.descriptors, least)
}

// openDescriptors counts the open descriptors of the process.
func openDescriptors() int {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 32
	}
	return len(names)
}

// tooManyPanes refuses a program.
func (l *limits) tooManyPanes() error {
	e := &wire.Error{
		Code: "limit.panes", Message: fmt.Sprintf("the daemon runs %d programs, as many as it can: end one with 'looptape pane kill'", l.panes),
		Data: map[string]int{"panes": l.panes},
	}
	if l.panes < maxPanes {
		e.Message = fmt.Sprintf("the daemon runs %d programs, as many as it can with %d open files (ulimit -n): end one with 'looptape pane kill', or start the daemon with a higher limit", l.panes, l.descriptors)
		e.Data = map[string]int{"panes": l.panes, "descriptors": l.descriptors}
	}
	return e
}

// tooManyClients refuses a connection.
func (l *limits) tooManyClients() *wire.Error {
	e := &wire.Error{
		Code: "limit.clients", Message: fmt.Sprintf("the daemon serves %d clients already: try again later", l.clients),
		Data: map[string]int{"clients": l.clients},
	}
	if l.clients < maxClients {
		e.Message += fmt.Sprintf(", or start it with more than %d open files (ulimit -n)", l.descriptors)
		e.Data = map[string]int{"clients": l.clients, "descriptors": l.descriptors}
	}
	return e
}
