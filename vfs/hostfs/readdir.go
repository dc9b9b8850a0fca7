package hostfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadDir lists a folder, sorted by name. It returns at most Limits.Entries entries, whose
// type is *Info. If the guest may read the folder but not search it, they have only a name
// and a type.
func (f *FS) ReadDir(path string) (list []fs.DirEntry, err error) {
	err = f.onNode("open", path, 0, func(n *node) error {
		if !n.isFolder() {
			return unix.ENOTDIR
		}
		fd, err := n.reopen(unix.O_RDONLY | unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		infos, err := f.entries(fd, f.limits.Entries)
		list = dirEntries(infos)
		return err
	})
	return list, err
}

// entries lists an open folder from its start, sorted by name. It leaves out files that are
// removed meanwhile. If stat is denied, an entry has only its name and type.
func (f *FS) entries(fd, limit int) ([]*Info, error) {
	names, err := namesIn(fd, limit)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b dirent) int { return strings.Compare(a.name, b.name) })
	list := make([]*Info, 0, len(names))
	for _, e := range names {
		st, err := statAt(fd, e.name)
		switch err {
		case nil:
			list = append(list, f.info(e.name, &st))
		case unix.EACCES:
			list = append(list, &Info{name: e.name, mode: e.kind, owner: overflowID, group: overflowID})
		case unix.ENOENT:
		default:
			return nil, err
		}
	}
	return list, nil
}

func dirEntries(list []*Info) []fs.DirEntry {
	out := make([]fs.DirEntry, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}

// dirent is an entry as getdents64(2) returns it.
type dirent struct {
	name string
	kind fs.FileMode // its type
}

// listBuffer holds several hundred entries of getdents64(2).
const listBuffer = 32 << 10

// namesIn returns at most limit entries, unsorted. If there are more, it also returns a
// *LimitError. os.File.ReadDir is not used because it may stat entries by path, which the
// host must not do.
func namesIn(fd, limit int) ([]dirent, error) {
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return nil, err
	}
	var names []dirent
	buf := make([]byte, listBuffer)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return names, err
		}
		if names, err = parseDirents(buf[:n], names); err != nil {
			return nil, err
		}
		if len(names) > limit {
			return names[:limit], &LimitError{"entries", int64(limit)}
		}
	}
}

// parseDirents parses the records of getdents64(2): inode and offset of 8 bytes each, length
// of 2, type of 1, and the name up to a NUL byte.
func parseDirents(buf []byte, names []dirent) ([]dirent, error) {
	const header = 19
	for len(buf) > 0 {
		if len(buf) < header {
			return nil, unix.EIO
		}
		size := int(binary.NativeEndian.Uint16(buf[16:]))
		if size < header || size > len(buf) {
			return nil, unix.EIO
		}
		text, _, _ := bytes.Cut(buf[header:size], []byte{0})
		name := string(text)
		if strings.ContainsRune(name, '/') || name == "" { // a broken file system
			return nil, unix.EIO
		}
		if name != "." && name != ".." {
			names = append(names, dirent{name, fileMode(uint16(buf[18]) << 12).Type()}) // DT_* are S_IF* >> 12
		}
		buf = buf[size:]
	}
	return names, nil
}
