package grant

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	maxTokens = 1000
	// MaxScopes is how many scopes a token that a daemon makes may have.
	MaxScopes = 100
)

// Errors of changes.
var (
	ErrTaken   = errors.New("there is a token of this name already")
	ErrNoToken = errors.New("there is no token of this name")
	ErrFull    = fmt.Errorf("there are %d tokens already", maxTokens)
	ErrEdited  = errors.New("grants.json was changed since the daemon read it, and is read at its start only: restart the daemon first")
)

// tokens are named tokens by their hash. What readers hold does not change.
type tokens map[[sha256.Size]byte]*token

// book is the named tokens and their file. Readers wait for nobody; who changes
// something holds mu, also over the writing of the file.
type book struct {
	path    string
	unknown []Grant // of the file; fixed
	current atomic.Pointer[tokens]

	mu   sync.Mutex
	seen []byte // the file, as this process has read or written it; nil if absent
}

// openBook reads grants.json, and what it grants to unknown callers.
func openBook(dir string) (*book, []Grant, error) {
	b := &book{path: filepath.Join(dir, File), unknown: defaultGrants()}
	raw, err := readFile(b.path)
	known := tokens{}
	if err == nil {
		known, b.unknown, err = parse(raw)
		if err != nil {
			err = fmt.Errorf("%s says who may do what, and %w; without the file unknown callers may read everything, and no token is known but the owner's", b.path, err)
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	b.seen = raw
	b.current.Store(&known)
	return b, b.unknown, err
}

func (b *book) all() tokens { return *b.current.Load() }

// named is the token of that name, or nil.
func (b *book) named(name string) *token {
	for _, t := range b.all() {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (b *book) sorted() []*token { return b.all().sorted() }

func (ts tokens) sorted() []*token {
	return slices.SortedFunc(maps.Values(ts), func(x, y *token) int { return strings.Compare(x.name, y.name) })
}

// add makes a token known, on disk first.
func (b *book) add(t *token) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.named(t.name) != nil:
		return ErrTaken
	case len(b.all()) >= maxTokens:
		return ErrFull
	}
	next := maps.Clone(b.all())
	next[t.hash] = t
	return b.replaceLocked(next)
}

// revoke ends a token, which is forgotten once that is on disk.
func (b *book) revoke(name string) error {
	t := b.named(name)
	if t == nil {
		return ErrNoToken
	}
	t.revoke()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all()[t.hash] != t {
		return nil // by somebody else, at the same moment
	}
	next := maps.Clone(b.all())
	delete(next, t.hash)
	if err := b.replaceLocked(next); err != nil {
		return fmt.Errorf("the token can no longer be used, but grants.json still has it, and a restart would bring it back: %w", err)
	}
	return nil
}

// replaceLocked makes next the tokens, on disk first.
func (b *book) replaceLocked(next tokens) error {
	now, err := readFile(b.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, b.seen) {
		return ErrEdited
	}
	raw, err := format(b.unknown, next)
	if err != nil {
		return err
	}
	if err := replaceFile(b.path, raw); err != nil {
		return err
	}
	b.seen = raw
	b.current.Store(&next)
	return syncDir(filepath.Dir(b.path))
}

// replaceFile puts a file of 0600 in the place of path, which after a crash at
// any moment is the old one or the new one.
func replaceFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// syncDir makes a change of the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
