package grant

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"looptape/cmd/internal/manifest"
)

// TestAuditTurns: the audit log has the newest denials, whole, in two files at most,
// whoever opens it and however long it was.
func TestAuditTurns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, AuditFile)
	if err := os.WriteFile(path, bytes.Repeat([]byte("{}\n"), maxAudit/3), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<20)
	for n := range 40 {
		a, err := openAudit(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.denied(Caller{name: "ci"}, "pane.get", manifest.Read, long); err != nil {
			t.Fatal(err)
		}
		if err := a.close(); err != nil {
			t.Fatal(err)
		}
		last, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(last, []byte("\n")) || bytes.Count(last, []byte(long)) != n%15+1 || len(last) > maxAudit {
			t.Fatalf("denial %d: %v, %d bytes with %d denials", n, err, len(last), bytes.Count(last, []byte(long)))
		}
		if before, err := os.ReadFile(path + auditBefore); err != nil || len(before) > maxAudit {
			t.Fatalf("denial %d: %v, %d bytes before", n, err, len(before))
		}
	}
	for _, name := range []string{path, path + auditBefore} {
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}
