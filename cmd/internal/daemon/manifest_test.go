package daemon

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"looptape/cmd/internal/manifest"
)

// TestEveryVerb: the manifest and the handlers are the same list, and each verb
// is called in a script.
func TestEveryVerb(t *testing.T) {
	files, err := filepath.Glob("../../looptape/testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	scripts := ""
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts += string(raw)
	}
	for _, v := range manifest.Verbs {
		if handlers[v.Name] == nil {
			t.Errorf("%s has no handler", v.Name)
		}
		if command := "looptape " + strings.Join(v.Command(), " "); !strings.Contains(scripts, command) {
			t.Errorf("no script says %q", command)
		}
		if v.Summary == "" || len(v.Result) == 0 || v.Right != manifest.None && v.On == "" {
			t.Errorf("%s is not complete", v.Name)
		}
		for _, p := range v.Params {
			if p.Summary == "" || p.Type == manifest.Integer && (p.Min == nil || p.Max == nil) {
				t.Errorf("%s: the parameter %s is not complete", v.Name, p.Name)
			}
		}
	}
	if len(handlers) != len(manifest.Verbs) {
		t.Errorf("%d handlers for %d verbs", len(handlers), len(manifest.Verbs))
	}
}

// TestEveryCode: the manifest declares every error code that the daemon and what
// it stands on can answer; a verb that changes something says what.
func TestEveryCode(t *testing.T) {
	declared := map[string]bool{}
	for _, f := range manifest.Common {
		declared[f.Code] = true
	}
	for _, v := range manifest.Verbs {
		if v.Right == manifest.Write || v.Right == manifest.Manage {
			if v.Effect == "" {
				t.Errorf("%s has no effect", v.Name)
			}
		}
		for _, f := range v.Failures {
			declared[f.Code] = true
		}
	}
	code := regexp.MustCompile(`"(?:internal|invalid_params|not_found|denied|conflict|timeout|unavailable|protocol|limit|unsupported)\.[a-z_]+"`)
	var files []string
	for _, dir := range []string{".", "../wire", "../grant", "../../../capture"} {
		found, _ := filepath.Glob(dir + "/*.go")
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range code.FindAllString(string(raw), -1) {
			if !declared[strings.Trim(found, `"`)] {
				t.Errorf("%s: no verb declares %s", file, found)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	for _, bad := range []string{"", "p", "0", "p-1", "p+1", "p00", "p01", "p 1", "w1", "P1", "p18446744073709551616", "p1x"} {
		if n, ok := parseID(manifest.Pane, bad); ok {
			t.Errorf("%q is read as %d", bad, n)
		}
	}
	for _, good := range []string{"p0", "p7", "p18446744073709551615"} {
		if n, ok := parseID(manifest.Pane, good); !ok || formatID(manifest.Pane, n) != good {
			t.Errorf("%q is refused", good)
		}
	}
}
