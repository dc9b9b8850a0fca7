package resultjson

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// FileInfo describes a file.
type FileInfo struct {
	Path        string    `json:"path" doc:"Its path in the sandbox. Bytes that are not UTF-8 are replaced."`
	PathBytes   []byte    `json:"pathBytes,omitempty" doc:"The path in base64, if it is not UTF-8."`
	Type        string    `json:"type" enum:"file,folder,link,fifo,socket,device"`
	Size        int64     `json:"size" doc:"In bytes."`
	Mode        string    `json:"mode" doc:"Its permissions, in octal."`
	Modified    time.Time `json:"modified" doc:"When its content was changed, by the guest's claim."`
	Target      string    `json:"target,omitempty" doc:"The text of a link. Listings omit it."`
	TargetBytes []byte    `json:"targetBytes,omitempty" doc:"The text in base64, if it is not UTF-8."`
}

// fileTypes are the types of files by their names.
var fileTypes = map[string]fs.FileMode{
	"file": 0, "folder": fs.ModeDir, "link": fs.ModeSymlink, "fifo": fs.ModeNamedPipe, "socket": fs.ModeSocket, "device": fs.ModeDevice,
}

// NewFileInfo describes a file.
func NewFileInfo(path string, info fs.FileInfo) *FileInfo {
	i := &FileInfo{Type: "device", Size: info.Size(), Mode: fmt.Sprintf("%04o", info.Mode().Perm()), Modified: ClampTime(info.ModTime())}
	i.Path, i.PathBytes = SplitText(path)
	for name, t := range fileTypes {
		if t == info.Mode().Type() {
			i.Type = name
		}
	}
	return i
}

// SplitText returns a text that is UTF-8, and its bytes if that is not the same.
func SplitText(s string) (text string, bytes []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError)), []byte(s)
}

// FileMode returns the type and the permissions.
func (i *FileInfo) FileMode() (fs.FileMode, error) {
	bits, err := strconv.ParseUint(i.Mode, 8, 12)
	kind, known := fileTypes[i.Type]
	if err != nil || !known {
		return 0, fmt.Errorf("a file of type %q and mode %q", i.Type, i.Mode)
	}
	return kind | fs.FileMode(bits).Perm(), nil
}
