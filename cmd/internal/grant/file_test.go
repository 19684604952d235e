package grant

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"looptape/cmd/internal/manifest"
)

// The file as the package's doc draws it, and what it means.
const drawn = `{
  "version": 1,
  "unknown": [{"right": "read", "scopes": ["session:s0"]}],
  "tokens": [{
    "name": "ci",
    "sha256": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
    "created": "2026-11-30T20:07:52Z",
    "grants": [{"right": "write", "scopes": ["pane:p1", "session:s2"]}]
  }]
}`

func TestFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, drawn)
	a := open(t, dir)
	secret := "secret" // its hash is that of the file, by sha256sum
	ci, ok := a.Identify(&secret)
	if !ok || ci.Name() != "ci" {
		t.Fatalf("the token of the file is %v, %t", ci, ok)
	}
	if _, ok := a.Identify(new(string)); ok {
		t.Error("the empty token is somebody's")
	}
	for _, c := range []struct {
		caller Caller
		right  manifest.Right
		on     string
		want   bool
	}{
		{Unknown, manifest.Read, "pane:p0", true},
		{Unknown, manifest.Read, "pane:p2", false},
		{Unknown, manifest.Write, "pane:p0", false},
		{ci, manifest.Write, "pane:p1", true},
		{ci, manifest.Write, "pane:p0", false},
		{ci, manifest.Read, "pane:p1", false},
		{ci, manifest.Read, "pane:p0", false}, // what unknown callers may is not its own
		{ci, manifest.Manage, "pane:p1", false},
		{ci, manifest.None, "*", true},
		{Owner, manifest.Manage, "*", true},
		{Owner, manifest.Write, "pane:p9", true},
		{Caller{}, manifest.Read, "pane:p0", false},
	} {
		if a.Allows(c.caller, c.right, world[c.on]) != c.want {
			t.Errorf("%s: %s on %s: %t", c.caller.Name(), c.right, c.on, !c.want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, File)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file that a person wrote is %v, %v", info.Mode(), err)
	}
}

func TestDefaults(t *testing.T) {
	for name, text := range map[string]string{"no file": "", "no unknown": `{"version":1}`, "no tokens": `{"version":1,"tokens":[]}`} {
		dir := t.TempDir()
		if text != "" {
			write(t, dir, text)
		}
		a := open(t, dir)
		if !a.Allows(Unknown, manifest.Read, world["pane:p9"]) || a.Allows(Unknown, manifest.Write, world["pane:p0"]) || a.Allows(Unknown, manifest.Manage, Everything) {
			t.Errorf("%s: unknown callers may %v", name, a.List()[0].Grants)
		}
	}
	for _, text := range []string{`{"version":1,"unknown":[]}`, `{"version":1,"unknown":[{"right":"read","scopes":[]}]}`, `{"version":1,"unknown":[{"right":"read"}]}`} {
		dir := t.TempDir()
		write(t, dir, text)
		a := open(t, dir)
		if a.Allows(Unknown, manifest.Read, world["pane:p0"]) {
			t.Errorf("%s opens up", text)
		}
		if _, _, err := a.Create("x", nil); err != nil { // what is written can be read again
			t.Error(err)
		}
		if open(t, dir).Allows(Unknown, manifest.Read, world["pane:p0"]) {
			t.Errorf("%s opens up when it is written again", text)
		}
	}
}

// TestRefused: a file that is not exactly right lets nobody in.
func TestRefused(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(drawn, old) {
			t.Fatalf("%q is not in the file", old)
		}
		return strings.Replace(drawn, old, new, 1)
	}
	token := drawn[strings.Index(drawn, `[{
`)+1 : strings.LastIndex(drawn, "]")]
	for name, text := range map[string]string{
		"empty":                "",
		"null":                 "null",
		"array":                "[]",
		"no object":            `"version"`,
		"no version":           `{}`,
		"version 0":            `{"version":0}`,
		"version of text":      `{"version":"1"}`,
		"more behind it":       drawn + "{}",
		"version twice":        change(`"version": 1,`, `"version": 1, "version": 1,`),
		"unknown twice":        change(`"version": 1,`, `"version": 1, "unknown": [],`),
		"unknown in capitals":  change(`"unknown"`, `"Unknown"`),
		"unknown misspelled":   change(`"unknown"`, `"unkown"`),
		"unknown null":         change(`[{"right": "read", "scopes": ["session:s0"]}]`, `null`),
		"unknown an object":    change(`[{"right": "read", "scopes": ["session:s0"]}]`, `{"right": "read", "scopes": ["session:s0"]}`),
		"member elsewhere":     change(`"name": "ci"`, `"name": "ci", "unknown": []`),
		"scopes null":          change(`["pane:p1", "session:s2"]`, `null`),
		"scopes a string":      change(`["pane:p1", "session:s2"]`, `"pane:p1"`),
		"scope null":           change(`"pane:p1"`, `null`),
		"scope wrong":          change(`pane:p1`, `pane:1`),
		"right missing":        change(`"right": "read", `, ``),
		"right unknown":        change(`"read"`, `"own"`),
		"right empty":          change(`"read"`, `""`),
		"token right unknown":  change(`"write"`, `"all"`),
		"name reserved":        change(`"ci"`, `"owner"`),
		"name with a slash":    change(`"ci"`, `"../ci"`),
		"name missing":         change(`"name": "ci",`, ``),
		"hash short":           change(`2bb8`, ``),
		"hash no hex":          change(`2bb8`, `2bbx`),
		"hash missing":         change(`"sha256": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",`, ``),
		"created no time":      change(`2026-11-30T20:07:52Z`, `yesterday`),
		"token twice":          change(token, token+","+token),
		"same token two names": change(token, token+","+strings.Replace(token, "ci", "cd", 1)),
		"same name two tokens": change(token, token+","+strings.Replace(token, "2bb8", "2bb9", 1)),
	} {
		refused(t, name, text, ErrDamaged)
	}
	for _, text := range []string{`{"version":2}`, `{"version":2,"future":null}`, change(`"version": 1`, `"version": 7`)} {
		refused(t, text, text, ErrNewerVersion)
	}
	for n := range len(drawn) {
		if _, _, err := parse([]byte(drawn[:n])); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

func refused(t *testing.T, name, text string, want error) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, text)
	_, err := Open(dir)
	if !errors.Is(err, want) || errors.Is(want, ErrNewerVersion) && errors.Is(err, ErrDamaged) {
		t.Errorf("%s: %v", name, err)
	}
	if raw, rerr := os.ReadFile(filepath.Join(dir, File)); rerr != nil || string(raw) != text {
		t.Errorf("%s: the file was changed", name)
	}
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, File), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("a directory is read as a file")
	}
	dir = t.TempDir()
	big := append(append([]byte(`{"version":1`), bytes.Repeat([]byte(" "), maxFile)...), '}')
	write(t, dir, string(big))
	if _, err := Open(dir); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file of %d bytes: %v", len(big), err)
	}
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, File), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *Authority {
	t.Helper()
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// FuzzParse: whatever the file, it is read or refused, and what is read means the
// same when it is written and read again. Without "unknown" in the file nobody
// but who bears a token gets more than the default.
func FuzzParse(f *testing.F) {
	f.Add([]byte(drawn))
	f.Add([]byte(`{"version":1,"unknown":null}`))
	f.Add([]byte(`{"version":1,"tokens":[{"name":"a","sha256":"` + hex.EncodeToString(make([]byte, sha256.Size)) + `"}]}`))
	f.Add([]byte(`{"version":1,"\u0075nknown":[],"unknown":[{"right":"manage","scopes":["*"]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		known, unknown, err := parse(raw)
		if err != nil {
			if errors.Is(err, ErrDamaged) == errors.Is(err, ErrNewerVersion) {
				t.Fatalf("neither damaged nor newer, or both: %v", err)
			}
			return
		}
		if !bytes.Contains(raw, []byte("unknown")) && !bytes.Contains(raw, []byte(`\u`)) && !reflect.DeepEqual(unknown, defaultGrants()) {
			t.Fatalf("unknown callers may %v", unknown)
		}
		written, err := format(unknown, known)
		if err != nil {
			t.Fatal(err)
		}
		again, unknownAgain, err := parse(written)
		if err != nil {
			t.Fatalf("%v of what was written:\n%s", err, written)
		}
		if !reflect.DeepEqual(unknown, unknownAgain) || len(again) != len(known) {
			t.Fatalf("%v and %d tokens became %v and %d", unknown, len(known), unknownAgain, len(again))
		}
		for hash, one := range known {
			two := again[hash]
			if two == nil || one.name != two.name || !one.created.Equal(two.created) || !reflect.DeepEqual(one.grants, two.grants) {
				t.Fatalf("%v became %v", one, two)
			}
		}
	})
}
