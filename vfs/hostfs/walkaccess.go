package hostfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// host are the credentials of this process itself.
var host = credentials{own: true}

// access reads the files of a walk with the guest's credentials. If owned is set, it reads
// files that the guest owns with the host's credentials instead. A guest can always give
// itself the right to read its own files, so that this reveals nothing new. It still reads
// files of other owners with the guest's credentials.
type access struct {
	fs    *FS
	owned bool
}

// step is FS.step, with the host's credentials if owned is set. do must then open entries
// only by [onChild], in folders that list has opened, and read only in readAs.
func (a access) step(op, path string, do func() error) error {
	creds := a.fs.guest
	if a.owned {
		creds = host
	}
	return a.fs.stepAs(creds, op, path, func(base) error { return do() })
}

// readAs calls do, in a step, with the credentials for reading the node.
func (a access) readAs(n *node, do func() error) error {
	if !a.owned || int(n.stat.Uid) == a.fs.guest.uid {
		return do()
	}
	return a.fs.guest.act(do)
}

// list opens and lists a folder in a step. The caller closes fd, also after an error.
func (a access) list(n *node, limit int) (fd int, inside []fs.DirEntry, err error) {
	fd = -1
	err = a.readAs(n, func() (err error) {
		if fd, err = n.reopen(unix.O_RDONLY | unix.O_DIRECTORY); err != nil {
			return err
		}
		if a.owned { // its entries are opened with the host's credentials: check the right to search here
			if _, err := statAt(fd, "."); err != nil {
				return err
			}
		}
		inside, err = a.fs.entries(fd, limit)
		return err
	})
	return fd, inside, err
}
