package download

import (
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
)

// ErrIntegrity is the error for a download whose content does not have the expected hash.
var ErrIntegrity = errors.New("content does not match its hash")

// Verify hashes the whole file with h and compares the result with the hex digits want. It
// then seeks back to the start of the file.
func Verify(f *os.File, h hash.Hash, want string) error {
	if err := Rewind(f); err != nil {
		return err
	}
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != want {
		return ErrIntegrity
	}
	return Rewind(f)
}

// Rewind seeks to the start of the file.
func Rewind(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}
