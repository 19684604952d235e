package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// link is the connection to the daemon: made when it is first needed, and again
// when it broke.
type link struct {
	dial func(context.Context) (*wire.Client, error)

	lock   chan struct{} // holds one: whoever took it owns client
	client *wire.Client  // nil before the first call
}

func newLink(dial func(context.Context) (*wire.Client, error)) *link {
	l := &link{dial: dial, lock: make(chan struct{}, 1)}
	l.lock <- struct{}{}
	return l
}

// connect returns a connection that stands, as far as is known.
func (l *link) connect(ctx context.Context) (*wire.Client, error) {
	select {
	case <-l.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { l.lock <- struct{}{} }()
	if l.client != nil && l.client.Alive() {
		return l.client, nil
	}
	if l.client != nil {
		l.client.Close()
		l.client = nil
	}
	c, err := l.dial(ctx)
	if err == nil {
		l.client = c
	}
	return c, err
}

// use has f use a connection. If that breaks meanwhile, f is called once more
// with a new one, unless v changes something: nobody knows then whether it did.
func (l *link) use(ctx context.Context, v *manifest.Verb, f func(*wire.Client) error) error {
	for again := v.Changes() == manifest.Reads; ; again = false {
		c, err := l.connect(ctx)
		if err != nil {
			return err
		}
		if err = f(c); !again || !isLost(err) {
			return err
		}
	}
}

// call runs v and returns its result; what it streams before that is not kept.
func (l *link) call(ctx context.Context, v *manifest.Verb, params any) (result json.RawMessage, err error) {
	err = l.use(ctx, v, func(c *wire.Client) (err error) {
		result, err = c.Call(ctx, v.Name, params)
		return err
	})
	return result, err
}

func isLost(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Code == "unavailable.connection"
}
