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
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	h := wire.Hello{Client: "looptape " + daemon.Version, MaxFrame: &maxFrame}
	if a.maxFrame != 0 {
		h.MaxFrame = &a.maxFrame
	} else if text := os.Getenv("LOOPTAPE_MAX_FRAME"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, &wire.Error{Code: "invalid_params.usage", Message: fmt.Sprintf("LOOPTAPE_MAX_FRAME is %q, which is no number of bytes", text)}
		}
		h.MaxFrame = &n
	}
	if h.Token, err = resolveToken(token, dir); err != nil {
		return nil, err
	}
	return wire.Dial(ctx, daemon.ResolveSocket(a.socketFlag, dir), h)
}
