package main_test

import (
	"flag"
	"os"
	"testing"

	"looptape/cmd/internal/guide"
)

var update = flag.Bool("update", false, "write docs/reference.md anew")

// TestReference: the reference page is what the manifest says.
func TestReference(t *testing.T) {
	const page = "../../docs/reference.md"
	want := guide.Reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Errorf("docs/reference.md is stale (%v): go test ./cmd/looptape -run TestReference -update", err)
	}
}
