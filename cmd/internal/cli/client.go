package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/wire"
)

// connect dials the daemon with a token as LOOPTAPE_TOKEN writes it.
func (a *app) connect(ctx context.Context, token string, maxFrame int) (*wire.Client, error) {
	socket, h, err := a.greeting(token, maxFrame)
	if err != nil {
		return nil, err
	}
	return wire.Dial(ctx, socket, h)
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
