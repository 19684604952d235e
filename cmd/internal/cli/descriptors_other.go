//go:build !linux

package cli

import (
	"syscall"
)

// keepDescriptors keeps what this process inherited beyond its standard ones,
// such as the lock of a script, from the programs that it starts.
func keepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}
