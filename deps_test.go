package looptape_test

import (
	_ "github.com/charmbracelet/x/ansi"
	_ "github.com/charmbracelet/x/vt"
	_ "github.com/clipperhouse/displaywidth"
	_ "github.com/clipperhouse/uax29/v2/graphemes"
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/creack/pty"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/sys/unix"
	_ "github.com/charmbracelet/ultraviolet"
)
