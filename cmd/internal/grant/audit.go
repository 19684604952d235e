package grant

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"looptape/cmd/internal/manifest"
)

// AuditFile is the audit log.
const AuditFile = "audit.jsonl"

// maxAudit is how long the audit log grows, in bytes. Then it is renamed, and takes the
// place of the one that was renamed before.
const maxAudit = 16 << 20

// auditBefore is what is appended to its name.
const auditBefore = ".1"

// audit is the audit log: JSON, one line for each denial.
type audit struct {
	path string

	mu   sync.Mutex // one line at a time
	file *os.File
	size int64
}

func openAudit(dir string) (*audit, error) {
	a := &audit{path: filepath.Join(dir, AuditFile)}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return a, nil
}

func (a *audit) open() error {
	f, err := os.OpenFile(a.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	a.file, a.size = f, info.Size()
	return nil
}

// turn begins a new file. If it cannot, the old one goes on.
func (a *audit) turn() error {
	if err := os.Rename(a.path, a.path+auditBefore); err != nil {
		return err
	}
	old := a.file
	if err := a.open(); err != nil {
		return err
	}
	return old.Close()
}

func (a *audit) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.file.Close()
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
	var turned error
	if a.size > 0 && a.size+int64(len(line)) >= maxAudit {
		turned = a.turn()
	}
	n, err := a.file.Write(append(line, '\n'))
	a.size += int64(n)
	return errors.Join(turned, err)
}
