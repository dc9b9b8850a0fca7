package tenant

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/internal/lazyregexp"
)

// Tokens are the bearer tokens that a server accepts.
type Tokens struct{ list []token }

type token struct {
	name  string
	hash  [sha256.Size]byte
	admin bool
}

const (
	maxTokenFile = 1 << 20
	minToken     = 32  // characters
	maxToken     = 256 // characters
)

var errNoTokens = errors.New("no tokens")

var tokenName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// ReadTokens reads a file with one token on each line: its name, the SHA-256 of the token in
// hexadecimal, and "admin" for permission to read metrics. Empty lines and lines that begin with #
// are ignored. The file must belong to root or the server's user, and only its owner may be able to write
// to it. Users outside its group may not read it.
func ReadTokens(path string) (*Tokens, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o027 != 0 {
		return nil, fmt.Errorf("tokens: %s: want a file with mode 0640 or less, not %v", path, info.Mode())
	}
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid != 0 && uid != os.Geteuid() {
		return nil, fmt.Errorf("tokens: %s: it belongs to user %d", path, uid)
	}
	if info.Size() > maxTokenFile {
		return nil, fmt.Errorf("tokens: %s: more than 1 MiB", path)
	}
	t, err := parseTokens(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return nil, fmt.Errorf("tokens: %s: %w", path, err)
	}
	return t, nil
}

func parseTokens(r io.Reader) (*Tokens, error) {
	t := &Tokens{}
	names := map[string]bool{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parsed, err := parseToken(line)
		if err == nil && names[parsed.name] {
			err = fmt.Errorf("%s is listed twice", parsed.name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		names[parsed.name] = true
		t.list = append(t.list, parsed)
	}
	if lines.Err() == nil && len(t.list) == 0 {
		return nil, errNoTokens
	}
	return t, lines.Err()
}

func parseToken(line string) (t token, err error) {
	fields := strings.Fields(line)
	if len(fields) == 3 && fields[2] == "admin" {
		t.admin, fields = true, fields[:2]
	}
	if len(fields) != 2 {
		return t, errors.New("want NAME SHA256 [admin]")
	}
	t.name = fields[0]
	if !tokenName().MatchString(t.name) {
		return t, fmt.Errorf("name %q: want lower-case letters, digits and ._-", t.name)
	}
	hash, err := hex.DecodeString(fields[1])
	if err != nil || len(hash) != sha256.Size {
		return t, fmt.Errorf("%s: want the SHA-256 of the token, 64 hexadecimal digits", t.name)
	}
	t.hash = [sha256.Size]byte(hash)
	return t, nil
}

// Find returns the tenant of a token, nil if there is none. It takes the same time for all
// tokens of one length.
func (t *Tokens) Find(secret string) *Tenant {
	if len(secret) < minToken || len(secret) > maxToken {
		return nil
	}
	hash := sha256.Sum256([]byte(secret))
	var found *token
	for i := range t.list {
		if subtle.ConstantTimeCompare(hash[:], t.list[i].hash[:]) == 1 {
			found = &t.list[i]
		}
	}
	if found == nil {
		return nil
	}
	return &Tenant{Name: "token:" + found.name, Admin: found.admin}
}

// CreateToken adds a token to a file, and returns it: the file has its hash only. A missing file is made, with mode 0600.
// Readers see the old file or the new one. A name that is in the file is an error.
func CreateToken(path, name string, admin bool) (secret string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("tokens: %s: %w", path, err)
		}
	}()
	if !tokenName().MatchString(name) {
		return "", fmt.Errorf("%q is not a valid name: want lower-case letters, digits and ._-", name)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil { // others that add a token
		return "", os.NewSyscallError("flock", err)
	}
	text, mode, err := readTokenFile(path, name)
	if err != nil {
		return "", err
	}
	secret = rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret))
	line := name + " " + hex.EncodeToString(hash[:])
	if admin {
		line += " admin"
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	if err := replaceFile(path, append(text, line+"\n"...), mode); err != nil {
		return "", err
	}
	return secret, nil
}

// readTokenFile returns the text of a file that may have no tokens yet, and its mode.
func readTokenFile(path, name string) (text []byte, mode fs.FileMode, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o600, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err == nil && info.Size() > maxTokenFile {
		err = errors.New("more than 1 MiB")
	}
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, 0, err
	}
	list, err := parseTokens(bytes.NewReader(text))
	if errors.Is(err, errNoTokens) {
		return text, info.Mode().Perm(), nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, t := range list.list {
		if t.name == name {
			return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrExist)
		}
	}
	return text, info.Mode().Perm(), nil
}

// replaceFile replaces a file by another one with the same owner.
func replaceFile(path string, text []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-*")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(f.Name()) // the first error counts
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	var old unix.Stat_t
	if unix.Lstat(path, &old) == nil {
		if err := f.Chown(int(old.Uid), int(old.Gid)); err != nil {
			return err
		}
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
