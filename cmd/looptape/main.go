// Command looptape is a flight recorder for terminals: the daemon, and the
// commands that talk to it.
package main

import (
	"os"

	"looptape/cmd/internal/cli"
)

func main() { os.Exit(cli.Main()) }
