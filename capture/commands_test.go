package capture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"looptape/replay"
	"looptape/store"
)

// shellPieces are what the streams of these tests are made of: marks whole and
// broken, by BEL and by ST, and what lies between.
var shellPieces = []string{
	"\x1b]133;A\a", "\x1b]133;B\x1b\\", "\x1b]133;C\a", "\x1b]133;C;cmdline_url=ls%20-l\x1b\\",
	"\x1b]133;D\a", "\x1b]133;D;0\x1b\\", "\x1b]133;D;127;aid=1\a", "\x1b]133;D", "\x1b]133;Z\a", "\x1b]133;Cx\a",
	"\x1b]7;file://host/a%20b\a", "\x1b\a]133;C\a", "\x1b[3\x1b]133;D;2\a", "\x1bP\x1b]133;A\a", "\x1b]133;C\x18",
	"\x1b]133;D;1\x1b", "out\r\n", "$ ", "\xe6\xbc\xa2", "\xe6", "\x1b[31m", "]133;D\a", "\x1b", "\a",
}

// TestMarksAreTheTerminals: the marks that are found in a stream, cut anywhere, are
// those that the terminal sees; and the bytes of each are a whole mark.
func TestMarksAreTheTerminals(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	kinds := map[replay.EventKind]markKind{replay.PromptStart: 'A', replay.CommandStart: 'B', replay.OutputStart: 'C', replay.CommandEnd: 'D', replay.CwdChanged: 'W'}
	for round := range 3000 {
		var stream []byte
		for range 1 + r.IntN(12) {
			stream = append(stream, shellPieces[r.IntN(len(shellPieces))]...)
		}
		var want, got []string
		term := replay.New(20, 5, 100)
		term.SetEventSink(func(e replay.Event) {
			if kind, ok := kinds[e.Kind]; ok {
				want = append(want, fmt.Sprintf("%c %q", kind, e.Text))
			}
		})
		term.Feed(stream)
		scan := markScan{found: func(m mark) {
			got = append(got, fmt.Sprintf("%c %q", m.kind, m.text))
			s := stream[m.start:m.end]
			alone := replay.New(20, 5, 100)
			seen := 0
			alone.SetEventSink(func(e replay.Event) {
				if kinds[e.Kind] == m.kind {
					seen++
				}
			})
			alone.Feed(s)
			alone.Feed([]byte("\x1bX"))
			if s[0] != 0x1B || seen != 1 {
				t.Fatalf("round %d: a mark of the bytes %q in %q", round, s, stream)
			}
		}}
		for at := 0; at < len(stream); {
			n := min(len(stream)-at, 1+r.IntN(9))
			scan.feed(uint64(at), stream[at:at+n], store.Time{})
			at += n
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %q:\n%q, not\n%q", round, stream, got, want)
		}
	}
}

// TestCommands: every command once, in pages of any size, as the shell marked it.
func TestCommands(t *testing.T) {
	r := rand.New(rand.NewPCG(53, 54))
	st := newStore(t)
	for round := range 40 {
		p := newTape(t, st, round, 20, 5)
		var want []string
		running := ""
		second := int64(0)
		write := func(s string) (from, to uint64) {
			second++
			from = uint64(len(p.stream))
			p.log.Append(store.Output, store.Time{Wall: seconds(second).UnixNano()}, []byte(s))
			p.term.Feed([]byte(s))
			p.stream = append(p.stream, s...)
			return from, uint64(len(p.stream))
		}
		for i := range 5 + r.IntN(30) {
			write("\x1b]7;file:///d" + fmt.Sprint(i) + "\a\x1b]133;A\a$ \x1b]133;B\a")
			_, start := write(fmt.Sprintf("\x1b]133;C;cmdline_url=run%%20%d\x1b\\", i))
			write(fmt.Sprintf("output %d\r\n", i))
			if running = fmt.Sprintf("%d-? run %d /d%d", start, i, i); r.IntN(8) == 0 && i > 3 {
				break
			}
			switch end, _ := write(fmt.Sprintf("\x1b]133;D;%d\a", i)); r.IntN(6) {
			case 0:
				want = append(want, fmt.Sprintf("%d-%d run %d /d%d exit %d 2s", start, end, i, i, i))
				write("\x1b]133;D\a") // as some shells do before their first prompt
			default:
				want = append(want, fmt.Sprintf("%d-%d run %d /d%d exit %d 2s", start, end, i, i, i))
			}
			running = ""
		}
		if running != "" {
			want = append(want, running)
		}
		p.checkCommands(1+r.IntN(5), want)
		for n := range want {
			c, err := nthCommand(t.Context(), p, n-len(want))
			if got := c.describe(); err != nil || got != want[n] {
				t.Fatalf("round %d: command %d is %s, not %s (%v)", round, n-len(want), got, want[n], err)
			}
		}
		if _, err := nthCommand(t.Context(), p, -len(want)-1); err == nil {
			t.Fatalf("round %d: there is one command too many", round)
		}
	}
}

func (c Command) describe() string {
	end, rest := "?", ""
	if c.End != nil {
		end = fmt.Sprint(*c.End)
	}
	if c.Exit != nil {
		rest += fmt.Sprintf(" exit %d", *c.Exit)
	}
	if c.Seconds != nil {
		rest += fmt.Sprintf(" %gs", *c.Seconds)
	}
	return fmt.Sprintf("%d-%s %s %s%s", c.Start, end, c.Command, c.Cwd, rest)
}

func (p *tape) checkCommands(limit int, want []string) {
	p.t.Helper()
	var got []string
	for q := (CommandsRequest{Limit: limit}); ; {
		r, err := Commands(p.t.Context(), p, q)
		if err != nil {
			p.t.Fatal(err)
		}
		var page []string
		for _, c := range r.Commands {
			page = append(page, c.describe())
		}
		got = append(page, got...)
		if len(r.Commands) > limit {
			p.t.Fatalf("%d commands, the limit is %d", len(r.Commands), limit)
		}
		if !r.More {
			break
		}
		q.Before = &r.From
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Fatalf("pages of %d:\n%q, not\n%q", limit, got, want)
	}
}

// TestCommandEnds: a command without its mark of the end ends where the program or
// the recording did, or where the next prompt begins; what is over has no exit code
// that nobody told.
func TestCommandEnds(t *testing.T) {
	for name, c := range map[string]struct {
		after string
		kind  store.Kind
		data  []byte
		want  string
	}{
		"running": {"out", 0, nil, "8-? "},
		"prompt":  {"out\x1b]133;A\a$ ", 0, nil, "8-11 "},
		"another": {"out\x1b]133;C\a", 0, nil, "8-11 "},
		"exit":    {"out", replay.MarkExit, replay.AppendExit(nil, replay.Exit{}), "8-11 "},
		"restart": {"out", replay.MarkRestart, replay.AppendRestart(nil, 0), "8-11 "},
		"respawn": {"out", replay.MarkRespawn, nil, "8-11 "},
	} {
		p := newTape(t, newStore(t), 0, 20, 5)
		p.write([]byte("\x1b]133;C\a" + c.after))
		if c.kind != 0 {
			p.apply(c.kind, c.data)
		}
		r, err := Commands(t.Context(), p, CommandsRequest{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Commands[0]; got.Start != 8 || fmt.Sprintf("%d-%s ", got.Start, map[bool]string{true: "?", false: "11"}[got.End == nil]) != c.want || got.Exit != nil {
			t.Errorf("%s: %s, not %s", name, got.describe(), c.want)
		}
	}
}

// TestDirectory: a directory of this host is a path, and of another it stays a URI.
func TestDirectory(t *testing.T) {
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"file:///etc":                       "/etc",
		"file:/etc":                         "/etc",
		"file://localhost/a%20b%C3%A9":      "/a bé",
		"file://" + here + "/etc":           "/etc",
		"file://elsewhere.invalid/a%20b":    "file://elsewhere.invalid/a%20b",
		"file://elsewhere.invalid":          "file://elsewhere.invalid",
		"file:///a%ZZ":                      "file:///a%ZZ",
		"kitty-shell-cwd://localhost/a%20b": "kitty-shell-cwd://localhost/a%20b",
		"/plain %20":                        "/plain %20",
		"file:///\xff":                      "/\uFFFD",
	} {
		if got := Directory(text); got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
	}
}
