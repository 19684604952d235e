package capture

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"

	"looptape/replay"
	"looptape/store"
)

// program is how many instructions package regexp compiles a pattern to.
func program(t testing.TB, pattern string) int {
	t.Helper()
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		t.Fatal(err)
	}
	return len(prog.Inst)
}

// TestLargePattern: what a pattern may cost is bounded before it is compiled,
// however it comes about.
func TestLargePattern(t *testing.T) {
	for pattern, fits := range map[string]bool{
		strings.Repeat("a", 4096):                         true,
		strings.Repeat("a", 4097):                         false,
		strings.Repeat("(", 1<<20):                        false, // not even read
		"(":                                               false,
		"x{1000}":                                         true,
		strings.Repeat(".{0,1000}", 3):                    true,
		strings.Repeat(".{0,1000}", 440):                  false,
		strings.Repeat("[^a]{1000}", 11):                  false,
		"(" + strings.Repeat("[ab]", 300) + "){100}":      false,
		"((" + strings.Repeat("a?b*", 300) + "){10}){10}": false,
		"((((((a{10}){10}){10}){2}){2}){2})":              false, // package regexp's own bound
		"(" + strings.Repeat("é|", 1000) + "x){2}":        true,
		strings.Repeat("(?i:é){500}", 40):                 false,
		strings.Repeat("(ab|cd|ef){0,50}", 200):           false,
	} {
		_, err := compile(pattern)
		if e := new(Error); fits != (err == nil) || err != nil && (!errors.As(err, &e) || e.Code != "invalid_params.pattern") {
			t.Errorf("%.40q, of %d bytes: %v", pattern, len(pattern), err)
		}
	}
	if _, err := compile(strings.Repeat("(", 4097)); err == nil || !strings.Contains(err.Error(), "4096") {
		t.Errorf("a pattern that is too long is refused with %v", err)
	}
}

// countdown is a context that is cancelled once it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// largest is about the most expensive pattern; nothing of x matches it.
var largest = strings.Repeat(".{0,900}", 4) + "[^ -~]"

// TestLongMatch: a match that takes long asks in the middle of a line whether it is
// still wanted, and finds what package regexp finds if it is.
func TestLongMatch(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and all of it in one goroutine")
	}
	p, err := compile(largest)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.Repeat([]byte("x"), 4<<10)
	for asked := range 8 {
		if _, err := p.find(&countdown{t.Context(), asked}, line); !errors.Is(err, context.Canceled) {
			t.Errorf("find, cancelled when asked %d times: %v", asked, err)
		}
		if _, err := p.match(&countdown{t.Context(), asked}, line); !errors.Is(err, context.Canceled) {
			t.Errorf("match, cancelled when asked %d times: %v", asked, err)
		}
	}
	for _, tail := range []string{"", "é", "\xff", "é and more", "\x80\xc3"} {
		line := append(bytes.Repeat([]byte("x"), 1<<10), tail...)
		want := regexp.MustCompile(largest).FindIndex(line)
		at, err := p.find(t.Context(), line)
		found, merr := p.match(t.Context(), line)
		if err != nil || merr != nil || !slices.Equal(at, want) || found != (want != nil) {
			t.Errorf("in a line that ends in %q: %v and %v, not %v (%v, %v)", tail, at, found, want, err, merr)
		}
	}
}

// TestCancelledReaders: a search and a wait ask at every frame whether they are still
// wanted.
func TestCancelledReaders(t *testing.T) {
	p := newTape(t, newStore(t), 1, 20, 5)
	const frames = 50
	for range frames {
		p.write([]byte("some text\r\n"))
	}
	since, none := uint64(0), "none"
	for name, f := range map[string]func(context.Context) error{
		"search": func(ctx context.Context) error {
			_, err := Search(ctx, p, SearchRequest{Pattern: none, Limit: 1}, time.Now)
			return err
		},
		"wait": func(ctx context.Context) error {
			_, err := Wait(ctx, p, WaitRequest{Pattern: &none, Since: &since})
			return err
		},
	} {
		if err := f(t.Context()); err != nil {
			t.Fatal(err)
		}
		for asked := range frames {
			if err := f(&countdown{t.Context(), asked}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, cancelled when asked %d times: %v", name, asked, err)
			}
		}
	}
}

// TestExpensiveScan: an answer looks at less of the stream with a large pattern, and
// goes on until the end all the same.
func TestExpensiveScan(t *testing.T) {
	p := newTape(t, newStore(t), 1, 80, 5)
	for range 40 {
		p.log.Append(store.Output, store.Time{}, bytes.Repeat([]byte("x\r\n"), 100))
	}
	p.log.Append(store.Output, store.Time{}, []byte("é\r\n"))
	q := SearchRequest{Pane: "p0", Pattern: largest, Limit: 10, Scan: 120 << 10}
	var matches []Match
	pages := 1
	for ; ; pages++ {
		r, err := Search(t.Context(), noView{p}, q, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		matches = append(matches, r.Matches...)
		if !r.More {
			break
		}
		q.Cursor = &r.Cursor
	}
	if len(matches) != 1 || matches[0].Line != "é" || pages < 10 {
		t.Errorf("%d matches in %d pages", len(matches), pages)
	}
}

// noView is a pane whose terminal nobody asks for.
type noView struct{ *tape }

func (noView) View(context.Context, func(*replay.Terminal, bool)) error { return nil }
