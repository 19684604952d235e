package daemon

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/wire"
)

// exportChunk is the size of an item of an export: in base64 it fits 64 KiB.
const exportChunk = 48 << 10

// maxExports is how many exports may be under way: each has a Terminal for as long as
// its client takes to read it.
const maxExports = 32

func (s *Server) paneExport(ctx context.Context, r *request) (any, error) {
	var q capture.ExportRequest
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	p, err := s.sourceFor(ctx, r, w)
	if err != nil {
		return nil, err
	}
	if s.exports.Add(1) > maxExports {
		s.exports.Add(-1)
		return nil, &wire.Error{
			Code: "limit.exports", Message: fmt.Sprintf("%d exports are under way already: wait until one has ended", maxExports),
			Data: map[string]int{"exports": maxExports},
		}
	}
	defer s.exports.Add(-1)
	q.Header = w.castHeader()
	q.Now = time.Now()
	q.Begin = func(from, to uint64) error {
		return r.Item(ctx, map[string]uint64{"from": from, "to": to})
	}
	items := &itemWriter{ctx: ctx, r: r, chunk: min(exportChunk, r.Room/4*3-len(`{"data":"","offset":9007199254740991}`)-4)}
	q.Progress = func(offset uint64) { items.offset = offset }
	out := bufio.NewWriterSize(items, items.chunk)
	result, err := capture.Export(ctx, p, q, out)
	if err == nil {
		err = out.Flush()
	}
	return result, err
}

// castHeader is what an asciicast of the pane says of it.
func (w *window) castHeader() capture.CastHeader {
	if i := w.Pane.Imported; i != nil {
		return capture.CastHeader{Command: i.Command, Title: i.Title, Term: i.Term}
	}
	return capture.CastHeader{Command: capture.ShellQuote(w.Pane.Argv), Term: programTerm}
}

// itemWriter sends what it is given as items of a stream.
type itemWriter struct {
	ctx    context.Context
	r      *request
	chunk  int
	offset uint64 // of the stream, up to which the export has come
}

// exportItem is a piece of an export.
type exportItem struct {
	Data   []byte `json:"data"`
	Offset uint64 `json:"offset"`
}

func (w *itemWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		piece := b[n:min(len(b), n+w.chunk)]
		if err := w.r.Item(w.ctx, exportItem{piece, w.offset}); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}
