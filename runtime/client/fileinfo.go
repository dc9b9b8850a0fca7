package client

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"time"
)

// FileInfo describes a file. It is an [fs.FileInfo].
type FileInfo struct {
	Path   string // in the sandbox, as it was requested or listed
	Target string // the text of a link, if Stat or Lstat described the link itself

	size     int64
	mode     fs.FileMode
	modified time.Time
}

// Name is the last component of the path.
func (i *FileInfo) Name() string { return path.Base(i.Path) }

// Size is in bytes.
func (i *FileInfo) Size() int64 { return i.size }

// Mode is the type and the permissions.
func (i *FileInfo) Mode() fs.FileMode { return i.mode }

// ModTime is when its content was last changed. The guest can set it to any time.
func (i *FileInfo) ModTime() time.Time { return i.modified }

// IsDir reports whether it is a folder.
func (i *FileInfo) IsDir() bool { return i.mode.IsDir() }

// Sys returns nil.
func (i *FileInfo) Sys() any { return nil }

// fileTypes are the types of files by their names in results.
var fileTypes = map[string]fs.FileMode{
	"file": 0, "folder": fs.ModeDir, "link": fs.ModeSymlink, "fifo": fs.ModeNamedPipe, "socket": fs.ModeSocket, "device": fs.ModeDevice,
}

// UnmarshalJSON decodes what servers send.
func (i *FileInfo) UnmarshalJSON(text []byte) error {
	var sent struct {
		Path, Type, Mode, Target string
		PathBytes, TargetBytes   []byte
		Size                     int64
		Modified                 time.Time
	}
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	bits, err := strconv.ParseUint(sent.Mode, 8, 12)
	kind, known := fileTypes[sent.Type]
	if err != nil || !known {
		return fmt.Errorf("a file of type %q and mode %q", sent.Type, sent.Mode)
	}
	*i = FileInfo{exactText(sent.Path, sent.PathBytes), exactText(sent.Target, sent.TargetBytes), sent.Size, kind | fs.FileMode(bits).Perm(), sent.Modified}
	return nil
}

// exactText returns a text, or its bytes if it is not UTF-8.
func exactText(text string, bytes []byte) string {
	if len(bytes) > 0 {
		return string(bytes)
	}
	return text
}
