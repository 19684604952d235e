package wire

import (
	"encoding/json"
	"fmt"
)

// hello answers the first request of a connection; false means that it is over.
func (c *conn) hello(r request) bool {
	if *r.Verb != "hello" {
		c.say(nil, &Error{Code: "protocol.hello", Message: fmt.Sprintf("the first request must be hello, not %q", *r.Verb)})
		return false
	}
	welcome, err := c.greet(r.Params)
	if err != nil {
		c.say(r.ID, AsError(err))
		return false
	}
	c.own = newBudget(max(ownFrames*c.weight(), ownLeast))
	return c.sayOK(*r.ID, welcome)
}

func (c *conn) greet(params map[string]json.RawMessage) (Welcome, error) {
	h, err := parseHello(params)
	if err != nil {
		return Welcome{}, err
	}
	caller, name, err := c.h.Hello(h)
	if err != nil {
		return Welcome{}, err
	}
	c.caller = caller
	if h.MaxFrame != nil {
		c.max = min(*h.MaxFrame, CeilingMaxFrame) // only the reader runs yet
	}
	server, format := c.h.Server()
	return Welcome{Proto: Proto, Server: server, ManifestFormat: format, MaxFrame: c.max, Caller: name}, nil
}

func parseHello(params map[string]json.RawMessage) (Hello, error) {
	var h Hello
	fields := map[string]any{"proto": &h.Proto, "client": &h.Client, "token": &h.Token, "max_frame": &h.MaxFrame}
	for name, raw := range params {
		into, known := fields[name]
		if !known {
			return h, invalidHello("unknown", name, fmt.Sprintf("hello has no parameter %s", name))
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return h, invalidHello("type", name, fmt.Sprintf("hello: %s has the wrong type", name))
		}
	}
	if _, ok := params["proto"]; !ok {
		return h, invalidHello("missing", "proto", "hello needs proto, the version of the protocol")
	}
	if h.Proto != Proto {
		return h, &Error{
			Code:    "unsupported.proto",
			Message: fmt.Sprintf("this daemon speaks protocol %d, the client %d: use the looptape of the same version, or restart the daemon", Proto, h.Proto),
			Data:    map[string]int{"proto": Proto},
		}
	}
	if h.MaxFrame != nil && *h.MaxFrame < LowestMaxFrame {
		return h, invalidHello("range", "max_frame", fmt.Sprintf("max_frame must be at least %d", LowestMaxFrame))
	}
	return h, nil
}

func invalidHello(reason, param, message string) *Error {
	return &Error{Code: "invalid_params." + reason, Message: message, Data: map[string]string{"param": param}}
}
