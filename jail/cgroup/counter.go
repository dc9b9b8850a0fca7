package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
)

// readInt reads a file that contains one number.
func readInt(n *int64, file string) error {
	b, err := kernfile.ReadFile(file)
	if err != nil {
		return err
	}
	return parse(n, file, bytes.TrimSpace(b))
}

// readKey reads the number after key in a file of lines "key number". It leaves n
// unchanged if the key is missing, as older kernels lack some keys.
func readKey(n *int64, file, key string) error {
	b, err := kernfile.ReadFile(file)
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

// ignoreGone returns nil if err means that a file or its group does not exist. Processes
// and groups may disappear at any time, and older kernels lack some files.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
