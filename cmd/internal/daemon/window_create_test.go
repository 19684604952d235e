package daemon

import (
	"errors"
	"strings"
	"testing"

	"looptape/cmd/internal/wire"
)

// TestRelativeCwd: a directory that depends on where the daemon runs is refused.
func TestRelativeCwd(t *testing.T) {
	for cwd, ok := range map[string]bool{"": true, "/": true, "/no/such": true, "docs": false, "./docs": false, "~": false, "..": false} {
		err := (&windowParams{Cwd: cwd}).check()
		if e := new(wire.Error); ok != (err == nil) || !ok && (!errors.As(err, &e) || e.Code != "invalid_params.cwd" || !strings.Contains(e.Message, "must be an absolute path")) {
			t.Errorf("%q: %v", cwd, err)
		}
	}
}
