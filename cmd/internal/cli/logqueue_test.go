package cli

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestLogQueue: lines that are written while nobody reads come in order when somebody
// does, as many as there is room for, and how many are missing is said where they are.
func TestLogQueue(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	q := newLogQueue(w)
	const lines = 4 * maxQueued / 64
	for i := range lines {
		fmt.Fprintf(q, "%063d\n", i)
	}
	in := bufio.NewScanner(r)
	next, missing := 0, 0
	for next < lines && in.Scan() {
		if _, count, ok := strings.Cut(in.Text(), "lines of this log were dropped: nothing took them\" lines="); ok {
			n, err := strconv.Atoi(count)
			if err != nil {
				t.Fatal(err)
			}
			next, missing = next+n, missing+n
		} else if want := fmt.Sprintf("%063d", next); in.Text() != want {
			t.Fatalf("%q, not %q", in.Text(), want)
		} else {
			next++
		}
	}
	if missing == 0 || lines-missing < maxQueued/64 {
		t.Errorf("%d lines are missing, of %d", missing, lines)
	}
	fmt.Fprintln(q, "and on")
	if !in.Scan() || in.Text() != "and on" {
		t.Errorf("and then %q", in.Text())
	}
	fmt.Fprintln(q, "the last")
	q.close()
	w.Close()
	if !in.Scan() || in.Text() != "the last" || in.Scan() {
		t.Errorf("at the end %q", in.Text())
	}
}
