package grant

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TokenFile is the file of the owner's token.
const TokenFile = "owner.token"

// newSecret makes a token: a prefix that says what it is, and 256 random bits.
func newSecret(prefix string) string {
	secret := make([]byte, 32)
	rand.Read(secret)
	return prefix + hex.EncodeToString(secret)
}

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

func makeOwnerToken(dir string) (string, error) {
	token := newSecret("lto_")
	err := replaceFile(filepath.Join(dir, TokenFile), []byte(token+"\n"))
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return "", fmt.Errorf("write the owner's token: %w", err)
	}
	return token, nil
}
