package recorder

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ParseSignal reads a signal: "TERM", "SIGTERM", "term" or "15".
func ParseSignal(s string) (unix.Signal, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return unix.Signal(n), n > 0 && n < 65
	}
	name := strings.ToUpper(s)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	sig := unix.SignalNum(name)
	return sig, sig != 0
}

// SignalName is the name of a signal, as SIGTERM; its number if it has none.
func SignalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return strconv.Itoa(n)
}
