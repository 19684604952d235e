package cli

import (
	"context"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/wire"
)

// connect dials the daemon with a token as LOOPTAPE_TOKEN writes it.
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
