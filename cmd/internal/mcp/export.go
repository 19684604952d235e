package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// defaultPage is how many bytes of an export a page holds: an agent reads them
// all.
const defaultPage = 128000

// resultRoom is what the fields of a page take beside its text, in bytes.
const resultRoom = 1024

// pageParams page an export over MCP, which has no streams.
var pageParams = []manifest.Param{
	{Name: "offset", Summary: "Byte of the export to go on at: next of the page before", Type: manifest.Integer, Min: at(0), Max: at(manifest.Largest), Default: 0},
	{Name: "began", Summary: "from of the first page: the call fails if the log has lost that beginning", Type: manifest.Integer, Min: at(0), Max: at(manifest.Largest)},
	{Name: "max_bytes", Summary: "Most bytes of the export in this page", Type: manifest.Integer, Min: at(1), Max: at(16 << 20), Default: defaultPage},
}

func at(n int64) *int64 { return &n }

// export is what is exported.
type export struct {
	Pane   string `json:"pane"`
	Format string `json:"format"`
}

// end is what is known at the end of an export.
type end struct {
	Missed *uint64 `json:"missed_bytes,omitempty"`
}

// exportPage is one page of an export.
type exportPage struct {
	export
	From   uint64  `json:"from"`
	To     uint64  `json:"to"`
	Offset uint64  `json:"offset"`
	Next   *uint64 `json:"next,omitempty"`
	Done   bool    `json:"done"`
	end
	Text *string `json:"text,omitempty"`
	Data *[]byte `json:"data,omitempty"`
}

// exportPages makes t, the tool of pane.export, page. Each page exports from the
// beginning, up to the same place of the stream, and keeps its part: the pages
// together are one export, whatever the pane does meanwhile.
func exportPages(t *tool) {
	t.notes = "Over MCP it comes page by page: pass the same parameters again, with next as offset, from as began, and to as it was answered, until done. All pages together are the recording as it was at the first. Each page costs as much as all before it: for the newest output use capture_since or pane_dcapture__rows."
	t.params = append(append([]manifest.Param{}, t.verb.Params...), pageParams...)
	t.result = []manifest.Field{
		{Name: "pane", Type: manifest.String},
		{Name: "format", Type: manifest.String, Choices: t.verb.Param("format").Choices},
		{Name: "from", Type: manifest.Integer, Summary: "Offset of the stream at which the export begins"},
		{Name: "to", Type: manifest.Integer, Summary: "Offset of the stream at which it ends"},
		{Name: "offset", Type: manifest.Integer, Summary: "Byte of the export at which this page begins"},
		{Name: "next", Type: manifest.Integer, Optional: true, Summary: "offset of the next page; present only when done is false"},
		{Name: "done", Type: manifest.Boolean, Summary: "True when this page reaches the end of the export"},
		{Name: "missed_bytes", Type: manifest.Integer, Optional: true, Summary: "On the last page: bytes of the range asked for that are not in the log: in front of from, and where the export marks them as missing"},
		{Name: "text", Type: manifest.String, Optional: true, Summary: "The page, of all formats but raw"},
		{Name: "data", Type: manifest.Bytes, Optional: true, Summary: "The page, of raw"},
	}
	verb := t.verb
	t.run = func(ctx context.Context, l *link, args arguments) (json.RawMessage, error) {
		return runExport(ctx, l, verb, args)
	}
}

// place is where a page begins, and how long it may be.
type place struct {
	Offset   uint64  `json:"offset"`
	Began    *uint64 `json:"began"`
	MaxBytes int     `json:"max_bytes"`
}

// fix gives a later page the range of the first one, whose ends were answered: that
// which was given by times or by a command would be another one by now.
func (p *place) fix(args arguments) {
	if p.Began == nil || args["to"] == nil {
		return
	}
	if args["from_time"] != nil || args["command"] != nil {
		args["from"], _ = json.Marshal(*p.Began)
	}
	for _, name := range []string{"from_time", "to_time", "command"} {
		delete(args, name)
	}
}

func runExport(ctx context.Context, l *link, v *manifest.Verb, args arguments) (json.RawMessage, error) {
	own := manifest.Verb{Name: v.Name, Params: pageParams}
	ours, theirs := arguments{}, arguments{}
	for name, raw := range args {
		if own.Param(name) != nil {
			ours[name] = raw
		} else {
			theirs[name] = raw
		}
	}
	problem := own.Check(ours) // which is only told if the daemon has nothing to object
	var at place
	if problem == nil {
		if err := decode(ours, &at); err != nil {
			return nil, err
		}
		at.fix(theirs)
	}
	var result json.RawMessage
	err := l.use(ctx, v, func(c *wire.Client) error {
		p := pager{place: at}
		raw, err := c.Stream(ctx, v.Name, theirs, p.take)
		switch {
		case err != nil && !errors.Is(err, errEnough):
			return err
		case problem != nil:
			return invalid(problem.Reason, problem.Param, problem.Message)
		}
		asked := export{Format: v.Param("format").Default.(string)}
		if err := decode(theirs, &asked); err != nil { // the daemon has checked them
			return err
		}
		result, err = p.page(asked, raw, c.Welcome.MaxFrame)
		return err
	})
	return result, err
}

func invalid(reason, param, message string) *wire.Error {
	return &wire.Error{Code: "invalid_params." + reason, Message: message, Data: map[string]string{"param": param}}
}

// errEnough stops a stream whose page is full.
var errEnough = &wire.Error{Code: "internal.page", Message: "the page is full"}

// pager keeps the part of an export's stream that is its page.
type pager struct {
	place
	from, to uint64 // of the export
	at       uint64 // bytes of the export that have come
	part     []byte // those from Offset on, at most a character more than MaxBytes
}

// take takes an item of the stream. The first one has from and to, the others
// have data.
func (p *pager) take(item json.RawMessage) error {
	var i struct {
		From *uint64 `json:"from"`
		To   *uint64 `json:"to"`
		Data []byte  `json:"data"`
	}
	if err := json.Unmarshal(item, &i); err != nil {
		return err
	}
	if i.From != nil && i.To != nil {
		p.from, p.to = *i.From, *i.To
	}
	if p.Began != nil && *p.Began != p.from {
		return &wire.Error{
			Code:    "not_found.evicted",
			Message: fmt.Sprintf("the log begins at offset %d by now: begin the export again", p.from),
			Data:    map[string]uint64{"oldest": p.from},
		}
	}
	data := i.Data[min(uint64(len(i.Data)), p.Offset-min(p.at, p.Offset)):]
	p.at += uint64(len(i.Data))
	room := p.MaxBytes + utf8.UTFMax - len(p.part)
	p.part = append(p.part, data[:min(len(data), room)]...)
	if len(p.part) == p.MaxBytes+utf8.UTFMax {
		return errEnough
	}
	return nil
}

// page is the result. ok is that of the stream, nil if there is more of it.
func (p *pager) page(asked export, ok json.RawMessage, frame int) (json.RawMessage, error) {
	result := exportPage{export: asked, From: p.from, To: p.to, Offset: p.Offset}
	n := min(len(p.part), p.MaxBytes)
	if result.Format == "raw" {
		n = min(n, (frame-resultRoom)/4*3)
		data := p.part[:n]
		result.Data = &data
	} else {
		n = textLen(p.part, n, frame-resultRoom)
		text := string(p.part[:n])
		result.Text = &text
	}
	if result.Done = ok != nil && n == len(p.part); result.Done {
		if err := json.Unmarshal(ok, &result.end); err != nil {
			return nil, err
		}
	} else {
		next := p.Offset + uint64(n)
		result.Next = &next
	}
	return wire.Marshal(result)
}

// textLen is how much of the text b, at most n bytes but a whole character, fits
// room bytes as JSON.
func textLen(b []byte, n, room int) int {
	length := 0
	for length < len(b) {
		_, size := utf8.DecodeRune(b[length:])
		room -= wire.StringLen(b[length:length+size]) - 2
		if length > 0 && (length+size > n || room < 0) {
			break
		}
		length += size
	}
	return length
}
