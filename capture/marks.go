package capture

import (
	"bytes"
	"errors"
	"io"

	"looptape/replay"
	"looptape/store"
)

// markKind says what a mark is. A..D are those of OSC 133, the marks of shell
// integration.
type markKind byte

const (
	promptStart markKind = 'A'
	inputStart  markKind = 'B'
	outputStart markKind = 'C'
	commandEnd  markKind = 'D'
	directory   markKind = 'W' // OSC 7: the working directory
	programEnd  markKind = 'X' // the program, or the recording, has ended
	lost        markKind = 'G' // bytes are missing, and what marks were in them
)

// mark is a place in the stream that says something about the commands of a shell.
// Its sequence takes the bytes [start, end).
type mark struct {
	kind       markKind
	start, end uint64
	text       string // behind the kind: exit code, options, or the directory
	time       store.Time
}

// markScan finds the marks in a stream. The terminal's own lexer decides what is a
// sequence; what can be none is passed over.
type markScan struct {
	lexer replay.Lexer
	found func(mark)

	begun uint64 // where the sequence under way began
}

// feed looks through the bytes p at an offset.
func (m *markScan) feed(at uint64, p []byte, t store.Time) {
	for len(p) > 0 {
		if m.lexer.Ground() {
			n := bytes.IndexByte(p, 0x1B)
			if n < 0 {
				m.lexer.Reset()
				return
			}
			if n > 0 {
				m.lexer.Reset()
				at, p = at+uint64(n), p[n:]
			}
			m.begun = at
		}
		tok, n := m.lexer.Next(p)
		if i := bytes.LastIndex(p[:n], []byte("\x1b]")); i >= 0 {
			m.begun = at + uint64(i)
		}
		end := at + uint64(n)
		next := m.begun
		if tok.Code == 0x1B && !bytes.HasSuffix(p[:n], []byte{'\\'}) {
			end-- // the ESC that ended it begins another sequence
			next = end
		}
		if tok.Kind == replay.OSC {
			m.osc(tok, end, t)
		}
		m.begun = next
		at, p = at+uint64(n), p[n:]
	}
}

// osc takes a complete OSC that ends in front of an offset.
func (m *markScan) osc(tok replay.Token, end uint64, t store.Time) {
	found := mark{start: m.begun, end: end, time: t}
	if text, ok := bytes.CutPrefix(tok.Text, []byte("133;")); ok && len(text) > 0 && (len(text) == 1 || text[1] == ';') {
		found.kind = markKind(text[0])
		if found.kind == 'P' { // a further prompt line
			found.kind = promptStart
		}
		if found.kind < promptStart || found.kind > commandEnd {
			return
		}
		found.text = string(text[min(2, len(text)):])
	} else if text, ok := bytes.CutPrefix(tok.Text, []byte("7;")); ok {
		found.kind, found.text = directory, string(text)
	} else {
		return
	}
	m.found(found)
}

// frame looks through a frame of the log, from the offset from on.
func (m *markScan) frame(f store.Frame, from uint64) {
	switch f.Kind {
	case store.Output:
		if skip := from - min(from, f.Offset); skip < uint64(len(f.Data)) {
			m.feed(f.Offset+skip, f.Data[skip:], f.Time)
		}
	case store.Gap, replay.MarkExit, replay.MarkRestart, replay.MarkRespawn:
		m.lexer.Reset()
		found := mark{kind: programEnd, start: f.Offset, end: f.End().Offset, time: f.Time}
		if f.Kind == store.Gap {
			found.kind = lost
		}
		m.found(found)
	}
}

// marksIn finds the marks that begin in [lo, hi) of a log; with hi at its end also
// those that stand there.
func marksIn(log *store.Log, lo, hi uint64, found func(mark)) error {
	r, err := log.ReadOffset(lo)
	if err != nil {
		return err
	}
	defer r.Close()
	last := hi >= log.End().Offset
	scan := markScan{found: func(m mark) {
		if m.start < hi || last {
			found(m)
		}
	}}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.Offset >= hi && !last && (scan.lexer.Ground() || f.Kind != store.Output || f.Offset > hi+2*replay.MaxOSC) {
			return nil
		}
		scan.frame(f, lo)
	}
}
