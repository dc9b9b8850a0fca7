package service

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gaol/vfs/hostfs"
)

func newFileInfo(path string, info fs.FileInfo) *FileInfo {
	i := &FileInfo{
		Type: fileType(info.Mode()), Size: info.Size(), Mode: fmt.Sprintf("%04o", info.Mode().Perm()), Modified: ClampTime(info.ModTime()),
	}
	i.Path, i.PathBytes = text8(path)
	return i
}

// text8 returns a text that is UTF-8, and its bytes if that is not the same.
func text8(s string) (text string, bytes []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError)), []byte(s)
}

func fileType(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "folder"
	case fs.ModeSymlink:
		return "link"
	case fs.ModeNamedPipe:
		return "fifo"
	case fs.ModeSocket:
		return "socket"
	}
	return "device"
}

// Bounds of a time that has a text in JSON (RFC 3339).
var (
	firstTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// ClampTime returns the time in UTC that JSON can have: a guest can set the time of a file to any
// 64-bit number of seconds.
func ClampTime(t time.Time) time.Time {
	// Not by Before: it overflows.
	switch s := t.Unix(); {
	case s < firstTime.Unix():
		return firstTime
	case s > lastTime.Unix():
		return lastTime
	}
	return t.UTC()
}

// modeBits returns the permissions, zero for the default.
func modeBits(m FileMode) (fs.FileMode, error) {
	if m.Mode == "" {
		return 0, nil
	}
	bits, err := strconv.ParseUint(m.Mode, 8, 16)
	if err != nil || bits == 0 || bits > 0o777 {
		return 0, Refuse(Invalid, "mode: want 1 to 777, in octal")
	}
	return fs.FileMode(bits), nil
}

// writeOptions returns the request as package hostfs has it.
func writeOptions(w FileWrite) (hostfs.WriteOptions, error) {
	mode, err := modeBits(w.FileMode)
	return hostfs.WriteOptions{Mode: mode, Parents: w.Parents}, err
}
