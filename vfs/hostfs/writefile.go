package hostfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// WriteOptions configure a write. The zero value is useful.
type WriteOptions struct {
	// Mode has the permissions of a new file, whatever the host's umask is. An existing
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
		err := f.replace(p, data, bits)
		if n != nil && (isDenied(err) || err == unix.EROFS) { // from the folder
			return overwrite(n, data)
		}
		return err
	})
}

// Append writes data to the end of a file, and makes the file if it does not exist. It writes
// all of data or nothing, if the file system can reserve space, as all those of a guest's
// tree can.
func (f *FS) Append(path string, data []byte, o WriteOptions) error {
	return f.write("append", path, o, func(p place, n *node, bits uint32) error {
		if n == nil {
			return f.replace(p, data, bits)
		}
		fd, err := n.reopen(unix.O_WRONLY | unix.O_APPEND)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		st, err := statAt(fd, "")
		if err != nil {
			return err
		}
		if err := reserve(fd, int64(st.Size), len(data)); err != nil && err != unix.EOPNOTSUPP {
			return err
		}
		_, err = descriptor(fd).Write(data)
		return err
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
	fd, err := n.reopen(unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if err := reserve(fd, 0, len(data)); err != nil {
		return err
	}
	if _, err := descriptor(fd).Write(data); err != nil {
		return err
	}
	return unix.Ftruncate(fd, int64(len(data)))
}

// reserve allocates disk space, so that a write cannot fail half-way for a full disk. It does
// not change the size of the file.
func reserve(fd int, at int64, size int) error {
	for size > 0 {
		err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, at, int64(size))
		if err != unix.EINTR {
			return err
		}
	}
	return nil
}
