package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// model is what a log must contain, kept by the test from what it appended.
type model struct {
	pane   uint64
	frames []Frame
	cps    []Checkpoint
	end    Pos
	clock  int64
	oldest Pos
}

// words makes compressible text, so that segments differ from what went in.
func words(rng *rand.Rand, n int) []byte {
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "\x1b[3%dm%s %d\x1b[0m\r\n", rng.IntN(8), []string{"ok", "compile", "link", "test"}[rng.IntN(4)], rng.IntN(100000))
	}
	return b.Bytes()[:n]
}

// step appends one random thing to l and to the model.
func (m *model) step(rng *rand.Rand, l *Log, maxData int) {
	m.clock += rng.Int64N(3e6) - 2e5 // now and then back a little
	t := Time{Wall: m.clock, Mono: m.clock/2 + 7}
	switch n := rng.IntN(100); {
	case l.NeedsFull() || n < 2:
		m.checkpoint(l, words(rng, rng.IntN(3000)), true)
	case n < 6:
		m.checkpoint(l, words(rng, rng.IntN(500)), false)
	case n < 7:
		lost := rng.Uint64N(5000)
		f := Frame{Pos: m.end, Kind: Gap, Time: t, Lost: lost, Data: words(rng, rng.IntN(20))}
		m.add(f, l.AppendGap(t, lost, f.Data))
		m.checkpoint(l, words(rng, rng.IntN(3000)), true)
	case n < 14:
		f := Frame{Pos: m.end, Kind: Kind(3 + rng.IntN(4)), Time: t, Data: words(rng, rng.IntN(30))}
		m.add(f, l.Append(f.Kind, t, f.Data))
	default:
		size := rng.IntN(40)
		if rng.IntN(4) == 0 {
			size = rng.IntN(maxData)
		}
		f := Frame{Pos: m.end, Kind: Output, Time: t, Data: words(rng, size)}
		m.add(f, l.Append(Output, t, f.Data))
	}
}

func (m *model) add(f Frame, end Pos) {
	m.frames = append(m.frames, f)
	switch f.Kind {
	case Output:
		m.end.Offset += uint64(len(f.Data))
	case Gap:
		m.end.Offset += f.Lost
	}
	m.end.Seq++
	if end != m.end {
		panic(fmt.Sprintf("end %v, want %v", end, m.end))
	}
}

func (m *model) checkpoint(l *Log, blob []byte, full bool) {
	cp := Checkpoint{Pos: m.end, Full: full, Blob: blob}
	l.AppendCheckpoint(blob, full)
	if n := len(m.cps); n > 0 && m.cps[n-1].Pos == cp.Pos {
		switch {
		case full && m.cps[n-1].Full: // replaces it
			m.cps[n-1] = cp
			return
		case !full && m.cps[n-1].Full: // means nothing
			return
		case !full:
			m.cps[n-1] = cp
			return
		}
	}
	m.cps = append(m.cps, cp)
}

// verify checks that l is an exact prefix of the model, at least durable long,
// with every checkpoint that belongs to it and none ahead of it. whole asks
// for all of it.
func (m *model) verify(l *Log, durable uint64, whole bool) error {
	end := l.End()
	if end.Offset < durable || m.end.Before(end) || whole && end != m.end {
		return fmt.Errorf("pane %d: end %v, durable was %d, appended %v", m.pane, end, durable, m.end)
	}
	oldest := l.Oldest()
	i := 0
	for i < len(m.frames) && m.frames[i].Seq < m.oldest.Seq {
		i++
	}
	if oldest != m.oldest.Offset {
		return fmt.Errorf("pane %d: oldest %d, want %v", m.pane, oldest, m.oldest)
	}
	r, err := l.Read(m.oldest)
	if err != nil {
		return err
	}
	defer r.Close()
	for ; ; i++ {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("pane %d: %w", m.pane, err)
		}
		if i >= len(m.frames) || !sameFrame(f, m.frames[i]) {
			return fmt.Errorf("pane %d: frame %d is %v", m.pane, i, f)
		}
	}
	if uint64(i) != end.Seq {
		return fmt.Errorf("pane %d: %d frames, end %v", m.pane, i, end)
	}
	return m.verifyCheckpoints(l, end)
}

func (m *model) verifyCheckpoints(l *Log, end Pos) error {
	var want []Checkpoint
	for _, cp := range m.cps {
		if cp.Pos == m.oldest && !cp.Full {
			continue // of the span before
		}
		if !end.Before(cp.Pos) && !cp.Pos.Before(m.oldest) {
			want = append(want, cp)
		}
	}
	n := 0
	for cp, err := range l.Checkpoints(m.oldest) {
		if err != nil {
			return err
		}
		if end.Before(cp.Pos) {
			return fmt.Errorf("pane %d: checkpoint %v ahead of the log %v", m.pane, cp.Pos, end)
		}
		// At one position there may have been several in a row.
		for n < len(want) && (want[n].Pos != cp.Pos || want[n].Full != cp.Full) {
			return fmt.Errorf("pane %d: checkpoint %v (full %v), want %v", m.pane, cp.Pos, cp.Full, want[n].Pos)
		}
		if n >= len(want) {
			return fmt.Errorf("pane %d: checkpoint %v too many", m.pane, cp.Pos)
		}
		if cp.Pos != end && !bytes.Equal(cp.Blob, want[n].Blob) {
			return fmt.Errorf("pane %d: checkpoint %v differs", m.pane, cp.Pos)
		}
		n++
	}
	// The last one, at the very end, may not have made it.
	if n < len(want) && want[n].Pos != end {
		return fmt.Errorf("pane %d: checkpoint %v is missing", m.pane, want[n].Pos)
	}
	if n == 0 {
		return nil
	}
	if err := m.verifyBack(l, want[:n], end); err != nil {
		return err
	}
	half := want[n/2].Pos
	for n > 0 && half.Before(want[n-1].Pos) {
		n--
	}
	return m.verifyBack(l, want[:n], half)
}

// verifyBack checks that CheckpointsBack yields the last of want first, and so on up
// to one that is full.
func (m *model) verifyBack(l *Log, want []Checkpoint, at Pos) error {
	full := false
	for cp, err := range l.CheckpointsBack(at) {
		n := len(want) - 1
		switch {
		case err != nil:
			return fmt.Errorf("pane %d: back from %v: %w", m.pane, at, err)
		case n < 0 || full:
			return fmt.Errorf("pane %d: back from %v: checkpoint %v too many", m.pane, at, cp.Pos)
		case cp.Pos != want[n].Pos || cp.Full != want[n].Full || cp.Pos != l.End() && !bytes.Equal(cp.Blob, want[n].Blob):
			return fmt.Errorf("pane %d: back from %v: checkpoint %v (full %v), want %v", m.pane, at, cp.Pos, cp.Full, want[n].Pos)
		}
		want, full = want[:n], cp.Full
	}
	if !full {
		return fmt.Errorf("pane %d: back from %v: no full checkpoint", m.pane, at)
	}
	return nil
}

func sameFrame(a, b Frame) bool {
	return a.Pos == b.Pos && a.Kind == b.Kind && a.Time == b.Time && a.Lost == b.Lost && bytes.Equal(a.Data, b.Data)
}

// numbered is a frame whose data says which one it is.
func numbered(pane, i uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, pane), i)
}

func rngFor(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 99)) }
