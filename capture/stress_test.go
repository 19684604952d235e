package capture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// The stress of eviction: a pane writes, is resized and respawned, and has gaps,
// in a log that keeps so little that its oldest spans go all the time; readers of
// every kind read it meanwhile; then the store is closed and opened again, and the
// readers go on. Whatever they are answered, with what they are told is missing, is
// the stream that the test wrote.

// stress is the pane and everything that the test knows of it.
type stress struct {
	t  *testing.T
	fs store.Options

	mu      sync.Mutex // what a live pane's loop is
	st      *store.Store
	log     *store.Log
	term    *replay.Terminal
	closed  bool
	row     uint64 // Bounds().Active at the last checkpoint
	epoch   uint32 // and its epoch
	since   int    // bytes since the last checkpoint,
	span    int    // and since the last full one
	truth   truth
	writing atomic.Bool
}

// truth is the stream that the test wrote, and what readers of it are to see.
type truth struct {
	stream   []byte            // every byte, those that were not recorded too
	text     []byte            // what a reader of text gets, if it misses nothing
	lost     map[uint64]uint64 // gaps, by where they begin
	respawns map[uint64]int    // how many programs begin where
	number   uint32            // of respawns
	lines    []string          // that were begun, with their text
	torn     map[int]bool      // lines that a gap or a respawn cut off
	places   []stressPlace     // in order
	index    map[uint64]int    // of places, by offset
	sought   []*stressLineAt   // the lines that waits look for
	marks    []stressMark      // that are whole, of the shells and of the programs' ends, in order
	shell    stressShell
}

// stressPlace is an offset of which the test knows everything.
type stressPlace struct {
	offset uint64
	text   int  // bytes of text in front of it; -1 if unknown
	ended  bool // a program ended there
	rest   int  // bytes of text that its unfinished character gave then
	lines  int  // that were begun before
	state  hash // of the terminal that was fed everything before, or nothing
	screen hash // of what it showed
	behind hash // of the terminal behind the respawns that stand there, or nothing
}

type hash [32]byte

func (s *stress) View(_ context.Context, read func(*replay.Terminal, bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	read(s.term, s.closed)
	return nil
}

// Await returns at once: the readers come again.
func (s *stress) Await(context.Context, store.Pos) error { return nil }
func (s *stress) Log() *store.Log                        { return s.log }

func (s *stress) Reached(ctx context.Context) (offset uint64) {
	s.View(ctx, func(t *replay.Terminal, _ bool) { offset = t.Offset() })
	return offset
}

func stateHash(t *replay.Terminal) hash {
	return sha256.Sum256(checkpoint.Encode(nil, t.State()))
}

func screenHash(r *ScreenResult) hash {
	return sha256.Sum256(fmt.Append(nil, r.Screen, r.Cols, r.Rows, r.Cursor, r.Title, r.Text))
}

// piece is a part of a line: a sequence, which is no text, a character, or plain
// text, which may be cut anywhere.
type piece struct {
	raw, text string
	plain     bool
	at        *stressBytes // where it comes to stand, if somebody asks
	mark      *stressMark  // that it is
}

// line makes the pieces of the next line.
func (s *stress) line(r *rand.Rand) []piece {
	out := s.truth.shell.marks(r)
	first := len(out)
	add := func(raw, text string, plain bool) { out = append(out, piece{raw: raw, text: text, plain: plain}) }
	text := func(t string) { add(t, t, true) }
	if r.IntN(3) == 0 {
		add(fmt.Sprintf("\x1b[38;2;%d;153;153m", r.IntN(256)), "", false)
	}
	text(fmt.Sprintf("line %d ", len(s.truth.lines)))
	for range r.IntN(4) {
		switch r.IntN(6) {
		case 0:
			add("漢", "漢", false)
		case 1:
			add("\x1b]0;a title\a", "", false)
		case 2:
			add("é", "é", false)
		default:
			text("abcdefghijklmnopqrstuvwxyz"[:1+r.IntN(26)])
		}
	}
	if r.IntN(50) == 0 {
		text(string(bytes.Repeat([]byte("long "), 100)))
	}
	text(".")
	add("\r\n", "\n", false)
	line := ""
	for _, p := range out[:len(out)-1] {
		line += p.text
	}
	s.truth.seek(len(s.truth.lines), line, out[first:len(out)-1])
	s.truth.lines = append(s.truth.lines, line)
	return out
}

// write appends frames of about n bytes in all; what of the last line does not fit
// is returned, to be given to the next call.
func (s *stress) write(r *rand.Rand, n int, rest []piece) []piece {
	for n > 0 {
		size := 1 + r.IntN(6000)
		n -= size
		var frame, text []byte
		frame, text, rest = s.frame(r, size, rest)
		s.waitForRoom()
		s.append(r, frame, text)
	}
	return rest
}

// frame makes a frame of size bytes, and the text that a reader has when it has read
// it.
func (s *stress) frame(r *rand.Rand, size int, rest []piece) (frame, text []byte, left []piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(frame) < size {
		if len(rest) == 0 {
			rest = s.line(r)
		}
		p := &rest[0]
		k := min(len(p.raw), size-len(frame))
		frame = append(frame, p.raw[:k]...)
		switch {
		case p.plain:
			text = append(text, p.raw[:k]...)
		case k == len(p.raw):
			text = append(text, p.text...)
		}
		s.truth.stands(p, k, uint64(len(s.truth.stream)+len(frame)), false)
		if p.raw = p.raw[k:]; p.raw == "" {
			rest = rest[1:]
		}
	}
	return frame, text, rest
}

func (s *stress) waitForRoom() {
	for s.log.Room() <= 0 {
		<-s.log.RoomC()
	}
}

// append records one frame. Now and then the state of the terminal is noted, also
// within a frame.
func (s *stress) append(r *rand.Rand, frame, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.log.Append(store.Output, now, frame)
	s.truth.clock(now.Wall)
	k := 0
	if r.IntN(8) == 0 {
		k = r.IntN(len(frame))
	}
	if s.term.Feed(frame[:k]); k > 0 {
		s.note(-1, true)
	}
	s.term.Feed(frame[k:])
	s.term.TakeReplies()
	t := &s.truth
	t.stream, t.text = append(t.stream, frame...), append(t.text, text...)
	s.since, s.span = s.since+len(frame), s.span+len(frame)
	s.note(len(t.text), r.IntN(4) == 0)
	s.maybeCheckpoint()
}

func (s *stress) now() store.Time {
	return store.Time{Wall: time.Now().UnixNano(), Mono: int64(len(s.truth.stream))}
}

// note notes what is known of where the stream is.
func (s *stress) note(text int, state bool) *stressPlace {
	t, offset := &s.truth, s.term.Offset()
	i, ok := t.index[offset]
	if !ok {
		i = len(t.places)
		t.index[offset] = i
		t.places = append(t.places, stressPlace{offset: offset, text: text, lines: len(t.lines)})
	}
	p := &t.places[i]
	switch {
	case t.respawns[offset] > 0: // what was seen there is the end of the first program
		p.behind = stateHash(s.term)
	case state:
		p.state, p.screen = stateHash(s.term), screenHash(Screen(s.term, ""))
	}
	return p
}

// ended notes that the program writes no more: an unfinished character is seen to be
// one.
func (s *stress) ended() *stressPlace {
	p := s.note(len(s.truth.text), true)
	if !p.ended && s.cutCharacter() {
		p.rest = len(replacement)
		s.truth.text = append(s.truth.text, replacement...)
	}
	p.ended = true
	s.truth.torn[len(s.truth.lines)-1] = true
	return p
}

const (
	stressDelta = 48 << 10  // between two checkpoints
	stressSpan  = 384 << 10 // between two full ones
)

// maybeCheckpoint appends the checkpoint that is due, as a recorder does.
func (s *stress) maybeCheckpoint() {
	b := s.term.Bounds()
	switch {
	case s.span >= stressSpan:
		s.checkpoint()
	case s.since >= stressDelta && b.Epoch == s.epoch && b.Oldest <= s.row:
		state := s.term.StateSince(s.row)
		s.took(state, state.History.Hidden > 0 || state.History.First > s.row)
	}
}

func (s *stress) checkpoint() { s.took(s.term.State(), true) }

// took appends a checkpoint. The next one may leave out the rows below s.row.
func (s *stress) took(state *checkpoint.State, full bool) {
	s.log.AppendCheckpoint(checkpoint.Encode(nil, state), full)
	if s.since = 0; full {
		s.span = 0
	}
	h := &state.History
	n := len(h.Rows)
	for n > 0 && h.Rows[n-1].Flags&checkpoint.RowWrapped != 0 {
		n--
	}
	s.row, s.epoch = h.First+uint64(n), state.Clock.Epoch
	if h.Hidden > 0 {
		s.epoch = 0
	}
}

// mark appends a mark that does something to the terminal.
func (s *stress) mark(kind store.Kind, data []byte) {
	f := store.Frame{Kind: kind, Time: s.now(), Data: data}
	s.log.Append(f.Kind, f.Time, f.Data)
	if kind != replay.MarkResize {
		at := stressBytes{from: s.term.Offset(), to: s.term.Offset()}
		s.truth.marks = append(s.truth.marks, stressMark{kind: 'X', stressBytes: at, wall: f.Time.Wall})
	}
	if err := replay.Apply(s.term, f); err != nil {
		s.t.Error(err)
	}
}

func (s *stress) resize(r *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := &s.truth; bytes.HasSuffix(t.stream, []byte("\r")) {
		// The cursor stays at its character, and LF keeps the column.
		t.torn[len(t.lines)-1], t.torn[len(t.lines)] = true, true
	}
	s.mark(replay.MarkResize, replay.AppendResize(nil, 40+r.IntN(80), 4+r.IntN(20)))
	s.note(len(s.truth.text), true)
}

// respawn ends the program, within a line, and begins another, which may write
// nothing.
func (s *stress) respawn(restarted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark(replay.MarkExit, replay.AppendExit(nil, replay.Exit{}))
	s.mark(replay.MarkClosed, nil)
	s.checkpoint()
	place := s.ended()
	if restarted {
		s.mark(replay.MarkRestart, replay.AppendRestart(nil, 0))
	}
	s.truth.respawns[place.offset]++
	s.truth.number++
	s.mark(replay.MarkRespawn, nil)
	place.behind = stateHash(s.term)
	s.checkpoint()
	s.closed = false
	s.truth.shell = stressShell{}
}

// cutCharacter says whether the stream ends within a character.
func (s *stress) cutCharacter() bool {
	b := s.truth.stream
	for i := 1; i <= min(3, len(b)); i++ {
		if c := b[len(b)-i]; c >= 0xC0 {
			return i < 2 || c >= 0xE0 && i < 3 // é has two bytes, 漢 three
		} else if c < 0x80 {
			return false
		}
	}
	return false
}

// gap lets the program go on without the log, as on a full disk.
func (s *stress) gap(r *rand.Rand, rest []piece) []piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.truth
	s.note(len(t.text), true)
	from, n := s.term.Offset(), 0
	t.torn[len(t.lines)-1] = true
	// Half of them end within a sequence or a character.
	within, pieces := r.IntN(2) == 0, 1+r.IntN(40)
	for in := false; pieces > 0 || within && !in; pieces-- {
		if len(rest) == 0 {
			rest = s.line(r)
			t.torn[len(t.lines)-1] = true
		}
		p := &rest[0]
		k := 1 + r.IntN(len(p.raw))
		s.term.Feed([]byte(p.raw[:k]))
		t.stream = append(t.stream, p.raw[:k]...)
		n += k
		t.stands(p, k, uint64(len(t.stream)), true)
		in = !p.plain && k < len(p.raw)
		if p.raw = p.raw[k:]; p.raw == "" {
			rest = rest[1:]
		}
	}
	s.term.TakeReplies()
	t.lost[from] = uint64(n)
	t.marks = append(t.marks, stressMark{kind: 'G', stressBytes: stressBytes{from: from, to: from + uint64(n)}})
	s.log.AppendGap(s.now(), uint64(n), []byte("disk"))
	s.checkpoint()
	s.note(len(t.text), true)
	return rest
}

// round writes n bytes, by several programs.
func (s *stress) round(r *rand.Rand, n int) {
	var rest []piece
	for n > 0 {
		k := 1 + r.IntN(100<<10)
		rest = s.write(r, min(k, n), rest)
		n -= k
		switch r.IntN(8) {
		case 0, 1:
			s.resize(r)
		case 2:
			for range 1 + r.IntN(2) {
				s.respawn(false)
			}
			rest = nil
		case 3:
			rest = s.gap(r, rest)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended()
	s.closed = true
}

// open opens the store, and the log as it was left.
func (s *stress) open(first bool) {
	st, err := store.Open("store", s.fs)
	if err != nil {
		s.t.Fatal(err)
	}
	s.st = st
	if first {
		s.log, err = st.Create(3)
	} else {
		s.log, err = st.Log(3)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.log.SetRetain(4 << 20)
	if first {
		s.checkpoint()
		return
	}
	got, err := replay.Hydrate(s.log, s.log.End())
	if err != nil {
		s.t.Fatal(err)
	}
	if stateHash(got) != stateHash(s.term) {
		s.t.Fatalf("at offset %d, after the store was opened again: another state", s.term.Offset())
	}
}

// TestStress is the stress. A kind of reader joins by a line in stressReaders.
func TestStress(t *testing.T) {
	rounds, bytes := 3, 8<<20
	if testing.Short() {
		rounds, bytes = 2, 7<<19
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	seed := r.Uint64()
	t.Logf("seed %d", seed)
	r = rand.New(rand.NewPCG(seed, 2))
	s := &stress{t: t, term: replay.New(80, 24, 100), fs: store.Options{
		FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler), Retain: 4 << 20, EvictPace: time.Millisecond,
		SegmentBytes: 32 << 10, MemTable: 256 << 10, Ballast: -1,
	}}
	s.truth = truth{lost: map[uint64]uint64{}, respawns: map[uint64]int{}, torn: map[int]bool{}, index: map[uint64]int{}}
	s.open(true)
	s.note(0, true)
	var readers []stressReader
	for i, kind := range stressReaders {
		readers = append(readers, kind.make(s, rand.New(rand.NewPCG(seed, uint64(i+10)))))
	}
	for round := range rounds {
		if round > 0 {
			s.open(false)
			s.respawn(true)
		}
		s.writing.Store(true)
		var wg sync.WaitGroup
		for i, reader := range readers {
			wg.Go(func() {
				if err := s.read(reader, stressReaders[i].pace); err != nil {
					t.Errorf("round %d: %s: %v", round, stressReaders[i].name, err)
				}
			})
		}
		s.round(r, bytes)
		s.writing.Store(false)
		wg.Wait()
		for deadline := time.Now().Add(time.Minute); s.term.Offset() > 6<<20 && s.log.Oldest() == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if err := s.st.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %d bytes, the oldest %d; %d respawns, %d gaps", round, s.term.Offset(), s.log.Oldest(), s.truth.number, len(s.truth.lost))
		if t.Failed() {
			return
		}
	}
	if s.log.Oldest() == 0 || s.truth.number == 0 || len(s.truth.lost) == 0 {
		t.Error("the test tests nothing")
	}
}

// read runs a reader until nothing is written any more and it has come to the end,
// once for every pace bytes that are written.
func (s *stress) read(reader stressReader, pace uint64) error {
	for last := uint64(0); ; {
		over := !s.writing.Load()
		if now := s.log.End().Offset; !over && now-min(now, last) < pace {
			time.Sleep(200 * time.Microsecond)
			continue
		} else {
			last = now
		}
		ended, err := reader(s.t.Context())
		if err != nil || over && ended {
			return err
		}
	}
}

// missing checks that what lies between two offsets cannot be read any more: gaps,
// and what is evicted.
func (s *stress) missing(from, to uint64) error {
	oldest := s.log.Oldest()
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := from; at < to; {
		switch n := s.truth.lost[at]; {
		case n > 0:
			at += n
		case at < oldest:
			at = min(to, oldest)
		default:
			return fmt.Errorf("[%d, %d) is said to be missing, but offset %d is there; the oldest is %d", from, to, at, oldest)
		}
	}
	return nil
}

// evicted checks that err says that offset is evicted, and that it is.
func (s *stress) evicted(offset uint64, err error) error {
	if errors.Is(err, store.ErrEvicted) && offset < s.log.Oldest() {
		return nil
	}
	return fmt.Errorf("offset %d, the oldest is %d: %w", offset, s.log.Oldest(), err)
}
