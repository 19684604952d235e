package daemon

import (
	"strconv"

	"looptape/cmd/internal/manifest"
)

// The letters that ids of each kind begin with: s0, w0, p0.
var letters = map[manifest.Kind]string{manifest.Session: "s", manifest.Window: "w", manifest.Pane: "p"}

func formatID(kind manifest.Kind, n uint64) string {
	return letters[kind] + strconv.FormatUint(n, 10)
}

// parseID reads an id as formatID writes it, and nothing else: "p007" names no
// pane.
func parseID(kind manifest.Kind, id string) (n uint64, ok bool) {
	if len(id) < 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(id[1:], 10, 64)
	return n, err == nil && formatID(kind, n) == id
}
