package grant

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"looptape/cmd/internal/manifest"
)

// File is the file of the named tokens.
const File = "grants.json"

const (
	fileVersion = 1
	maxFile     = 16 << 20
)

// Errors of a grants.json that cannot be understood.
var (
	ErrDamaged      = errors.New("is damaged")
	ErrNewerVersion = errors.New("was written by a newer looptape: use that one")
)

// fileShape is grants.json, as the package's doc draws it.
type fileShape struct {
	Version int          `json:"version"`
	Unknown *[]Grant     `json:"unknown"` // nil if absent
	Tokens  []tokenShape `json:"tokens"`
}

type tokenShape struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created,omitzero"`
	Grants  []Grant   `json:"grants"`
}

// members are the names of fileShape and below.
var members = []string{"version", "unknown", "tokens", "name", "sha256", "created", "grants", "right", "scopes"}

var rights = []manifest.Right{manifest.Read, manifest.Write, manifest.Manage}

// defaultGrants are what unknown callers may do if grants.json does not say.
func defaultGrants() []Grant {
	return []Grant{{manifest.Read, []Scope{{kind: manifest.Any}}}}
}

// readFile reads a regular file of at most maxFile bytes, and makes it 0600.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	if info.Mode().Perm() != 0o600 { // as an editor made it
		if err := f.Chmod(0o600); err != nil {
			return nil, err
		}
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("%s %w: it has more than %d bytes", path, ErrDamaged, maxFile)
	}
	return raw, err
}

// parse reads grants.json: the tokens, and what unknown callers may do. The error
// is an ErrDamaged or an ErrNewerVersion.
func parse(raw []byte) (tokens, []Grant, error) {
	known, unknown, err := parseShape(raw)
	if err != nil && !errors.Is(err, ErrNewerVersion) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return known, unknown, err
}

func parseShape(raw []byte) (tokens, []Grant, error) {
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, nil, err
	}
	switch {
	case head.Version == nil:
		return nil, nil, fmt.Errorf(`it lacks "version": %d`, fileVersion)
	case *head.Version > fileVersion:
		return nil, nil, fmt.Errorf("%w (version %d)", ErrNewerVersion, *head.Version)
	case *head.Version < fileVersion:
		return nil, nil, fmt.Errorf("there is no version %d", *head.Version)
	}
	if err := checkMembers(json.NewDecoder(bytes.NewReader(raw))); err != nil {
		return nil, nil, err
	}
	var shape fileShape
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields() // a member that belongs elsewhere
	if err := dec.Decode(&shape); err != nil {
		return nil, nil, err
	}
	unknown := defaultGrants()
	if shape.Unknown != nil {
		if err := checkGrants(*shape.Unknown); err != nil {
			return nil, nil, fmt.Errorf("unknown: %w", err)
		}
		unknown = merge(*shape.Unknown)
	}
	known, err := shape.tokens()
	return known, unknown, err
}

// checkMembers refuses what encoding/json would pass over in silence: members
// that come twice or in other letters, and null.
func checkMembers(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t {
	case nil:
		return errors.New("it holds a null: leave the member out, or write []")
	case json.Delim('['):
		for dec.More() {
			if err := checkMembers(dec); err != nil {
				return err
			}
		}
		_, err = dec.Token()
	case json.Delim('{'):
		had := map[string]bool{}
		for dec.More() {
			t, err := dec.Token()
			if err != nil {
				return err
			}
			name := t.(string) // of a member
			switch {
			case had[name]:
				return fmt.Errorf("%q comes twice", name)
			case !slices.Contains(members, name):
				return fmt.Errorf("it has a member %q, which means nothing", name)
			}
			had[name] = true
			if err := checkMembers(dec); err != nil {
				return err
			}
		}
		_, err = dec.Token()
	}
	return err
}

func checkGrants(grants []Grant) error {
	for _, g := range grants {
		if !slices.Contains(rights, g.Right) {
			return fmt.Errorf("there is no right %q: it is read, write or manage", g.Right)
		}
	}
	return nil
}

func (shape *fileShape) tokens() (tokens, error) {
	known := tokens{}
	named := map[string]bool{}
	for _, t := range shape.Tokens {
		if err := CheckName(t.Name); err != nil {
			return nil, fmt.Errorf("the token %q: %w", t.Name, err)
		}
		if err := checkGrants(t.Grants); err != nil {
			return nil, fmt.Errorf("the token %s: %w", t.Name, err)
		}
		hash, err := hex.DecodeString(t.SHA256)
		if err != nil || len(hash) != sha256.Size {
			return nil, fmt.Errorf("the token %s: sha256 is not %d digits in hex", t.Name, 2*sha256.Size)
		}
		if named[t.Name] {
			return nil, fmt.Errorf("there are two tokens %s", t.Name)
		}
		named[t.Name] = true
		key := [sha256.Size]byte(hash)
		if other := known[key]; other != nil {
			return nil, fmt.Errorf("%s and %s are the same token", other.name, t.Name)
		}
		known[key] = newToken(t.Name, key, t.Created, merge(t.Grants))
	}
	return known, nil
}

// format writes grants.json.
func format(unknown []Grant, known tokens) ([]byte, error) {
	shape := fileShape{fileVersion, &unknown, []tokenShape{}}
	for _, t := range known.sorted() {
		shape.Tokens = append(shape.Tokens, tokenShape{t.name, hex.EncodeToString(t.hash[:]), t.created, t.grants})
	}
	raw, err := json.MarshalIndent(shape, "", "  ")
	return append(raw, '\n'), err
}
