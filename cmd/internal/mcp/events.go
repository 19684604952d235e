package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// defaultBatch is how many events an answer holds at most.
const defaultBatch = 100

// eventBatches makes t, the tool of events, answer in batches.
func eventBatches(t *tool) {
	v := t.verb
	t.notes = "Over MCP it answers a batch: pass after of the answer to the next call. Without after it answers no event, but the number to begin behind."
	t.params = slices.Clone(v.Params)
	for i := range t.params {
		switch p := &t.params[i]; p.Name {
		case "limit":
			p.Summary, p.Default = "Most events in this answer", defaultBatch
		case "wait_ms":
			p.Summary, p.Default = "Wait at most this long for a first event, in milliseconds", 0
		}
	}
	t.result = append([]manifest.Field{{Name: "events", Type: manifest.Array, Fields: v.Item, Summary: "In the order of their numbers"}}, v.Result...)
	params := t.params
	t.run = func(ctx context.Context, l *link, args arguments) (json.RawMessage, error) {
		for i := range params {
			p := &params[i]
			if _, given := args[p.Name]; !given && p.Default != nil {
				args[p.Name], _ = json.Marshal(p.Default)
			}
		}
		var result json.RawMessage
		err := l.use(ctx, v, func(c *wire.Client) error {
			b := batch{Events: []json.RawMessage{}, room: c.Welcome.MaxFrame - resultRoom}
			raw, err := c.Stream(ctx, v.Name, args, b.take)
			switch {
			case errors.Is(err, errEnough):
				b.More = true
			case err != nil:
				return err
			default:
				if err := json.Unmarshal(raw, &b.eventsEnd); err != nil {
					return err
				}
			}
			result, err = wire.Marshal(b)
			return err
		})
		return result, err
	}
}

// batch is an answer of the tool events.
type batch struct {
	Events []json.RawMessage `json:"events"`
	eventsEnd

	room int // bytes that Events may still take
}

// eventsEnd is the result of the verb events.
type eventsEnd struct {
	After     uint64 `json:"after"`
	Missed    uint64 `json:"missed"`
	Restarted bool   `json:"restarted,omitempty"`
	More      bool   `json:"more"`
}

// take takes an event. One that does not fit stops the stream, unless it is the
// first.
func (b *batch) take(item json.RawMessage) error {
	if b.room -= len(item) + 1; b.room < 0 && len(b.Events) > 0 {
		return errEnough
	}
	var e struct {
		Seq  uint64 `json:"seq"`
		Data struct {
			Missed    uint64 `json:"missed"`
			Restarted bool   `json:"restarted"`
		} `json:"data"`
	}
	if err := json.Unmarshal(item, &e); err != nil {
		return err
	}
	b.Events = append(b.Events, item)
	b.After = e.Seq
	b.Missed += e.Data.Missed
	b.Restarted = b.Restarted || e.Data.Restarted
	return nil
}
