package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// The stress of eviction on a real daemon: panes that keep 4 MiB write numbered
// lines, far more than that, and are respawned again and again; readers of every kind
// read them meanwhile, and a restart comes in between. Whatever they are answered,
// with what they are told is missing, is what the programs wrote. (Package capture has
// the same of its own, with resizes, gaps and sequences.)

const (
	stressDigits = 15
	stressLine   = stressDigits + 2 // with CR and LF
	stressFirst  = 100              // what the numbers of the first program begin with
	stressEach   = 1_000_000_000_000
)

// stressPane is a pane, and everything that its programs will have written.
type stressPane struct {
	id      string
	begins  []uint64 // offsets at which programs begin, and the end of the last one
	lines   []int    // how many lines they show before each of them, and in all
	argv    [][]string
	running int // which of them ran last; the writer's
}

// newStressPane says what the programs write: numbers with the program's own first
// digits, up to the middle of a line.
func newStressPane(r *rand.Rand, programs, most int) *stressPane {
	p := &stressPane{begins: []uint64{0}, lines: []int{0}}
	for i := range programs {
		n := most/2 + r.IntN(most/2) // of the pipe's bytes: with LF alone
		switch i % 4 {
		case 1: // it ends inside of a mark
			n = (n/16/500*500+249)*16 + r.IntN(11)
		case 2:
			n = r.IntN(3 * stressLine)
		}
		first := (stressFirst + i) * stressEach
		p.argv = append(p.argv, []string{"sh", "-c", fmt.Sprintf("seq %d %d 2>&- | awk '%s' 2>&- | head -c %d", first, first+stressEach-1, stressMarks, n)})
		size := n + n/(stressDigits+1)
		p.begins = append(p.begins, p.begins[i]+uint64(size))
		lines := (size + stressLine - 1) / stressLine
		if size-(lines-1)*stressLine <= stressMark(lines-1) { // nothing of the last one shows
			lines--
		}
		p.lines = append(p.lines, p.lines[i]+lines)
	}
	return p
}

// program is which program wrote the byte at an offset.
func (p *stressPane) program(offset uint64) int {
	i := 0
	for i+2 < len(p.begins) && p.begins[i+1] <= offset {
		i++
	}
	return i
}

// bytes is the stream from one offset to another.
func (p *stressPane) bytes(from, to uint64) []byte {
	out := make([]byte, 0, to-from)
	for from < to {
		i := p.program(from)
		line := (from - p.begins[i]) / stressLine
		text := stressText(i, int(line))
		begin := p.begins[i] + line*stressLine
		end := min(begin+stressLine, p.begins[i+1], to)
		out = append(out, text[from-begin:end-begin]...)
		from = end
	}
	return out
}

// text is bytes as text: without CR and marks.
func (p *stressPane) text(from, to uint64) string {
	raw := p.bytes(from, to)
	var out []byte
	for at := from; at < to; at++ {
		i := p.program(at)
		line, k := int(at-p.begins[i])/stressLine, int(at-p.begins[i])%stressLine
		if k >= stressMark(line) && raw[at-from] != '\r' {
			out = append(out, raw[at-from])
		}
	}
	return string(out)
}

// line is a line of the pane by its number.
func (p *stressPane) line(k int) (text string, program int) {
	for program = 0; p.lines[program+1] <= k; program++ {
	}
	begin := p.begins[program] + uint64(k-p.lines[program])*stressLine
	return strings.TrimSpace(p.text(begin, min(begin+stressLine, p.begins[program+1]))), program
}

// lineAt is the number of the line that the byte at an offset belongs to.
func (p *stressPane) lineAt(offset uint64) int {
	i := p.program(offset)
	return min(p.lines[i]+int(offset-p.begins[i])/stressLine, p.lines[len(p.lines)-1]-1)
}

// find is the number of a line that is complete, or -1.
func (p *stressPane) find(line string) int {
	n, err := strconv.Atoi(line)
	i := n/stressEach - stressFirst
	if len(line) != stressDigits || err != nil || i < 0 || i+1 >= len(p.lines) {
		return -1
	}
	return p.lines[i] + n%stressEach
}

// end is where the last program has ended, or will.
func (p *stressPane) end() uint64 { return p.begins[len(p.begins)-1] }

// stress is the daemon and the panes.
type stress struct {
	*server
	panes   []*stressPane
	writing atomic.Bool
}

// TestEvictionStress is the stress. A kind of reader joins by a line in stressKinds.
func TestEvictionStress(t *testing.T) {
	t.Parallel()
	panes, programs, most := 2, 12, 4<<20
	if testing.Short() {
		panes, programs, most = 1, 8, 3<<20
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := &stress{server: newServer(t)}
	c := s.client()
	session := call[struct{ Session string }](s.server, c, "session.create", obj{}).Session
	for range panes {
		p := newStressPane(r, programs, most)
		p.id = call[struct{ Pane string }](s.server, c, "window.create", obj{"session": session, "argv": p.argv[0], "retain": 4 << 20}).Pane
		s.panes = append(s.panes, p)
	}
	var readers []stressReader
	for _, p := range s.panes {
		for i, kind := range stressKinds {
			readers = append(readers, kind.make(p, rand.New(rand.NewPCG(seed, uint64(i+2)))))
		}
	}
	s.round(readers, programs/2)
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatalf("stop: %v\n%s", err, s.log)
	}
	if s.start(); !t.Failed() {
		s.round(readers, programs)
	}
	c = s.client()
	for _, p := range s.panes {
		info := s.until(c, p.id, "evicted", func(i paneInfo) bool { return i.Oldest > 0 })
		if info.Offset != p.end() {
			t.Errorf("%s: %+v, not %d bytes", p.id, info, p.end())
		}
	}
}

// round lets the panes run their programs up to one, and the readers read until
// they have all of it.
func (s *stress) round(readers []stressReader, upTo int) {
	s.writing.Store(true)
	var writers, all sync.WaitGroup
	for _, p := range s.panes {
		c := s.client()
		writers.Go(func() { s.write(c, p, upTo) })
	}
	for i, reader := range readers {
		c := s.client()
		all.Go(func() {
			for over := false; !over; {
				over = !s.writing.Load()
				ended, err := reader(s, c)
				if err != nil {
					s.t.Errorf("%s, %s: %v", s.panes[i/len(stressKinds)].id, stressKinds[i%len(stressKinds)].name, err)
					return
				}
				over = over && ended
			}
		})
	}
	writers.Wait()
	s.writing.Store(false)
	all.Wait()
}

// write runs the programs of a pane up to one, each when the one before has exited.
func (s *stress) write(c *wire.Client, p *stressPane, upTo int) {
	for i := p.running; ; i++ {
		if err := s.ended(c, p, i); err != nil {
			s.t.Errorf("%s: program %d: %v\n%s", p.id, i, err, s.log)
			return
		}
		if p.running = i; i+1 == upTo {
			return
		}
		a, err := try[struct{ Offset uint64 }](s.server, c, "pane.respawn", obj{"pane": p.id, "argv": p.argv[i+1]})
		if err != nil || a.Offset != p.begins[i+1] {
			s.t.Errorf("%s: respawned at %d, not %d: %v", p.id, a.Offset, p.begins[i+1], err)
			return
		}
	}
}

// ended waits until a program has ended, and checks where.
func (s *stress) ended(c *wire.Client, p *stressPane, program int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		info, err := try[paneInfo](s.server, c, "pane.get", obj{"pane": p.id})
		switch {
		case err != nil:
			return err
		case info.State != "running" && info.Offset != p.begins[program+1], info.Offset > p.begins[program+1]:
			return fmt.Errorf("ends at %+v, not %d", info, p.begins[program+1])
		case info.State != "running":
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("does not end: %+v", info)
		}
	}
}

// missing checks that the bytes [from, to) of a pane are not there any more.
func (s *stress) missing(c *wire.Client, p *stressPane, from, to uint64) error {
	info, err := try[paneInfo](s.server, c, "pane.get", obj{"pane": p.id})
	if err == nil && from < to && info.Oldest < to {
		err = fmt.Errorf("[%d, %d) is said to be missing, the oldest is %d", from, to, info.Oldest)
	}
	return err
}

// stream calls pane.export.
func (s *stress) stream(c *wire.Client, p *stressPane, format string) (data []byte, r exportAnswer, err error) {
	raw, err := c.Stream(s.ctx, "pane.export", obj{"pane": p.id, "format": format}, func(item json.RawMessage) error {
		var chunk struct{ Data []byte }
		err := json.Unmarshal(item, &chunk)
		data = append(data, chunk.Data...)
		return err
	})
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return data, r, err
}

type exportAnswer struct {
	From, Offset uint64
	MissedBytes  uint64 `json:"missed_bytes"`
}
