package daemon

import (
	"context"

	"looptape/cmd/internal/attach"
	"looptape/replay"
)

const (
	// scrollChunk is about how much text one Scrollback carries, in bytes.
	scrollChunk = 64 << 10
	scrollRows  = 1000 // the most rows of one
)

// scrollback is the history that a client that attaches has asked for: rows from
// floor on, in an epoch, of which those below next are still to be sent.
type scrollback struct {
	due         bool
	epoch       uint32
	floor, next uint64
}

// begin makes the newest rows above the screen of t due.
func (s *scrollback) begin(t *replay.Terminal, rows uint64) {
	b := t.Bounds()
	floor := b.Active - min(b.Active, rows)
	*s = scrollback{due: true, epoch: b.Epoch, floor: max(floor, b.Oldest), next: b.Active}
}

// frame makes the next frame, of at most limit bytes. The last one has no rows: all are
// sent, or they are gone.
func (s *scrollback) frame(t *replay.Terminal, limit int) []byte {
	b := t.Bounds()
	head := attach.HeadLen(attach.Scrollback)
	n := min(scrollRows, max(scrollChunk/(b.Cols+1), 1))
	for b.Epoch == s.epoch && s.next > max(s.floor, b.Oldest) {
		start := max(s.floor, b.Oldest, s.next-min(s.next, uint64(n)))
		frame := make([]byte, head, head+int(s.next-start)*(b.Cols+1))
		for r := range t.Rows(start, s.next) {
			frame = append(append(frame, r.Text...), '\n')
		}
		if len(frame) <= limit && (len(frame) <= 2*scrollChunk || n == 1) {
			s.next = start
			s.head(frame)
			return frame
		}
		if n == 1 { // a row that does not fit ends it
			break
		}
		n = max(n/2, 1)
	}
	s.due = false
	frame := make([]byte, head)
	s.head(frame)
	return frame
}

func (s *scrollback) head(frame []byte) {
	f := attach.Frame{Type: attach.Scrollback, Epoch: s.epoch, Start: s.next}
	attach.AppendHead(frame[:0], f, len(frame)-attach.HeadLen(attach.Scrollback))
}

// sendRows sends the next frame of the history.
func (a *attachment) sendRows(ctx context.Context) error {
	if err := a.t.Reserve(ctx); err != nil {
		return err
	}
	source, err := a.server.source(ctx, a.window)
	if err != nil {
		return err
	}
	var frame []byte
	if err := source.View(ctx, func(t *replay.Terminal, _ bool) { frame = a.scroll.frame(t, a.maxFrame) }); err != nil {
		return err
	}
	if a.t.SendReserved(ctx, frame) != nil {
		return errSent
	}
	return nil
}
