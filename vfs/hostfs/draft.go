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

// draft is a new file that is to take a place, and what was there, when it is whole.
type draft struct {
	at   place
	temp string // its name meanwhile
	fd   int
	bits uint32 // its permissions
}

// Of a draft's name, the second half tells it from what a guest calls its files: none but
// us can make it. A guest that has seen one can use it again, for what it is worth.
const (
	draftPrefix = ".gaol-"
	draftHalf   = 8 // bytes
)

func (f *FS) draftName() string {
	half := make([]byte, draftHalf, 2*draftHalf)
	_, _ = rand.Read(half) // which never fails
	return draftPrefix + hex.EncodeToString(append(half, f.proof(half)...))
}

// isDraft tells whether a file's name is a draft's, now or before.
func (f *FS) isDraft(name string) bool {
	text, found := strings.CutPrefix(name, draftPrefix)
	b, err := hex.DecodeString(text)
	return found && err == nil && len(b) == 2*draftHalf && hmac.Equal(b[draftHalf:], f.proof(b[:draftHalf]))
}

func (f *FS) proof(half []byte) []byte {
	sum := hmac.New(sha256.New, f.key)
	sum.Write(half)
	return sum.Sum(nil)[:draftHalf]
}

func (f *FS) newDraft(at place, bits uint32) (*draft, error) {
	d := &draft{at: at, temp: f.draftName(), bits: bits}
	var err error
	d.fd, err = create(place{at.dir, d.temp})
	return d, err
}

// finish puts the file into its place if err is nil, and otherwise removes it. It
// returns what failed first.
func (d *draft) finish(err error) error {
	if err == nil {
		err = unix.Fchmod(d.fd, d.bits)
	}
	if err == nil {
		err = unix.Renameat(d.at.dir, d.temp, d.at.dir, d.at.name)
	}
	closeFD(d.fd)
	if err != nil {
		// The guest may have put something else there: it then loses that.
		_ = unix.Unlinkat(d.at.dir, d.temp, 0)
	}
	return err
}

// replace puts a new file at a place.
func (f *FS) replace(p place, data []byte, bits uint32) error {
	d, err := f.newDraft(p, bits)
	if err != nil {
		return err
	}
	return d.finish(writeAt(d.fd, data))
}

// isShared tells whether a new file can't stand for an old one.
func (f *FS) isShared(n *node) bool {
	return n.stat.Nlink > 1 || n.isMount() || int(n.stat.Uid) != f.who.uid || int(n.stat.Gid) != f.who.gid
}

// writable checks that the file's own permissions let it be written to, and returns
// them. To open it would have an overlay copy the whole of what is about to be replaced.
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

var errShared = fmt.Errorf("has other names or another owner, and can't be replaced: %w", fs.ErrInvalid)

// WriteFrom is WriteFile for what r gives until its end, however much that is: the file
// is there, or another, when all of it is written, and stays as it was if reading or
// writing fails. It returns how many bytes were written. A file that can't be replaced,
// as it has other names or another owner, is an error.
func (f *FS) WriteFrom(path string, r io.Reader, o WriteOptions) (int64, error) {
	var d *draft
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
		if d, err = f.newDraft(p, bits); err != nil {
			p.close()
		}
		return err
	}); err != nil {
		return 0, err
	}
	defer d.at.close()
	n, err := io.Copy(pieces{func(do func() error) error {
		return f.step("write", path, func(int) error { return do() })
	}, d.fd}, r)
	if err == nil {
		err = f.step("write", path, func(int) error { return nil }) // closed by now?
	}
	// Of a closed FS too: nothing is to be left in a folder of the host's.
	return n, pathError("write", path, f.who.act(func() error { return d.finish(err) }))
}

// pieces writes to a file in steps, so that a closed FS ends it.
type pieces struct {
	step func(do func() error) error
	fd   int
}

func (w pieces) Write(b []byte) (n int, err error) {
	err = w.step(func() error {
		return writeAll(b, func(rest []byte, _ int64) (int, error) {
			m, err := unix.Write(w.fd, rest)
			n += max(m, 0)
			return m, err
		})
	})
	return n, unwrapped(err)
}
