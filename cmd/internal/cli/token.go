package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/wire"
)

// resolveToken finds the token that text stands for, as LOOPTAPE_TOKEN writes it:
// "" is none, @owner the owner's in the state directory dir, @name one that was
// saved, anything else the token itself.
func resolveToken(text, dir string) (*string, error) {
	name, saved := strings.CutPrefix(text, "@")
	token, err := text, error(nil)
	switch {
	case text == "":
		return nil, nil
	case name == grant.Owner.Name() && saved:
		if _, err = daemon.CheckDir(dir); err == nil {
			token, err = grant.ReadOwnerToken(dir)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &wire.Error{Code: "unavailable.daemon", Message: fmt.Sprintf("no daemon has run in %s yet, so it has no owner: start one with 'looptape serve'", dir)}
		}
	case saved:
		token, err = readSavedToken(name)
	}
	if err != nil {
		return nil, &wire.Error{Code: "denied.token", Message: err.Error()}
	}
	return &token, nil
}

// ownerUnless is whom a command acts as that is the owner's by nature: the owner,
// unless LOOPTAPE_TOKEN says somebody else.
func ownerUnless() string { return cmp.Or(os.Getenv("LOOPTAPE_TOKEN"), "@"+grant.Owner.Name()) }

// tokensDir is where tokens are saved: looptape/tokens in $XDG_CONFIG_HOME, else
// in ~/.config.
func tokensDir() (string, error) {
	config := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("there is no home directory to keep tokens in: set XDG_CONFIG_HOME")
		}
		config = filepath.Join(home, ".config")
	}
	return filepath.Join(config, "looptape", "tokens"), nil
}

// savedPath is the file of the token called name.
func savedPath(name string) (string, error) {
	if err := grant.CheckName(name); err != nil {
		return "", fmt.Errorf("%q is no name of a token: %w", name, err)
	}
	dir, err := tokensDir()
	return filepath.Join(dir, name), err
}

// longestSaved bounds a saved token, in bytes: a file with more is something else.
const longestSaved = 4096

// readSavedToken reads the token called name, unless others could read it too.
func readSavedToken(name string) (string, error) {
	path, err := savedPath(name)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no token %s is saved in %s: 'looptape grant create --name %s --save' makes one", name, filepath.Dir(path), name)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	switch owner := info.Sys().(*syscall.Stat_t).Uid; {
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no regular file", path)
	case owner != uint32(os.Geteuid()):
		return "", fmt.Errorf("%s belongs to uid %d, and this is uid %d", path, owner, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others may read or write %s (mode %04o), so the token is no secret: revoke it, or chmod 600 the file if nobody can have seen it", path, info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, longestSaved+1))
	token := strings.TrimSpace(string(raw))
	if err == nil && (token == "" || len(raw) > longestSaved) {
		err = fmt.Errorf("%s holds no token", path)
	}
	return token, err
}

// tokenFile is the file of a token that is yet to be made, so that none is made
// and then lost.
type tokenFile struct {
	*os.File
	kept bool
}

// reserveToken makes the file of a token called name, empty so far. A token that
// is saved under that name is not replaced: it may be another daemon's.
func reserveToken(name string) (*tokenFile, error) {
	path, err := savedPath(name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // if it was there before
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, &wire.Error{Code: "conflict.saved", Message: fmt.Sprintf("%s is there already: remove it, if its token is of no use any more", path)}
	}
	return &tokenFile{f, false}, err
}

// save writes the token in the result of grant.create.
func (t *tokenFile) save(result []byte) error {
	var made struct {
		Name  string `json:"name"`
		Token string `json:"token"`
	}
	err := json.Unmarshal(result, &made)
	if err == nil {
		_, err = fmt.Fprintln(t, made.Token)
	}
	if err == nil {
		err = t.Sync()
	}
	if err != nil {
		return fmt.Errorf("the token was made, but cannot be saved: 'looptape grant revoke --name %s' ends it (%w)", made.Name, err)
	}
	t.kept = true
	return nil
}

// done closes the file, and removes it unless a token was saved in it.
func (t *tokenFile) done() {
	t.Close()
	if !t.kept {
		os.Remove(t.Name())
	}
}
