package hostfs

import (
	"bytes"
	"io"

	"golang.org/x/sys/unix"
)

// ReadFile returns the content of a regular file of at most Limits.File bytes.
func (f *FS) ReadFile(path string) (data []byte, err error) {
	err = f.onNode("open", path, 0, func(n *node) error {
		fd, err := n.reopen(unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		limit := f.limits.File
		if n.stat.Size > uint64(limit) {
			return &LimitError{"bytes", limit}
		}
		var content bytes.Buffer
		content.Grow(int(n.stat.Size) + bytes.MinRead) // ReadFrom needs that much room to find the end without growing
		if _, err := content.ReadFrom(io.LimitReader(descriptor(fd), limit+1)); err != nil {
			return err
		}
		if int64(content.Len()) > limit { // it has grown
			return &LimitError{"bytes", limit}
		}
		data = content.Bytes()
		return nil
	})
	return data, err
}

// descriptor reads and writes without an os.File, which would register it with the poller.
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

// Write writes all of data. A call of write(2) may write only a part.
func (d descriptor) Write(data []byte) (done int, err error) {
	for done < len(data) {
		n, err := unix.Write(int(d), data[done:])
		if err != nil && err != unix.EINTR {
			return done, err
		}
		done += max(n, 0)
	}
	return done, nil
}
