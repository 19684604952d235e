package recorder

import (
	"time"

	"looptape/replay"
	"looptape/store"
)

const (
	// stallTime is how long the log may have no room before the pane goes on
	// without it. Until then the program waits, and nothing is lost.
	stallTime = 10 * time.Second
	// reserveStep is how far ahead of the stream the offsets are reserved that a
	// client may see while nothing is recorded, in bytes: a crash must not give
	// them out again.
	reserveStep = 64 << 20
	// resumeRoom is how much room the log must have again, in bytes, or half of what
	// it can have, before the recording resumes: a disk that takes a little now and then must not make a
	// gap each time.
	resumeRoom = 2 << 20
	// maxOwed is how many resizes a gap keeps.
	maxOwed = 64
)

// gap is what the loop knows of a log that takes nothing any more. The program
// then goes on against the live Terminal, and what it writes is counted. When
// the log has room again, one Gap frame stands for all of it, and a full
// checkpoint goes on from the Terminal, which has missed nothing. Marks that came
// before the first byte stand in front of the gap; if the program wrote nothing,
// there is none.
type gap struct {
	stalled <-chan time.Time // runs while the log has no room
	open    bool             // nothing is appended
	from    uint64           // since this offset
	ahead   uint64           // offsets below are reserved, or soon will be
	owed    []store.Frame    // the marks that were not appended, in order
	resizes int              // how many resizes there were; maxOwed of them are owed
}

// watchLog enters or leaves a gap, and reports whether the pane may read on.
func (l *loop) watchLog() (mayRead bool) {
	room := l.pane.log.Room()
	switch {
	case l.gap.open:
		if l.pane.log.Err() == nil && room >= min(resumeRoom, l.pane.log.MaxRoom()/2) {
			l.closeGap()
		}
		return true
	case room > 0:
		l.gap.stalled = nil
		return true
	case l.pane.log.Err() != nil:
		l.openGap()
		return true
	case l.gap.stalled == nil:
		l.gap.stalled = time.After(stallTime)
	}
	return false
}

// openGap goes on without the log.
func (l *loop) openGap() {
	from := l.term.Offset()
	l.gap = gap{open: true, from: from}
	l.pane.gap.Store(&from)
	l.reserve()
	l.pane.logger.Error("the log takes nothing: what the program writes is not recorded", "offset", from, "err", l.pane.log.Err())
	l.observe(Observation{Kind: GapOpened})
}

// reserve keeps the reserved offsets, and epochs, ahead of the stream. Each epoch
// takes a byte of it, or a resize.
func (l *loop) reserve() {
	if l.term.Offset()+reserveStep/2 < l.gap.ahead {
		return
	}
	l.gap.ahead = l.term.Offset() + reserveStep
	go l.pane.reserve(l.gap.ahead, uint64(l.term.Bounds().Epoch)+reserveStep)
}

// reserve makes a reservation durable. It ends with the disk's answer, and nobody
// waits for it: a disk that has failed may refuse, and then nothing can be done.
func (p *Pane) reserve(offset, epochs uint64) {
	if err := p.log.Reserve(offset, epochs); err != nil {
		p.logger.Error("offsets of what is not recorded may come again after a crash", "offset", offset, "err", err)
	}
}

// closeGap records that there was one, and goes on recording.
func (l *loop) closeGap() {
	g := l.gap
	l.gap = gap{}
	l.pane.gap.Store(nil)
	lost := l.term.Offset() - g.from
	for len(g.owed) > 0 && g.owed[0].Offset == g.from { // the Terminal has had them
		l.pane.log.Append(g.owed[0].Kind, g.owed[0].Time, g.owed[0].Data)
		g.owed = g.owed[1:]
	}
	missing := lost > 0 || g.resizes > maxOwed
	if missing {
		l.pane.log.AppendGap(l.now(), lost, []byte("disk"))
		l.checkpoint()
	}
	l.pane.logger.Warn("recording again", "offset", l.term.Offset(), "lost", lost)
	l.observe(Observation{Kind: GapClosed, Lost: lost})
	for _, f := range g.owed {
		if f.Kind != replay.MarkResize { // which the checkpoint has
			l.pane.log.Append(f.Kind, l.now(), f.Data)
		}
	}
	if l.closed {
		if !missing {
			l.checkpoint()
		}
		l.over = true
	}
}

// owe notes a mark that cannot be appended now and is to be made up for. Beyond
// maxOwed, resizes count as missing.
func (g *gap) owe(f store.Frame) {
	if f.Kind == replay.MarkResize {
		g.resizes++
	}
	if f.Kind == store.Output || f.Kind == replay.MarkResize && g.resizes > maxOwed {
		return
	}
	g.owed = append(g.owed, f)
}
