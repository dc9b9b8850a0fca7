package hostfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ReadFile returns the content of a regular file of at most Limits.File bytes.
func (f *FS) ReadFile(path string) (data []byte, err error) {
	err = f.onNode("open", path, 0, func(n *node) error {
		file, err := n.reopen(unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer file.Close()
		limit := f.limits.File
		if n.stat.Size > uint64(limit) {
			return &LimitError{"bytes", limit}
		}
		var content bytes.Buffer
		content.Grow(int(n.stat.Size) + bytes.MinRead) // ReadFrom needs that much room to find the end without growing
		if _, err := content.ReadFrom(io.LimitReader(file, limit+1)); err != nil {
			return unwrapped(err)
		}
		if int64(content.Len()) > limit { // it has grown
			return &LimitError{"bytes", limit}
		}
		data = content.Bytes()
		return nil
	})
	return data, err
}

// WriteOptions configure a write. The zero value is useful.
type WriteOptions struct {
	// Mode is the permissions of a new file, whatever the host's umask is. An existing
	// file keeps its permissions. Zero: 0o644.
	Mode fs.FileMode

	// Parents makes missing parent folders, with 0o755.
	Parents bool
}

const defaultFileMode = 0o644

// WriteFile replaces the content of a file by data, and makes the file if it does not exist.
// It follows links to where they lead the guest. An existing file keeps its permissions,
// owner and names.
//
// If WriteFile fails, for example because the disk is full, the content does not change: it
// writes a new file and renames it over the old one, and so needs disk space for both. A
// program that has the old file open still sees the old content. If the old file cannot be
// replaced, because it has other names or another owner or its folder is not writable,
// WriteFile reserves disk space and then overwrites the file in place. A program may then
// see a part of the new content.
func (f *FS) WriteFile(path string, data []byte, o WriteOptions) error {
	return f.write("write", path, o, func(p place, n *node, bits uint32) error {
		if n != nil && f.isShared(n) {
			return overwrite(n, data)
		}
		err := replace(p, data, bits)
		if n != nil && (isDenied(err) || err == unix.EROFS) { // from the folder
			return overwrite(n, data)
		}
		return err
	})
}

// Append writes data to the end of a file, and makes the file if it does not exist. It writes
// all of data or nothing, if the file system can reserve space, as all file systems of a guest's
// tree can.
func (f *FS) Append(path string, data []byte, o WriteOptions) error {
	return f.write("append", path, o, func(p place, n *node, bits uint32) error {
		if n == nil {
			return replace(p, data, bits)
		}
		file, err := n.reopen(unix.O_WRONLY | unix.O_APPEND)
		if err != nil {
			return err
		}
		defer file.Close()
		at, err := file.Seek(0, io.SeekEnd)
		if err == nil {
			err = reserve(file, at, len(data))
		}
		if err != nil && err != unix.EOPNOTSUPP {
			return unwrapped(err)
		}
		_, err = file.Write(data)
		return unwrapped(err)
	})
}

// write calls do with the writable file that a path leads to, nil if it does not exist, and
// with the permissions of a file that replaces it.
func (f *FS) write(op, path string, o WriteOptions, do func(p place, n *node, bits uint32) error) error {
	bits, err := permissions(o.Mode, defaultFileMode)
	if err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return f.at(op, path, func(root base) error {
		p, n, err := locateTarget(root, path)
		if err == unix.ENOENT && o.Parents {
			if err := mkdirParent(root, path, folderMode); err != nil {
				return err
			}
			p, n, err = locateTarget(root, path)
		}
		if errors.Is(err, errRoot) {
			return unix.EISDIR
		}
		if err != nil {
			return err
		}
		defer p.close()
		if n == nil {
			return do(p, nil, bits)
		}
		defer n.close()
		switch {
		case n.isFolder():
			return unix.EISDIR
		case n.kind() != unix.S_IFREG:
			return ErrSpecial
		}
		// Not by opening it: an overlay would then copy the content that is about to be replaced.
		if err := unix.Faccessat(n.fd, "", unix.W_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS); err != nil {
			return err
		}
		return do(p, n, uint32(n.stat.Mode)&0o1777)
	})
}

// overwrite replaces the content of a file in place.
func overwrite(n *node, data []byte) error {
	file, err := n.reopen(unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := reserve(file, 0, len(data)); err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return unwrapped(err)
	}
	return unwrapped(file.Truncate(int64(len(data))))
}

// reserve allocates disk space, so that a write cannot fail half-way for a full disk. It does
// not change the size of the file.
func reserve(file *os.File, at int64, size int) error {
	for size > 0 {
		if err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, at, int64(size)); err != unix.EINTR {
			return err
		}
	}
	return nil
}
