package tenant

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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
