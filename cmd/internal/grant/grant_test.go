package grant

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"looptape/cmd/internal/manifest"
)

var readP1 = []Grant{{manifest.Read, []Scope{{manifest.Pane, "p1"}}}}

func TestTokens(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	made, secret, err := a.Create("ci", readP1)
	if err != nil || made.Name != "ci" || len(made.Grants) != 1 {
		t.Fatal(made, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil || strings.Contains(string(raw), secret[4:]) {
		t.Fatalf("the file holds the token itself, or nothing: %v\n%s", err, raw)
	}
	if _, _, err := a.Create("ci", readP1); !errors.Is(err, ErrTaken) {
		t.Errorf("a second token of the same name: %v", err)
	}
	later := open(t, dir) // a restart
	for _, b := range []*Authority{a, later} {
		c, ok := b.Identify(&secret)
		if !ok || c.Name() != "ci" || !b.Allows(c, manifest.Read, world["pane:p1"]) || b.Allows(c, manifest.Read, world["pane:p0"]) {
			t.Errorf("the token is %v, %t", c, ok)
		}
	}

	// Of two tokens of a name, one after the other, only the second is worth
	// anything, whatever the first has opened.
	old, _ := a.Identify(&secret)
	if err := a.Revoke("ci"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Create("ci", readP1); err != nil {
		t.Fatal(err)
	}
	if !old.Revoked() || old.Life().Err() == nil || a.Allows(old, manifest.Read, world["pane:p1"]) {
		t.Error("a revoked token is still worth something")
	}
	if _, ok := a.Identify(&secret); ok {
		t.Error("a revoked token still names somebody")
	}
	if _, ok := open(t, dir).Identify(&secret); ok {
		t.Error("a revoked token is back after a restart")
	}
	if err := a.Revoke("cd"); !errors.Is(err, ErrNoToken) {
		t.Errorf("revoking nothing: %v", err)
	}
	for _, name := range []string{"owner", "unknown"} {
		var bad *NameError
		if err := a.Revoke(name); !errors.As(err, &bad) || !bad.Reserved {
			t.Errorf("revoking %s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	a := open(t, t.TempDir())
	for _, bad := range []string{"", ".", "..", ".x", "-x", "_x", "a/b", "../x", "A", "CI", "a b", "a\n", "a\x00", "é", strings.Repeat("a", 65), "owner", "unknown"} {
		var wrong *NameError
		if _, _, err := a.Create(bad, readP1); !errors.As(err, &wrong) {
			t.Errorf("the name %q: %v", bad, err)
		}
	}
	for _, good := range []string{"a", "0", "ci-2", "a.b_c-d", "owner2", strings.Repeat("a", 64)} {
		if _, _, err := a.Create(good, readP1); err != nil {
			t.Errorf("the name %q: %v", good, err)
		}
	}
}

// TestFailedWrites: a token that is not on disk is not made; one that is revoked
// is worth nothing even if the file keeps it, and can be revoked again.
func TestFailedWrites(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	_, secret, err := a.Create("ci", readP1)
	if err != nil {
		t.Fatal(err)
	}
	block := filepath.Join(dir, File+".new") // where the next file is to be
	if err := os.Mkdir(block, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Create("cd", readP1); err == nil || len(a.List()) != 2 {
		t.Errorf("a token was made without a file: %v, %v", a.List(), err)
	}
	c, _ := a.Identify(&secret)
	if err := a.Revoke("ci"); err == nil || !strings.Contains(err.Error(), "a restart would bring it back") {
		t.Errorf("revoking without a file: %v", err)
	}
	if _, ok := a.Identify(&secret); ok || a.Allows(c, manifest.Read, world["pane:p1"]) {
		t.Error("the token is still worth something")
	}
	if l := a.List(); len(l) != 2 || len(l[1].Grants) != 0 {
		t.Errorf("the list: %v", l)
	}
	if _, ok := open(t, dir).Identify(&secret); !ok {
		t.Error("the file was written after all")
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke("ci"); err != nil || len(a.List()) != 1 {
		t.Errorf("revoking again: %v, %v", a.List(), err)
	}
	if _, ok := open(t, dir).Identify(&secret); ok {
		t.Error("the file still has the token")
	}
}

// TestEdited: a file that somebody else has changed is not written over.
func TestEdited(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	write(t, dir, drawn)
	if _, _, err := a.Create("x", readP1); !errors.Is(err, ErrEdited) {
		t.Errorf("a file that has come: %v", err)
	}
	a = open(t, dir)
	if _, _, err := a.Create("x", readP1); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, File)); err != nil {
		t.Fatal(err)
	}
	if err := a.Revoke("x"); !errors.Is(err, ErrEdited) {
		t.Errorf("a file that has gone: %v", err)
	}
	if len(a.List()) != 3 {
		t.Errorf("%v", a.List())
	}
}

func TestFull(t *testing.T) {
	dir := t.TempDir()
	text := `{"version":1,"tokens":[`
	for i := range maxTokens {
		text += fmt.Sprintf(`{"name":"t%d","sha256":"%064x","grants":[]},`, i, i)
	}
	write(t, dir, strings.TrimSuffix(text, ",")+"]}")
	a := open(t, dir)
	if _, _, err := a.Create("x", readP1); !errors.Is(err, ErrFull) {
		t.Errorf("one token more: %v", err)
	}
	if err := a.Revoke("t7"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Create("x", readP1); err != nil {
		t.Error(err)
	}
}

// TestLargest: the largest file that a daemon can write is one that it reads.
func TestLargest(t *testing.T) {
	known := tokens{}
	var grants []Grant
	for i := range MaxScopes {
		grants = append(grants, Grant{rights[i%len(rights)], []Scope{{manifest.Session, fmt.Sprintf("s%d", uint64(1<<64-1)-uint64(i))}}})
	}
	for i := range maxTokens {
		var hash [32]byte
		hash[0], hash[1] = byte(i), byte(i>>8)
		known[hash] = newToken(fmt.Sprintf("%064d", i), hash, time.Date(2026, 11, 30, 20, 7, 52, 0, time.UTC), merge(grants))
	}
	raw, err := format(defaultGrants(), known)
	if err != nil || len(raw) > maxFile {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	if again, _, err := parse(raw); err != nil || len(again) != maxTokens {
		t.Fatalf("%d tokens, %v", len(again), err)
	}
}

// TestAtOnce: of many who make, use and revoke tokens at once, each sees its own.
func TestAtOnce(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 5 {
				name := fmt.Sprintf("t%d-%d", i, j)
				_, secret, err := a.Create(name, readP1)
				if err != nil {
					t.Error(err)
					return
				}
				c, ok := a.Identify(&secret)
				if !ok || c.Name() != name || !a.Allows(c, manifest.Read, world["pane:p1"]) {
					t.Errorf("%s is %v, %t", name, c, ok)
				}
				if j%2 == 0 {
					if err := a.Revoke(name); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if n, m := len(a.List()), len(open(t, dir).List()); n != 1+8*2 || m != n {
		t.Errorf("%d entries, %d after a restart", n, m)
	}
}
