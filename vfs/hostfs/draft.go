package hostfs

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// draft is a new file that is to take a place, and what was there, when it is whole.
type draft struct {
	at   place
	temp string // its name meanwhile
	fd   int
	bits uint32 // its permissions
}

func newDraft(at place, bits uint32) (*draft, error) {
	// The name is told apart from a guest's own.
	d := &draft{at: at, temp: ".gaol-" + rand.Text(), bits: bits}
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
func replace(p place, data []byte, bits uint32) error {
	d, err := newDraft(p, bits)
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
// them.
func (n *node) writable() (bits uint32, err error) {
	fd, err := n.reopen(unix.O_WRONLY)
	closeFD(fd)
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
		if d, err = newDraft(p, bits); err != nil {
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
