package hostfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// WriteOptions say how a file is written. The zero value is useful.
type WriteOptions struct {
	// Mode is what a new file's permissions are, whatever the host's umask is. Those of
	// one that exists stay. Zero: 0o644.
	Mode fs.FileMode

	// Parents has missing folders made, with 0o755.
	Parents bool
}

const defaultFileMode = 0o644

// bits checks the options.
func (o WriteOptions) bits() (uint32, error) {
	if o.Mode == 0 {
		return defaultFileMode, nil
	}
	return permissions(o.Mode)
}

// WriteFile makes data the content of a file, which is made if it doesn't exist. Links
// are followed, to where they lead the guest. Of a file that exists, permissions, owner
// and names stay.
//
// If it fails, above all for a full disk, the content is the old one. To that end the
// data is written to a new file that takes the place of the old one, for which the disk
// needs room beside it. A program that has the old file open keeps that. Where that
// can't be done, as the file has other names or another owner or its folder can't be
// written to, room is reserved first, and a program may see the content half-way.
func (f *FS) WriteFile(path string, data []byte, o WriteOptions) error {
	return f.write("write", path, o, func(p place, n *node, bits uint32) error {
		switch {
		case n == nil:
			return f.replace(p, data, bits)
		case f.isShared(n):
			return overwrite(n, data)
		}
		bits, err := n.writable()
		if err != nil {
			return err
		}
		err = f.replace(p, data, bits)
		if isDenied(err) || err == unix.EROFS { // the folder's
			return overwrite(n, data)
		}
		return err
	})
}

// Append writes data to the end of a file, which is made if it doesn't exist. All of it
// is written, or nothing where the file system can reserve room: of those in a guest's
// tree, all can.
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
		return writeAll(data, func(rest []byte, _ int64) (int, error) { return unix.Write(fd, rest) })
	})
}

// write finds what a path leads to: a regular file, or nil.
func (f *FS) write(op, path string, o WriteOptions, do func(p place, n *node, bits uint32) error) error {
	bits, err := o.bits()
	if err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return f.at(op, path, func(root int) error {
		p, n, err := trace(root, path)
		if err == unix.ENOENT && o.Parents {
			if err := mkdirAbove(root, path, folderMode); err != nil {
				return err
			}
			p, n, err = trace(root, path)
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
		return do(p, n, bits)
	})
}

// create makes an empty file that didn't exist, and opens it for writing.
func create(p place) (int, error) {
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_WRONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	for {
		fd, err := unix.Openat(p.dir, p.name, flags, 0o600)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// overwrite changes the content of a file where it is.
func overwrite(n *node, data []byte) error {
	fd, err := n.reopen(unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if err := reserve(fd, 0, len(data)); err != nil {
		return err
	}
	if err := writeAt(fd, data); err != nil {
		return err
	}
	return unix.Ftruncate(fd, int64(len(data)))
}

// reserve has room for what will be written, so that the disk can't be full half-way.
// The size stays.
func reserve(fd int, at int64, size int) error {
	for size > 0 {
		err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, at, int64(size))
		if err != unix.EINTR {
			return err
		}
	}
	return nil
}

func writeAt(fd int, data []byte) error {
	return writeAll(data, func(rest []byte, at int64) (int, error) { return unix.Pwrite(fd, rest, at) })
}

// writeAll calls write, which may write a part, for all of data.
func writeAll(data []byte, write func(rest []byte, at int64) (int, error)) error {
	for done := 0; done < len(data); {
		n, err := write(data[done:], int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		done += n
	}
	return nil
}
