package hostfs

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// tempFile is a new file that replaces the one at a place when it is complete.
type tempFile struct {
	at   place
	temp string // its name until then
	fd   int
	bits uint32 // its permissions
}

// The second half of a temporary name is a MAC, so that a guest cannot invent such names.
// A guest that has seen one can reuse it: its own events of that name are then not reported.
const (
	tempPrefix = ".gaol-"
	tempHalf   = 8 // bytes
)

func (f *FS) tempName() string {
	half := make([]byte, tempHalf, 2*tempHalf)
	_, _ = rand.Read(half) // never fails
	return tempPrefix + hex.EncodeToString(append(half, f.proof(half)...))
}

// isTempName reports whether name was made by tempName.
func (f *FS) isTempName(name string) bool {
	text, found := strings.CutPrefix(name, tempPrefix)
	b, err := hex.DecodeString(text)
	return found && err == nil && len(b) == 2*tempHalf && hmac.Equal(b[tempHalf:], f.proof(b[:tempHalf]))
}

func (f *FS) proof(half []byte) []byte {
	sum := hmac.New(sha256.New, f.key)
	sum.Write(half)
	return sum.Sum(nil)[:tempHalf]
}

func (f *FS) newTempFile(at place, bits uint32) (*tempFile, error) {
	d := &tempFile{at: at, temp: f.tempName(), bits: bits}
	var err error
	d.fd, err = create(place{at.dir, d.temp})
	return d, err
}

// finish moves the file to its place if err is nil, and removes it otherwise. It returns the
// first error.
func (d *tempFile) finish(err error) error {
	if err == nil {
		err = unix.Fchmod(d.fd, d.bits)
	}
	if err == nil {
		err = unix.Renameat(d.at.dir, d.temp, d.at.dir, d.at.name)
	}
	closeFD(d.fd)
	if err != nil {
		// If the guest has replaced the file, this removes the replacement.
		_ = unix.Unlinkat(d.at.dir, d.temp, 0)
	}
	return err
}

// replace replaces the file at a place by a new one.
func (f *FS) replace(p place, data []byte, bits uint32) error {
	d, err := f.newTempFile(p, bits)
	if err != nil {
		return err
	}
	return d.finish(writeAt(d.fd, data))
}

// isShared reports whether the node must not be replaced by a new file: it has other names
// or another owner, or is a mount point.
func (f *FS) isShared(n *node) bool {
	return n.stat.Nlink > 1 || n.isMount() || int(n.stat.Uid) != f.guest.uid || int(n.stat.Gid) != f.guest.gid
}

// writable returns the permissions of the file, or an error if they deny writing. It does
// not open the file, because an overlay would then copy the content that is about to be
// replaced.
func (n *node) writable() (bits uint32, err error) {
	switch n.kind() {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return 0, unix.EISDIR
	default:
		return 0, ErrSpecial
	}
	err = unix.Faccessat(n.fd, "", unix.W_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
	return uint32(n.stat.Mode) & 0o1777, err
}

var errShared = fmt.Errorf("has other names or another owner, and cannot be replaced: %w", fs.ErrInvalid)

// WriteFrom is like WriteFile for the content of r, of any length. The new content appears
// when all of it has been written. If reading or writing fails, the file does not change.
// WriteFrom returns the number of bytes written. It fails for a file that has other names or
// another owner, because it cannot replace that.
func (f *FS) WriteFrom(path string, r io.Reader, o WriteOptions) (int64, error) {
	var d *tempFile
	if err := f.write("write", path, o, func(p place, n *node, bits uint32) (err error) {
		if n != nil && f.isShared(n) {
			return errShared
		}
		if n != nil {
			if bits, err = n.writable(); err != nil {
				return err
			}
		}
		if p.dir, err = unix.FcntlInt(uintptr(p.dir), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return err
		}
		if d, err = f.newTempFile(p, bits); err != nil {
			p.close()
		}
		return err
	}); err != nil {
		return 0, err
	}
	defer d.at.close()
	n, err := io.Copy(stepWriter{func(do func() error) error {
		return f.step("write", path, func(int) error { return do() })
	}, d.fd}, r)
	if err == nil {
		err = f.step("write", path, func(int) error { return nil }) // fails if the FS has been closed
	}
	// Even if the FS has been closed: no temporary file must remain in a folder of the host.
	return n, pathError("write", path, f.guest.act(func() error { return d.finish(err) }))
}

// stepWriter writes to a file in steps, so that closing the FS stops it.
type stepWriter struct {
	step func(do func() error) error
	fd   int
}

func (w stepWriter) Write(b []byte) (n int, err error) {
	err = w.step(func() error {
		return writeAll(b, func(rest []byte, _ int64) (int, error) {
			m, err := unix.Write(w.fd, rest)
			n += max(m, 0)
			return m, err
		})
	})
	return n, unwrapped(err)
}
