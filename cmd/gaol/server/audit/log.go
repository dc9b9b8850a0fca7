package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// File is an open file for a [Log].
type File struct {
	file *os.File
	torn bool // the last line is incomplete
}

// Open opens a file, or creates it for its owner only. It must be a regular file that other users
// may neither read nor write; its group may read it.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o037 != 0) {
		err = fmt.Errorf("%s: want a file with mode 0640 or less, not %v", path, info.Mode())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return &File{file: f}, nil
}

// Close closes a file that no log has.
func (f *File) Close() error { return f.file.Close() }

// write appends a line.
func (f *File) write(line []byte) error {
	if f.torn { // the disk was full
		line = append([]byte{'\n'}, line...)
	}
	n, err := f.file.Write(line)
	if n > 0 {
		f.torn = n < len(line)
	}
	return err
}

// Log is an audit log. The zero value has no file, and writes nothing. Its methods may be called
// from several goroutines at once.
type Log struct {
	mu   sync.Mutex
	file *File
}

// Set replaces the file and closes the previous one. The log owns f, which may be nil.
func (l *Log) Set(f *File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.file
	l.file = f
	if old == nil {
		return nil
	}
	return old.Close()
}

// Enabled reports whether the log has a file.
func (l *Log) Enabled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file != nil
}

// Write appends a line.
func (l *Log) Write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	if err := l.file.write(append(line, '\n')); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}
