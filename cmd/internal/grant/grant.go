// Package grant decides who may do what, and records who was refused.
//
// It owns two files of the state directory: owner.token, the secret that makes
// its bearer the owner, and audit.jsonl, one line for each denial. A caller
// without a token is "unknown" and may read every pane. (Named tokens with
// scopes of their own are the job of grants.json, which this version does not
// have yet.)
//
// The package knows rights and resources by name only; which verb needs which
// right stands in the manifest. It refuses to write down anything of a request
// but who, what verb, what right and on what.
package grant

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"looptape/cmd/internal/manifest"
)

// The files of a state directory that belong to this package.
const (
	TokenFile = "owner.token"
	AuditFile = "audit.jsonl"
)

// Caller is somebody who has said hello.
type Caller struct{ name string }

// The callers that need no entry of their own.
var (
	Owner   = Caller{"owner"}
	Unknown = Caller{"unknown"}
)

// Name is what hello and the audit log call the caller.
func (c Caller) Name() string { return c.name }

// Authority knows the tokens of one state directory.
type Authority struct {
	owner []byte

	mu    sync.Mutex
	audit *os.File
}

// Open reads the owner's token in dir, which it makes at the first start, and
// opens the audit log. Both files are 0600 from the moment they exist.
func Open(dir string) (*Authority, error) {
	token, err := ReadOwnerToken(dir)
	if errors.Is(err, fs.ErrNotExist) {
		token, err = writeOwnerToken(dir)
	}
	if err != nil {
		return nil, err
	}
	audit, err := os.OpenFile(filepath.Join(dir, AuditFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &Authority{owner: []byte(token), audit: audit}, nil
}

// Close closes the audit log.
func (a *Authority) Close() error { return a.audit.Close() }

// ReadOwnerToken returns the token of the state directory dir. The error is
// fs.ErrNotExist before the first start of a daemon.
func ReadOwnerToken(dir string) (string, error) {
	path := filepath.Join(dir, TokenFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < 32 {
		return "", fmt.Errorf("%s is damaged: remove it, and the next start of the daemon makes a new one", path)
	}
	return token, nil
}

// writeOwnerToken makes a token of 256 random bits. The file appears whole or
// not at all, so that a crash in between leaves no damaged one.
func writeOwnerToken(dir string) (string, error) {
	secret := make([]byte, 32)
	rand.Read(secret)
	token := "lto_" + hex.EncodeToString(secret)
	path := filepath.Join(dir, TokenFile)
	err := os.WriteFile(path+".new", []byte(token+"\n"), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return "", fmt.Errorf("write the owner's token: %w", err)
	}
	return token, nil
}

// Identify returns the caller who bears token; nil is no token at all. ok is
// false for a token that nobody has.
func (a *Authority) Identify(token *string) (c Caller, ok bool) {
	if token == nil {
		return Unknown, true
	}
	if subtle.ConstantTimeCompare([]byte(*token), a.owner) == 1 {
		return Owner, true
	}
	return Unknown, false
}

// Allows says whether the caller holds right on any resource.
func (a *Authority) Allows(c Caller, right manifest.Right) bool {
	return c == Owner || right == manifest.Read || right == manifest.None
}

// Denied records that the caller was refused. It is called before the denial
// is answered. An error means that the record could not be written.
func (a *Authority) Denied(c Caller, verb string, right manifest.Right, resource string) error {
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
	_, err = a.audit.Write(append(line, '\n'))
	return err
}
