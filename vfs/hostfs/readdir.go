package hostfs

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gaol/internal/kernfile"

	"golang.org/x/sys/unix"
)

// ReadDir lists a folder, sorted by name. It returns at most Limits.Entries entries, whose
// type is *Info. If the guest may read the folder but not search it, they have only a name
// and a type.
func (f *FS) ReadDir(path string) (list []fs.DirEntry, err error) {
	err = f.onNode("open", path, 0, func(n *node) error {
		dir, err := n.reopen(unix.O_RDONLY | unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer dir.Close()
		list, err = f.entries(dir, f.limits.Entries)
		return err
	})
	return list, err
}

// entries lists an open folder from its start, sorted by name. It leaves out files that are
// removed meanwhile. If stat is denied, an entry has only its name and type. The type of the
// entries is *Info.
func (f *FS) entries(dir *os.File, limit int) ([]fs.DirEntry, error) {
	names, err := namesIn(dir, limit)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	list := make([]fs.DirEntry, 0, len(names))
	err = kernfile.Control(dir, func(fd int) error {
		for _, e := range names {
			st, err := statAt(fd, e.Name())
			switch err {
			case nil:
				list = append(list, f.info(e.Name(), &st))
			case unix.EACCES:
				list = append(list, &Info{name: e.Name(), mode: e.Type(), owner: overflowID, group: overflowID})
			case unix.ENOENT:
			default:
				return err
			}
		}
		return nil
	})
	return list, err
}

// namesIn returns at most limit entries, unsorted. If there are more, it also returns a
// *LimitError.
func namesIn(dir *os.File, limit int) ([]fs.DirEntry, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, unwrapped(err)
	}
	names, err := dir.ReadDir(limit + 1)
	switch {
	case err != nil && err != io.EOF:
		return names, unwrapped(err)
	case len(names) > limit:
		return names[:limit], &LimitError{"entries", int64(limit)}
	}
	return names, nil
}
