package capture

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"looptape/replay"
	"looptape/store"
)

// lose is what the program wrote while nothing could be recorded: the live terminal
// had it, and the checkpoint behind the gap is of that.
func (p *tape) lose(b []byte) {
	p.lost[uint64(len(p.stream))] = len(b)
	p.log.AppendGap(store.Time{}, uint64(len(b)), nil)
	p.term.FlushLines()
	p.term.Feed(b)
	p.stream = append(p.stream, make([]byte, len(b))...)
	p.checkpoint()
}

// TestTranscriptGap: the transcript goes on behind a gap with what was scrolled and
// redrawn in it, and with the screen as it was left.
func TestTranscriptGap(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 4)
	p.write([]byte("one\r\ntwo\r\nthree\r\n"))
	lost := "four\r\nfive\r\nsix\r\nseven\r\n\x1b[2J\x1b[Hredrawn\r\n\x1b[1m"
	p.lose([]byte(lost))
	p.write([]byte("eight\x1b[1;3HDRAWN\r\n\n\n\n\nnine"))
	want := fmt.Sprintf("one\ntwo\nthree\n---- looptape: up to %d bytes from offset 17 on are missing ----\nfour\nreDRAWN\neight\n\n\n\nnine\n", len(lost))
	got, result := exported(t, p, ExportRequest{Format: "text"})
	if got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if result.MissedBytes != uint64(len(lost)) {
		t.Errorf("%+v", result)
	}
}

// TestTranscriptIsSearch: the transcript has the lines that a search for everything
// finds, of the whole recording and of any part, whatever the stream does. The blank
// lines below a line come with it, which a search does not know.
func TestTranscriptIsSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	st := newStore(t)
	for round := range 150 {
		p := newTape(t, st, round, 2+r.IntN(20), 1+r.IntN(6))
		for range 1 + r.IntN(8) {
			p.write(randomStream(r, 1+r.IntN(8)))
			switch r.IntN(8) {
			case 0:
				p.lose(randomStream(r, 1+r.IntN(20)))
			case 1:
				p.apply(replay.MarkResize, replay.AppendResize(nil, 2+r.IntN(20), 1+r.IntN(6)))
			case 2:
				p.apply(replay.MarkRestart, replay.AppendRestart(nil, 0))
				p.checkpoint()
			case 3:
				p.respawn()
			case 4:
				p.checkpoint()
			}
		}
		for range 20 {
			var from, to *uint64
			if r.IntN(4) > 0 {
				n := r.Uint64N(uint64(len(p.stream) + 1))
				from = &n
			}
			if r.IntN(4) > 0 {
				n := r.Uint64N(uint64(len(p.stream) + 1))
				if from != nil {
					n = max(n, *from)
				}
				to = &n
			}
			text, _ := exported(t, p, ExportRequest{Format: "text", From: from, To: to})
			var got, want []string
			for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
				if text != "" && !strings.HasPrefix(line, "---- looptape: ") && (line != "" || from == nil) {
					got = append(got, line)
				}
			}
			for _, m := range p.searchAll(SearchRequest{From: from, To: to, Limit: 10000}) {
				if m.Line != "" || from == nil {
					want = append(want, m.Line)
				}
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Fatalf("round %d of %q, %s:\n%q, and searched\n%q", round, p.stream, rangeName(from, to), got, want)
			}
		}
	}
}

func rangeName(from, to *uint64) string {
	name := "["
	if from != nil {
		name += fmt.Sprint(*from)
	}
	if name += ", "; to != nil {
		name += fmt.Sprint(*to)
	}
	return name + "]"
}

// hostile is what a program could print to harm who looks at its transcript.
var hostile = []string{
	"<script>alert(1)</script><img src=x onerror=alert(2)>",
	"</pre></body><style>body{display:none}</style>&lt;&amp;",
	"\x1b]8;;javascript:alert(3)\x1b\\click\x1b]8;;\x1b\\ \x1b]8;;JavaScript:alert(4)\x1b\\me\x1b]8;;\x1b\\",
	"\x1b]8;;data:text/html,<script>alert(5)</script>\x1b\\data\x1b]8;;\x1b\\ \x1b]8;;file:///etc/passwd\x1b\\file\x1b]8;;\x1b\\",
	"\x1b]8;;https://example.org/\"onmouseover=\"alert(6)\x1b\\quote\x1b]8;;\x1b\\ \x1b]8;;https://example.org/?a=1&b=<c>\x1b\\good\x1b]8;;\x1b\\",
	"\x1b]0;</title><script>alert(7)</script>\a\x1b]52;c;ZXZpbA==\a\x1b[c\x1bP$qm\x1b\\titles and replies",
	"abc\u202edcba\u202c \u2066iso\u2069 \u200fmark \u200bzero \ufefffill \U000e0041tag\u00adsoft",
	"nul\x00 del\x7f c1\u009b31m \xff\xfe\xc3( invalid \x9b31m",
	"\x1b[31;4:3mred\x1b[0;1;7;38;2;1;2;3;48;5;200mmany\x1b[0;8mhidden\x1b[m",
}

// hostilePane has printed all that, twice: in its history and on its screen.
func hostilePane(t *testing.T) *tape {
	p := newTape(t, newStore(t), 1, 120, 12)
	for range 2 {
		for _, line := range hostile {
			p.write([]byte(line + "\r\n"))
		}
	}
	return p
}

// TestHostileText: no control but the line feeds gets into a transcript, and into one
// with colours SGR sequences that are reset at the end of each line.
func TestHostileText(t *testing.T) {
	p := hostilePane(t)
	text, _ := exported(t, p, ExportRequest{Format: "text"})
	checkPlain(t, text)
	colours, _ := exported(t, p, ExportRequest{Format: "ansi"})
	sgr := regexp.MustCompile(`\x1b\[[0-9;:]*m`)
	if stripped := sgr.ReplaceAllString(colours, ""); stripped != text {
		t.Errorf("without colours %q, not %q", stripped, text)
	}
	for line := range strings.SplitSeq(colours, "\n") {
		if all := sgr.FindAllString(line, -1); len(all) > 0 && all[len(all)-1] != "\x1b[0m" {
			t.Errorf("%q leaves something behind", line)
		}
	}
	if want := "\x1b[0;4:3;31mred\x1b[0;1;7;38;2;1;2;3;48;5;200mmany\x1b[0;8mhidden\x1b[0m\n"; strings.Count(colours, want) != 2 {
		t.Errorf("%q has no %q", colours, want)
	}
}

func checkPlain(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Error("it is no UTF-8")
	}
	for _, r := range text {
		if r < ' ' && r != '\n' || r >= 0x7F && r < 0xA0 {
			t.Fatalf("%U in %q", r, text)
		}
	}
}

// TestHostileHTML: of what a program printed only text gets into the page, and links
// to the web. The page is read here with nothing but a rule: outside of tags there is
// no < and no >, and tags are those that the page is made of.
func TestHostileHTML(t *testing.T) {
	p := hostilePane(t)
	page, _ := exported(t, p, ExportRequest{Pane: "p1", Format: "html", Header: CastHeader{Command: "</title><script>alert(8)</script>\u202e"}})
	checkPlain(t, page)
	_, body, _ := strings.Cut(page, "</style>")
	tag := regexp.MustCompile(`<[^<>]*>`)
	allowed := regexp.MustCompile(`^<(/?(head|body|h1|pre|a|i|b|span|html)|pre dir="ltr"|i class="rule"|b class="c"|` +
		`span( class="[a-z0-9 ]+")?( style="[-a-z0-9#:;]+")?|` +
		`a rel="noopener noreferrer nofollow" href="https://example\.org/[^"<> ]*" title="[^"<>]*")>$`)
	for _, tag := range tag.FindAllString(body, -1) {
		if !allowed.MatchString(tag) {
			t.Errorf("tag %s", tag)
		}
	}
	if text := tag.ReplaceAllString(body, ""); strings.ContainsAny(text, "<>") {
		t.Errorf("%q", text)
	}
	head, _, _ := strings.Cut(page, "<style>")
	if n := strings.Count(head, "<"); n != 9 || !strings.Contains(head, "<title>p1: &lt;/title&gt;&lt;script&gt;alert(8)&lt;/script&gt;(U+202E)</title>") {
		t.Errorf("%d tags in %s", n, head)
	}
	for _, r := range "\u202e\u202c\u2066\u2069\u200f\u200b\ufeff\u00ad\U000e0041" {
		if strings.ContainsRune(page, r) {
			t.Errorf("%U is as it was", r)
		}
	}
	for _, want := range []string{
		"&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(2)&gt;\n",
		"\nclick me\n", "\ndata file\n",
		`href="https://example.org/?a=1&amp;b=%3Cc%3E"`, `abc<b class="c">U+202E</b>dcba`,
		`<span class="f1 d1 u3">red</span><span class="g200 bold" style="background:#010203;">many</span><span class="hidden">hidden</span>`,
	} {
		if strings.Count(page, want) != 2 && strings.Count(page, want) != 4 {
			t.Errorf("%d times %s", strings.Count(page, want), want)
		}
	}
}

// TestStyledIsText: with colours or as a page, a transcript has the same lines, but for
// blanks at their ends that have a colour.
func TestStyledIsText(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	st := newStore(t)
	sgr := regexp.MustCompile(`\x1b\[[0-9;:]*m`)
	tag := regexp.MustCompile(`<[^<>]*>`)
	blanks := regexp.MustCompile(` +\n`)
	for round := range 100 {
		p := newTape(t, st, round, 2+r.IntN(20), 1+r.IntN(6))
		for range 1 + r.IntN(8) {
			if p.write(randomStream(r, 1+r.IntN(8))); r.IntN(5) == 0 {
				p.lose(randomStream(r, 1+r.IntN(8)))
			}
		}
		text, _ := exported(t, p, ExportRequest{Format: "text"})
		colours, _ := exported(t, p, ExportRequest{Format: "ansi"})
		if got := blanks.ReplaceAllString(sgr.ReplaceAllString(colours, ""), "\n"); got != text {
			t.Fatalf("round %d: %q, not %q", round, got, text)
		}
		page, _ := exported(t, p, ExportRequest{Format: "html"})
		_, page, _ = strings.Cut(page, "<pre dir=\"ltr\">\n")
		page, _, _ = strings.Cut(page, "</pre>\n")
		if got := blanks.ReplaceAllString(html.UnescapeString(tag.ReplaceAllString(page, "")), "\n"); got != text {
			t.Fatalf("round %d: %q, not %q", round, got, text)
		}
	}
}
