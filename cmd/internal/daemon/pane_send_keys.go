package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"looptape/cmd/internal/wire"
	"looptape/replay"
)

// keysParams are the parameters of pane.send_keys.
type keysParams struct {
	Keys  *[]string `json:"keys"`
	Paste *string   `json:"paste"`
	Mouse *string   `json:"mouse"`
}

func (s *Server) paneSendKeys(ctx context.Context, r *request) (any, error) {
	var p keysParams
	if err := r.decode(&p); err != nil {
		return nil, err
	}
	w, err := s.findLive(r)
	if err != nil {
		return nil, err
	}
	var modes replay.Modes
	if err := w.live.View(ctx, func(t *replay.Terminal, _ bool) { modes = t.Modes() }); err != nil {
		return nil, liveError(w, err)
	}
	input, err := p.encode(modes)
	if err != nil {
		return nil, err
	}
	offset, err := w.live.Write(ctx, input)
	return map[string]uint64{"offset": offset}, liveError(w, err)
}

// encode makes the bytes that the one of p's parameters that is given sends to a
// program under modes.
func (p *keysParams) encode(modes replay.Modes) (input []byte, err error) {
	given := 0
	for _, is := range []bool{p.Keys != nil, p.Paste != nil, p.Mouse != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, invalidKeys("keys", "pane.send_keys takes exactly one of keys, paste and mouse")
	case p.Paste != nil:
		return replay.EncodePaste(*p.Paste, modes), nil
	case p.Mouse != nil:
		return encodeMouse(*p.Mouse, modes)
	}
	for _, name := range *p.Keys {
		key, err := replay.EncodeKey(name, modes)
		if err != nil {
			return nil, invalidKeys("keys", strings.TrimPrefix(err.Error(), "replay: ")+": a text goes by paste, or by pane.write")
		}
		input = append(input, key...)
	}
	return input, nil
}

// mouseButtons and mouseActions are the words of a mouse event, by their number.
var (
	mouseButtons = []string{"none", "left", "middle", "right", "wheelup", "wheeldown"}
	mouseActions = []string{"press", "release", "move"}
)

func encodeMouse(text string, modes replay.Modes) ([]byte, error) {
	var action, button string
	var ev replay.Mouse
	n, err := fmt.Sscanf(text, "%s %s %d %d", &action, &button, &ev.Col, &ev.Row)
	a, b := slices.Index(mouseActions, action), slices.Index(mouseButtons, button)
	if n != 4 || err != nil || a < 0 || b < 0 || ev.Col < 0 || ev.Row < 0 {
		return nil, invalidKeys("mouse", fmt.Sprintf("%q is no mouse event: it is an action (%v), a button (%v), column and row from 0", text, mouseActions, mouseButtons))
	}
	ev.Action, ev.Button = replay.MouseAction(a), b
	input := replay.EncodeMouse(ev, modes)
	if len(input) == 0 {
		return nil, &wire.Error{Code: "conflict.mode", Message: "the program does not ask for such mouse events"}
	}
	return input, nil
}

func invalidKeys(param, message string) error {
	return &wire.Error{Code: "invalid_params.keys", Message: message, Data: map[string]string{"param": param}}
}
