package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/wire"
)

// connect dials the daemon with a token as LOOPTAPE_TOKEN writes it.
func (a *app) connect(ctx context.Context, token string, maxFrame int) (*wire.Client, error) {
	socket, h, err := a.greeting(token, maxFrame)
	if err != nil {
		return nil, err
	}
	c, err := wire.Dial(ctx, socket, h)
	return c, a.refused(token, err)
}

// refused is err, which says more if it is that nobody has the token: tokens are of
// one state directory, and those that are saved of any.
func (a *app) refused(token string, err error) error {
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != "denied.token" {
		return err
	}
	dir, err := a.dir()
	if err != nil {
		return e
	}
	said := *e
	if name, saved := strings.CutPrefix(token, "@"); saved && name != grant.Owner.Name() {
		if path, err := savedPath(name); err == nil {
			said.Message += ", which is saved in " + path
		}
	}
	said.Message += fmt.Sprintf(": it may be that of another state directory than %s", dir)
	return &said
}

// greeting is where the daemon listens, and what is said to it first.
func (a *app) greeting(token string, maxFrame int) (socket string, h wire.Hello, err error) {
	dir, err := a.dir()
	if err != nil {
		return "", h, err
	}
	h = wire.Hello{Client: "looptape " + daemon.Version, MaxFrame: &maxFrame}
	if a.maxFrame != 0 {
		h.MaxFrame = &a.maxFrame
	} else if text := os.Getenv("LOOPTAPE_MAX_FRAME"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return "", h, &wire.Error{Code: "invalid_params.usage", Message: fmt.Sprintf("LOOPTAPE_MAX_FRAME is %q, which is no number of bytes", text)}
		}
		h.MaxFrame = &n
	}
	h.Token, err = resolveToken(token, dir)
	return daemon.ResolveSocket(a.socketFlag, dir), h, err
}
