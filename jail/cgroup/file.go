package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// readFile reads a whole file. os.ReadFile would first have the runtime's poller
// watch it, which costs more system calls than the reading: 25 µs a file in place
// of 13 µs.
func readFile(file string) ([]byte, error) {
	fd, err := ignoringEINTR(func() (int, error) { return unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 1024)
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, b[len(b):cap(b)]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: file, Err: err}
		}
		if b = b[:len(b)+n]; n == 0 {
			return b, nil
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// writeFile does not create the file: on a cgroup mount that reads "permission
// denied" where the truth is that there is no such file.
func writeFile(file, text string) error {
	fd, err := ignoringEINTR(func() (int, error) { return unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &os.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	if _, err := ignoringEINTR(func() (int, error) { return unix.Write(fd, []byte(text)) }); err != nil {
		return &os.PathError{Op: "write", Path: file, Err: err}
	}
	return nil
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// readInt reads a file of one number.
func readInt(n *int64, file string) error {
	b, err := readFile(file)
	if err != nil {
		return err
	}
	return parse(n, file, bytes.TrimSpace(b))
}

// readKey reads the number after key in a file of lines "key number". A key that
// is not there leaves n alone: each kernel knows some that older ones do not.
func readKey(n *int64, file, key string) error {
	b, err := readFile(file)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		k, v, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if string(k) == key {
			return parse(n, file, v)
		}
	}
	return nil
}

func parse(n *int64, file string, text []byte) error {
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	*n = v
	return nil
}
