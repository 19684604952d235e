package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// happened is what the tests read of an event.
type happened struct {
	Seq             uint64
	TS              time.Time
	Event, Resource string
	Data            struct {
		Offset, Missed, Bytes, Oldest *uint64
		Count                         int
		Title, Cwd                    *string
		Mark, Gap, Name               string
		Exit                          *struct{ Code *int }
	}
}

// text is an event of a pane without its time and number.
func (h *happened) text() string {
	var b strings.Builder
	fmt.Fprint(&b, h.Event)
	if h.Data.Offset != nil {
		fmt.Fprintf(&b, " at %d", *h.Data.Offset)
	}
	if h.Data.Count > 0 {
		fmt.Fprintf(&b, " of %d", h.Data.Count)
	}
	for _, s := range []*string{h.Data.Title, h.Data.Cwd, &h.Data.Mark} {
		if s != nil && *s != "" {
			fmt.Fprintf(&b, " %q", *s)
		}
	}
	if h.Data.Exit != nil {
		fmt.Fprintf(&b, " code %d", *h.Data.Exit.Code)
	}
	return b.String()
}

var errHeard = errors.New("heard enough")

// hear follows events until enough says so.
func hear(ctx context.Context, c *wire.Client, params obj, enough func(happened) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	_, err := c.Stream(ctx, "events", params, func(raw json.RawMessage) error {
		var h happened
		if err := json.Unmarshal(raw, &h); err != nil {
			return err
		}
		if enough(h) {
			return errHeard
		}
		return nil
	})
	var e *wire.Error
	if errors.As(err, &e) && e.Message == errHeard.Error() {
		return nil
	}
	return fmt.Errorf("events end: %w", err)
}

// place is where a reader stands who has heard everything.
func (s *server) place(c *wire.Client) uint64 {
	s.t.Helper()
	return call[struct{ After uint64 }](s, c, "events", obj{"wait_ms": 0}).After
}

// now are the events behind a place.
func (s *server) now(c *wire.Client, after uint64) (list []happened) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	_, err := c.Stream(ctx, "events", obj{"after": after, "wait_ms": 0}, func(raw json.RawMessage) error {
		list = append(list, happened{})
		return json.Unmarshal(raw, &list[len(list)-1])
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// hearClosed follows until a pane is closed.
func (s *server) hearClosed(c *wire.Client, after uint64, pane string) {
	s.t.Helper()
	err := hear(s.ctx, c, obj{"after": after}, func(h happened) bool { return h.Event == "closed" && h.Resource == "pane:"+pane })
	if err != nil {
		s.t.Fatal(err)
	}
}

// sayings makes what a program says, 60 of each kind in any order between text, and
// what is to be heard of it.
func sayings(r *rand.Rand) (stream []byte, want []string) {
	say := []func(i int) (bytes, text string){
		func(int) (string, string) { return "\a", "" },
		func(i int) (string, string) {
			return fmt.Sprintf("\x1b]2;title %d\a", i), fmt.Sprintf(" %q", fmt.Sprint("title ", i))
		},
		func(i int) (string, string) {
			return fmt.Sprintf("\x1b]7;file:/%d\x1b\\", i), fmt.Sprintf(" %q", fmt.Sprint("file:/", i))
		},
		func(int) (string, string) { return "\x1b]133;A\a", ` "prompt"` },
		func(int) (string, string) { return "\x1b]133;B\x1b\\", ` "input"` },
		func(int) (string, string) { return "\x1b]133;C\a", ` "output"` },
		func(i int) (string, string) {
			return fmt.Sprintf("\x1b]133;D;%d\a", i), fmt.Sprintf(` "end" code %d`, i)
		},
	}
	kinds := []string{"bell", "title", "cwd", "command", "command", "command", "command"}
	var left []int
	for kind := range say {
		left = append(left, slices.Repeat([]int{kind}, 60)...)
	}
	r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for i, kind := range left {
		stream = append(stream, strings.Repeat("x", r.IntN(9))...)
		bytes, text := say[kind](i)
		stream = append(stream, bytes...)
		want = append(want, fmt.Sprintf("%s at %d%s", kinds[kind], len(stream), text))
	}
	return stream, want
}

// TestEvents: panes that say things at once: of each everything is heard once, in its
// order, at the offset that the bytes have, and all in one row of numbers.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	r := rand.New(rand.NewPCG(1, 2))
	begin := s.place(c)
	want := map[string][]string{}
	for i := range 5 {
		stream, texts := sayings(r)
		file := filepath.Join(t.TempDir(), "said")
		if err := os.WriteFile(file, stream, 0o600); err != nil {
			t.Fatal(err)
		}
		pane := s.run(c, 80, 24, "sh", "-c", fmt.Sprintf("cat %s; exit %d", file, i))
		want["pane:"+pane] = slices.Concat([]string{"created"}, texts,
			[]string{fmt.Sprintf("exited at %d code %d", len(stream), i), fmt.Sprintf("closed at %d", len(stream))})
	}
	got, closed := map[string][]string{}, 0
	err := hear(s.ctx, c, obj{"after": begin}, func(h happened) bool {
		begin++
		if h.Seq != begin {
			t.Errorf("event %d comes as number %d", begin, h.Seq)
		}
		got[h.Resource] = append(got[h.Resource], h.text())
		if h.Event == "closed" {
			closed++
		}
		return closed == len(want)
	})
	if err != nil {
		t.Fatal(err)
	}
	for pane, texts := range want {
		if !slices.Equal(got[pane], texts) {
			t.Errorf("%s: heard\n%q, want\n%q", pane, got[pane], texts)
		}
	}
}

// TestSubscribers: 100 follow, one of them does not read. Everybody else gets every
// number once, or is told how many are gone.
func TestSubscribers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	begin := s.place(c)
	idle := s.deaf(begin)
	defer idle.Close()
	var readers sync.WaitGroup
	for range 99 {
		c := s.client()
		readers.Go(func() {
			at := begin
			err := hear(s.ctx, c, obj{"after": begin}, func(h happened) bool {
				switch {
				case h.Event == "missed" && h.Seq == at+*h.Data.Missed:
				case h.Event != "missed" && h.Seq == at+1:
				default:
					t.Errorf("behind %d comes %+v", at, h)
				}
				at = h.Seq
				return h.Data.Name == "the end"
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	stream, _ := sayings(rand.New(rand.NewPCG(3, 4)))
	file := filepath.Join(t.TempDir(), "said")
	if err := os.WriteFile(file, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	say := func(panes int) { // 420 events each, and what else happens
		for range panes {
			at := s.place(c)
			pane := s.run(c, 80, 24, "cat", file)
			s.hearClosed(c, at, pane)
		}
	}
	say(3)
	call[obj](s, c, "session.create", obj{"name": "the end"})
	readers.Wait()

	// More than is kept, while that one still does not read: who comes late is told
	// what is gone, and gets the rest.
	say(20)
	newest := s.place(c)
	late := s.now(c, begin)
	if gone := newest - begin - 8192; late[0].Event != "missed" || *late[0].Data.Missed != gone || late[0].Seq != begin+gone || len(late) != 8193 {
		t.Errorf("%d events, the first %+v; %d are gone", len(late), late[0], gone)
	}
}

// deaf is a connection that asks for events and reads none of them.
func (s *server) deaf(after uint64) net.Conn {
	s.t.Helper()
	nc, err := net.Dial("unix", filepath.Join(s.dir, "looptape.sock"))
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(nc, `{"id":1,"verb":"hello","params":{"proto":1,"client":"t"}}`+"\n"+`{"id":2,"verb":"events","params":{"after":%d}}`+"\n", after)
	return nc
}

// TestBellFlood: of a million bells few events come, which count them all; another
// pane is heard meanwhile.
func TestBellFlood(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	begin := s.place(c)
	flood := s.run(c, 80, 24, "sh", "-c", `head -c 1000000 /dev/zero | tr '\0' '\a'`)
	quiet := s.run(c, 80, 24, "printf", `\033]2;quiet\a`)
	var bells []happened
	total, heard, closed := 0, false, 0
	err := hear(s.ctx, c, obj{"after": begin}, func(h happened) bool {
		switch {
		case h.Event == "bell" && h.Resource == "pane:"+flood:
			bells = append(bells, h)
			total += max(h.Data.Count, 1)
		case h.Event == "title" && h.Resource == "pane:"+quiet:
			heard = *h.Data.Title == "quiet"
		case h.Event == "closed":
			closed++
		}
		return closed == 2
	})
	if err != nil {
		t.Fatal(err)
	}
	last := bells[len(bells)-1]
	if total != 1000000 || *last.Data.Offset != 1000000 || !heard {
		t.Errorf("%d bells, the last event %+v; the other pane is heard: %v", total, last, heard)
	}
	if most := 66 + int(last.TS.Sub(bells[0].TS)/(100*time.Millisecond)); len(bells) > most {
		t.Errorf("%d events, more than %d", len(bells), most)
	}
}

// TestEventRights: who may read something hears of that and of nothing else.
func TestEventRights(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	begin := s.place(c)
	bearers := map[string]*wire.Client{}
	want := map[string]string{
		"read pane:p1":     "created pane:p1 | closed pane:p1",
		"read window:w0":   "created window:w0 | created pane:p0 | closed pane:p0",
		"read session:s1":  "created session:s1 | created window:w1 | created pane:p1 | closed pane:p1",
		"read session:*":   "created session:s0 | created session:s1",
		"read window:*":    "created window:w0 | created window:w1",
		"read pane:*":      "created pane:p0 | closed pane:p0 | created pane:p1 | closed pane:p1",
		"write *":          "",
		"manage session:*": "",
	}
	for grant := range want {
		bearers[grant], _ = s.bearer(c, strings.NewReplacer(" ", ".", ":", ".", "*", "all").Replace(grant), grant)
	}
	for range 2 {
		s.hearClosed(c, begin, s.run(c, 80, 24, "true"))
	}
	for grant, want := range want {
		var got []string
		for _, h := range s.now(bearers[grant], begin) {
			if h.Event == "created" || h.Event == "closed" {
				got = append(got, h.Event+" "+h.Resource)
			}
		}
		if text := strings.Join(got, " | "); text != want {
			t.Errorf("%s hears %q, not %q", grant, text, want)
		}
	}
}

// TestReadsCauseNoEvents: no verb that reads causes an event, with whatever
// parameters, whether it succeeds or fails.
func TestReadsCauseNoEvents(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	live := s.run(c, 80, 24, "sh", "-c", `printf 'x\a\033]2;t\a'; exec sleep 1000`)
	ended := s.run(c, 80, 24, "seq", "1", "100")
	s.hearClosed(c, 0, ended)
	s.until(c, live, "written", func(p paneInfo) bool { return p.Offset == 8 })
	begin := s.place(c)
	for i := range manifest.Verbs {
		v := &manifest.Verbs[i]
		if v.Changes() != manifest.Reads {
			continue
		}
		for _, pane := range []string{live, ended, "p99", "", "\x00"} {
			s.readAll(v, pane)
		}
	}
	// Behind all of it something happens, and nothing before that.
	call[obj](s, c, "session.create", obj{"name": "the end"})
	if got := s.now(c, begin); len(got) != 1 || got[0].Data.Name != "the end" {
		t.Errorf("reading caused %+v", got)
	}
}

// readAll calls a verb about a pane with good parameters and with bad ones. What it
// answers is its own matter.
func (s *server) readAll(v *manifest.Verb, pane string) {
	s.t.Helper()
	base := obj{}
	for _, p := range v.Params {
		switch {
		case p.Name == "pane":
			base["pane"] = pane
		case p.Name == "wait_ms" || p.Name == "timeout_ms":
			base[p.Name] = 1
		case p.Name == "pattern":
			base[p.Name] = "x"
		}
	}
	calls := []obj{base}
	for _, p := range v.Params {
		for _, value := range values(&p) {
			params := obj{p.Name: value}
			for name, v := range base {
				if name != p.Name {
					params[name] = v
				}
			}
			calls = append(calls, params)
		}
	}
	c := s.client()
	for _, params := range calls {
		if v.Binary { // which ends the connection
			c = s.client()
		}
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		_, err := c.Stream(ctx, v.Name, params, func(json.RawMessage) error { return nil })
		if v.Binary {
			c.Close()
		} else if ctx.Err() != nil {
			s.t.Errorf("%s %v does not end: %v", v.Name, params, err)
		}
		cancel()
	}
}

// values are some that a parameter may have, or not.
func values(p *manifest.Param) (list []any) {
	for _, choice := range p.Choices {
		list = append(list, choice)
	}
	switch p.Type {
	case manifest.Integer:
		if p.Name != "wait_ms" && p.Name != "timeout_ms" {
			list = append(list, 0, 1, 3, 1<<40)
		}
		list = append(list, -1, "1")
	case manifest.Boolean:
		list = append(list, true, 1)
	case manifest.String:
		list = append(list, "x", 7)
	default:
		list = append(list, "x", []string{"x"}, nil)
	}
	return list
}

// TestEvicted: what retention takes away is told, each byte once.
func TestEvicted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	begin := s.place(c)
	session := call[struct{ Session string }](s, c, "session.create", obj{}).Session
	pane := call[struct{ Pane string }](s, c, "window.create", obj{
		"session": session, "retain": 4 << 20, "argv": []string{"sh", "-c", "seq 1 3000000; exec sleep 1000"},
	}).Pane
	var gone uint64
	err := hear(s.ctx, c, obj{"after": begin}, func(h happened) bool {
		if h.Event != "evicted" {
			return false
		}
		if h.Resource != "pane:"+pane || *h.Data.Oldest != gone+*h.Data.Bytes {
			t.Errorf("behind offset %d: %s %d bytes went, and the oldest is %d", gone, h.Resource, *h.Data.Bytes, *h.Data.Oldest)
		}
		gone = *h.Data.Oldest
		return gone > 8<<20
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := call[paneInfo](s, c, "pane.get", obj{"pane": pane}); p.Oldest < gone {
		t.Errorf("%d bytes went, and the oldest is %d", gone, p.Oldest)
	}
	if p := call[health](s, c, "doctor", obj{}).Panes[0]; p.Evicted < gone || p.Retain != 4<<20 {
		t.Errorf("%d bytes went, and doctor says %+v", gone, p)
	}
}
