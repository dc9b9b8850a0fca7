package hostfs

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadDir lists a folder, sorted by name. It returns at most Limits.Entries entries, whose
// type is *Info. If the guest may read the folder but not search it, they have only a name
// and a type.
func (f *FS) ReadDir(path string) (list []fs.DirEntry, err error) {
	err = f.onNode("open", path, 0, func(n *node) error {
		fd, err := n.reopen(unix.O_RDONLY | unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		list, err = f.entries(fd, f.limits.Entries)
		return err
	})
	return list, err
}

// entries lists an open folder from its start, sorted by name. It leaves out files that are
// removed meanwhile. If stat is denied, an entry has only its name and type. The type of the
// entries is *Info.
func (f *FS) entries(fd, limit int) ([]fs.DirEntry, error) {
	names, err := namesIn(fd, limit)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	list := make([]fs.DirEntry, 0, len(names))
	for _, e := range names {
		st, err := statAt(fd, e.Name())
		switch err {
		case nil:
			list = append(list, f.info(e.Name(), &st))
		case unix.EACCES:
			list = append(list, &Info{name: e.Name(), mode: e.Type(), owner: overflowID, group: overflowID})
		case unix.ENOENT:
		default:
			return nil, err
		}
	}
	return list, nil
}

// namesIn returns at most limit entries, unsorted. If there are more, it also returns a
// *LimitError.
func namesIn(fd, limit int) ([]fs.DirEntry, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// os.File stats an entry of unknown type by this path, which leads to the same folder.
	dir := os.NewFile(uintptr(dup), "/proc/self/fd/"+strconv.Itoa(dup))
	defer dir.Close()
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
