package cli

import (
	"math"

	"golang.org/x/sys/unix"
)

// keepDescriptors keeps what this process inherited beyond its standard ones,
// such as the lock of a script, from the programs that it starts.
func keepDescriptors() { unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }
