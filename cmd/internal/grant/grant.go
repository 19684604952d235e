package grant

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"looptape/cmd/internal/manifest"
)

// Caller is somebody who has said hello.
type Caller struct {
	name  string
	token *token // nil of the owner and of unknown
}

// The callers that need no entry of their own. Nobody else has their names.
var (
	Owner   = Caller{name: "owner"}
	Unknown = Caller{name: "unknown"}
)

// Name is what hello and the audit log call the caller.
func (c Caller) Name() string { return c.name }

// Life ends when the caller's token is revoked.
func (c Caller) Life() context.Context {
	if c.token == nil {
		return context.Background()
	}
	return c.token.life
}

// Revoked says whether the caller's token has been revoked.
func (c Caller) Revoked() bool { return c.Life().Err() != nil }

// token is a named token. It does not change but for the end of its life.
type token struct {
	name    string
	hash    [sha256.Size]byte
	created time.Time // zero if the file does not say
	grants  []Grant

	life   context.Context
	revoke context.CancelFunc
}

func newToken(name string, hash [sha256.Size]byte, created time.Time, grants []Grant) *token {
	t := &token{name: name, hash: hash, created: created, grants: grants}
	t.life, t.revoke = context.WithCancel(context.Background())
	return t
}

// names are those that a token may have: they name its file, where it is saved,
// on every file system alike.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// NameError is the error of a name that no token can have.
type NameError struct {
	Name     string
	Reserved bool // for a caller without an entry
}

func (e *NameError) Error() string {
	if e.Reserved {
		return fmt.Sprintf("the name %s is reserved: it stands for a caller who has no such token", e.Name)
	}
	return "a name is 1 to 64 of the characters a to z, 0 to 9, '.', '_' and '-', and begins with a letter or a digit"
}

// CheckName returns a *NameError for a name that no token can have.
func CheckName(name string) error {
	switch {
	case name == Owner.name, name == Unknown.name:
		return &NameError{name, true}
	case !names.MatchString(name):
		return &NameError{name, false}
	}
	return nil
}

// Authority knows the tokens and grants of one state directory.
type Authority struct {
	owner   []byte
	unknown []Grant
	book    *book
	audit   *audit
}

// Open reads who may do what in the state directory dir, makes the owner's token
// at the first start, and opens the audit log. Of grants.json that cannot be
// understood the error is an ErrDamaged or an ErrNewerVersion: nobody is let in
// then.
func Open(dir string) (*Authority, error) {
	owner, err := ReadOwnerToken(dir)
	if errors.Is(err, fs.ErrNotExist) {
		owner, err = makeOwnerToken(dir)
	}
	if err != nil {
		return nil, err
	}
	a := &Authority{owner: []byte(owner)}
	if a.book, a.unknown, err = openBook(dir); err != nil {
		return nil, err
	}
	a.audit, err = openAudit(dir)
	return a, err
}

// Close closes the audit log.
func (a *Authority) Close() error { return a.audit.close() }

// Identify returns the caller who bears token; nil is no token at all. ok is
// false for a token that nobody has.
func (a *Authority) Identify(token *string) (c Caller, ok bool) {
	if token == nil {
		return Unknown, true
	}
	if subtle.ConstantTimeCompare([]byte(*token), a.owner) == 1 {
		return Owner, true
	}
	// How long this takes tells at most something about the hash.
	t := a.book.all()[sha256.Sum256([]byte(*token))]
	if t == nil || t.life.Err() != nil {
		return Unknown, false
	}
	return Caller{t.name, t}, true
}

// Allows says whether the caller holds right on o. Who bears a token that was
// revoked holds none.
func (a *Authority) Allows(c Caller, right manifest.Right, o Object) bool {
	switch {
	case right == manifest.None, c == Owner:
		return true
	case c == Unknown:
		return allow(a.unknown, right, o)
	}
	return c.token != nil && !c.Revoked() && allow(c.token.grants, right, o)
}

// Denied records that the caller was refused. It is called before the denial is
// answered. An error means that the record could not be written.
func (a *Authority) Denied(c Caller, verb string, right manifest.Right, resource string) error {
	return a.audit.denied(c, verb, right, resource)
}

// Entry is what somebody may do.
type Entry struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created,omitzero"` // zero if nobody knows
	Grants  []Grant   `json:"grants"`
}

// List has an entry for unknown callers, then one for each token by name.
func (a *Authority) List() []Entry {
	list := []Entry{{Name: Unknown.name, Grants: a.unknown}}
	for _, t := range a.book.sorted() {
		list = append(list, t.entry())
	}
	return list
}

func (t *token) entry() Entry {
	if t.life.Err() != nil { // revoked, but still in the file
		return Entry{t.name, t.created, []Grant{}}
	}
	return Entry{t.name, t.created, t.grants}
}

// Create makes a token of that name with those grants. It is on disk when Create
// returns, and the secret, which its bearer shows, is not to be had again. The
// error is a *NameError, ErrTaken, ErrFull, ErrEdited, or one of the file system.
func (a *Authority) Create(name string, grants []Grant) (made Entry, secret string, err error) {
	if err := CheckName(name); err != nil {
		return Entry{}, "", err
	}
	secret = newSecret("ltg_")
	t := newToken(name, sha256.Sum256([]byte(secret)), time.Now().UTC().Truncate(time.Second), merge(grants))
	if err := a.book.add(t); err != nil {
		return Entry{}, "", err
	}
	return t.entry(), secret, nil
}

// Revoke ends the rights of whoever bears the token of that name, at once and
// whatever becomes of the file. The error is a *NameError for a name without a
// token of its own, ErrNoToken, ErrEdited, or one of the file system: then a
// later start of the daemon may know the token again, and Revoke may be tried
// again.
func (a *Authority) Revoke(name string) error {
	if name == Owner.name || name == Unknown.name {
		return &NameError{name, true}
	}
	return a.book.revoke(name)
}
