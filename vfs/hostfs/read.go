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

// ReadFile returns the content of a regular file of Limits.File bytes at most.
func (f *FS) ReadFile(path string) (data []byte, err error) {
	err = f.at("open", path, func(root int) error {
		fd, st, err := openFor(root, path, unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return unix.EISDIR
		}
		if st.Size > uint64(f.limits.File) {
			return &LimitError{"bytes", f.limits.File}
		}
		data, err = readAll(descriptor(fd), int64(st.Size), f.limits.File)
		return err
	})
	return data, err
}

// descriptor reads without an os.File, which would try to have it polled.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// readAll reads a file that may grow meanwhile. It was of that size, within the limit.
func readAll(file io.Reader, size, limit int64) ([]byte, error) {
	data := make([]byte, 0, size+1) // one more, to meet the end without growing
	for {
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, &LimitError{"bytes", limit}
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = slices.Grow(data, len(data))
		}
	}
}

// ReadDir lists a folder, sorted by name. It has at most Limits.Entries entries, whose
// type is *Info. Of a folder that the guest may read and not enter, they tell name and
// type, and nothing else.
func (f *FS) ReadDir(path string) (list []fs.DirEntry, err error) {
	err = f.at("open", path, func(root int) error {
		n, err := lookup(root, path, false)
		if err != nil {
			return err
		}
		defer n.close()
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

// entries lists an open folder from its begin, sorted by name. What goes meanwhile is
// left out. Of what may not be looked at, there is its type alone.
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

// dirent is an entry as a folder has it.
type dirent struct {
	name string
	kind fs.FileMode // its type
}

// listBuffer holds some hundred entries of getdents64(2).
const listBuffer = 32 << 10

// namesIn returns at most limit names, in no order. If there are more, it is a *LimitError,
// too. The standard library's would look at some entries by their path, which is none of the
// host's.
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

// parseDirents reads what getdents64(2) gives: inode and offset of 8 bytes each, length
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
		if strings.ContainsRune(name, '/') || name == "" { // of a broken file system
			return nil, unix.EIO
		}
		if name != "." && name != ".." {
			names = append(names, dirent{name, fileMode(uint16(buf[18]) << 12).Type()}) // DT_* are S_IF* >> 12
		}
		buf = buf[size:]
	}
	return names, nil
}
