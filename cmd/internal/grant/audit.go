package grant

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"looptape/cmd/internal/manifest"
)

// AuditFile is the audit log.
const AuditFile = "audit.jsonl"

// audit is the audit log: JSON, one line for each denial.
type audit struct {
	mu   sync.Mutex // one line at a time
	file *os.File
}

func openAudit(dir string) (*audit, error) {
	f, err := os.OpenFile(filepath.Join(dir, AuditFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &audit{file: f}, nil
}

func (a *audit) denied(c Caller, verb string, right manifest.Right, resource string) error {
	line, err := json.Marshal(struct {
		TS       time.Time      `json:"ts"`
		Record   string         `json:"record"`
		Caller   string         `json:"caller"`
		Verb     string         `json:"verb"`
		Right    manifest.Right `json:"right"`
		Resource string         `json:"resource"`
	}{time.Now(), "denied", c.name, verb, right, resource})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err = a.file.Write(append(line, '\n'))
	return err
}
