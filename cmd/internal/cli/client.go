package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/wire"
)

// connect dials the daemon with a token as LOOPTAPE_TOKEN writes it: "" is none,
// @owner the owner's, @name one that was saved, anything else the token itself.
func (a *app) connect(ctx context.Context, token string, maxFrame int) (*wire.Client, error) {
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	h := wire.Hello{Client: "looptape " + daemon.Version, MaxFrame: &maxFrame}
	if a.maxFrame != 0 {
		h.MaxFrame = &a.maxFrame
	}
	if h.Token, err = resolveToken(token, dir); err != nil {
		return nil, err
	}
	return wire.Dial(ctx, daemon.ResolveSocket(a.socketFlag, dir), h)
}

func resolveToken(token, dir string) (*string, error) {
	name, saved := strings.CutPrefix(token, "@")
	var err error
	switch {
	case token == "":
		return nil, nil
	case token == "@owner":
		if _, err = daemon.CheckDir(dir); err == nil {
			token, err = grant.ReadOwnerToken(dir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &wire.Error{Code: "unavailable.daemon", Message: fmt.Sprintf("no daemon has run in %s yet, so it has no owner: start one with 'looptape serve'", dir)}
		}
	case saved:
		token, err = readSavedToken(name)
	}
	if err != nil {
		return nil, &wire.Error{Code: "denied.token", Message: err.Error()}
	}
	return &token, nil
}

// readSavedToken reads a token from looptape/tokens in the configuration
// directory.
func readSavedToken(name string) (string, error) {
	config, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	if name != filepath.Base(name) {
		return "", fmt.Errorf("%q is no name of a token", name)
	}
	raw, err := os.ReadFile(filepath.Join(config, "looptape", "tokens", name))
	return strings.TrimSpace(string(raw)), err
}
