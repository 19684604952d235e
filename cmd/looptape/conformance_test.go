package main_test

import (
	"fmt"
	"testing"
)

// conformance is the matrix of seed 000, section 10, by its numbers. Case 23, the
// canary, is checked behind every case besides.
var conformance = []struct {
	number int
	what   string
	run    func(*rig)
}{
	{1, "the worked example; all of it in pages", caseExample},
	{2, "the screen's rows are those of pane.capture", caseScreen},
	{3, "graphemes, wide characters, tabs, quotes", caseGraphemes},
	{4, "colours, links, titles, clears", caseSequences},
	{5, "100 calls at once on a pane that writes", caseBusy},
	{6, "pages that are slower than the pane", caseOutrun},
	{7, "history does not change", caseHistory},
	{8, "resizes by a client that is attached", caseResized},
	{9, "a program on the alternate screen", caseAlternate},
	{10, "erased history, a reset, a resize", caseErased},
	{11, "parameters that exclude or need each other", caseCombinations},
	{12, "parameters out of range", caseRanges},
	{13, "rows that are gone, or do not exist yet", caseOutside},
	{14, "no rows", caseEmpty},
	{15, "pages by bytes", caseBytes},
	{16, "the widest pane, in bounded memory", caseWide},
	{17, "pages by frames", caseFrame},
	{18, "a caller without the right", caseDenied},
	{19, "rights on what contains a pane", caseScopes},
	{20, "nothing changes for clients that are attached", caseViewers},
	{21, "no event by a read", caseEvents},
	{22, "exited panes and archives", caseEnded},
	{23, "what a pane prints is in results only", caseCanary},
	{24, "pane.capture", caseCapture},
}

// TestConformance runs every case by every way to call a verb, against a real
// daemon with real PTYs. What is expected follows from the bytes that the test,
// or a program of the system, wrote.
func TestConformance(t *testing.T) {
	t.Parallel()
	for i, c := range conformance {
		if c.number != i+1 || len(conformance) != 24 {
			t.Fatalf("case %d comes as number %d of %d", c.number, i+1, len(conformance))
		}
	}
	for _, d := range []driver{cliDriver{}, mcpDriver{}} {
		for _, c := range conformance {
			t.Run(fmt.Sprintf("%v/%02d", d, c.number), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, d)
				c.run(r)
				r.noLeaks()
			})
		}
	}
}
