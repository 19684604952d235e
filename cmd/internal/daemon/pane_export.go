package daemon

import (
	"bufio"
	"context"
	"time"

	"looptape/capture"
)

// exportChunk is the size of an item of an export: in base64 it fits 64 KiB.
const exportChunk = 48 << 10

func (s *Server) paneExport(ctx context.Context, r *request) (any, error) {
	var q capture.ExportRequest
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	w, err := s.findPane(r)
	if err != nil {
		return nil, err
	}
	p, err := s.source(ctx, w)
	if err != nil {
		return nil, err
	}
	q.Header = capture.CastHeader{Command: capture.ShellQuote(w.Pane.Argv), Term: "xterm-256color"}
	q.Now = time.Now()
	q.Begin = func(from, to uint64) error {
		return r.Item(ctx, map[string]uint64{"from": from, "to": to})
	}
	chunk := min(exportChunk, r.Room/4*3-len(`{"data":""}`)-4)
	out := bufio.NewWriterSize(itemWriter{ctx, r, chunk}, chunk)
	result, err := capture.Export(ctx, p, q, out)
	if err == nil {
		err = out.Flush()
	}
	return result, err
}

// itemWriter sends what it is given as items of a stream.
type itemWriter struct {
	ctx   context.Context
	r     *request
	chunk int
}

func (w itemWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		piece := b[n:min(len(b), n+w.chunk)]
		if err := w.r.Item(w.ctx, map[string][]byte{"data": piece}); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}
