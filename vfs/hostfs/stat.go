package hostfs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// Stat describes the file that a path leads to.
func (f *FS) Stat(path string) (*Info, error) { return f.stat("stat", path, 0) }

// Lstat is like Stat, but describes a link itself.
func (f *FS) Lstat(path string) (*Info, error) { return f.stat("lstat", path, unix.O_NOFOLLOW) }

func (f *FS) stat(op, path string, flags uint64) (info *Info, err error) {
	err = f.onNode(op, path, flags, func(n *node) error {
		info = f.info(path, &n.stat)
		return nil
	})
	return info, err
}

// Exists reports whether a path leads to a file. A dangling link does not. An error means
// that the answer is unknown.
func (f *FS) Exists(path string) (bool, error) {
	_, err := f.Stat(path)
	if isMissing(unwrapped(err)) {
		return false, nil
	}
	return err == nil, err
}

// ReadLink returns the text of a link. The guest chose it: it need not be a path.
func (f *FS) ReadLink(path string) (text string, err error) {
	err = f.onNode("readlink", path, unix.O_NOFOLLOW, func(n *node) error {
		if n.kind() != unix.S_IFLNK {
			return unix.EINVAL // for a descriptor, the kernel would return ENOENT
		}
		text, err = readLink(n.fd, "")
		return err
	})
	return text, err
}

// readLink reads the link name in the folder dir, or the link dir if name is empty.
func readLink(dir int, name string) (string, error) {
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, text)
	if err != nil {
		return "", err
	}
	return string(text[:n]), nil
}

// Info describes a file of any type as it was at one moment. It is an fs.FileInfo and an
// fs.DirEntry.
type Info struct {
	name                        string
	mode                        fs.FileMode
	bits                        uint16 // of stat(2)
	size                        int64
	owner, group                int
	links                       uint32
	modified, accessed, created time.Time
}

// Name is the last component of the requested path; "/" for the root.
func (i *Info) Name() string { return i.name }

// Size is in bytes.
func (i *Info) Size() int64 { return i.size }

// Mode is the type and the permissions.
func (i *Info) Mode() fs.FileMode { return i.mode }

// Permissions returns four octal digits, as chmod(1) takes them.
func (i *Info) Permissions() string { return fmt.Sprintf("%04o", i.bits&0o7777) }

// Type is the type of Mode.
func (i *Info) Type() fs.FileMode { return i.mode.Type() }

// wireInfo is an Info in JSON.
type wireInfo struct {
	Name                        []byte // which need not be UTF-8
	Mode                        fs.FileMode
	Bits                        uint16
	Size                        int64
	Owner, Group                int
	Links                       uint32
	Modified, Accessed, Created wireTime
}

// wireTime is a time in seconds and nanoseconds, whose year may have more digits than JSON's.
type wireTime [2]int64

func toWire(t time.Time) wireTime  { return wireTime{t.Unix(), int64(t.Nanosecond())} }
func (t wireTime) time() time.Time { return time.Unix(t[0], t[1]) }

// MarshalJSON implements [json.Marshaler].
func (i *Info) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireInfo{[]byte(i.name), i.mode, i.bits, i.size, i.owner, i.group, i.links, toWire(i.modified), toWire(i.accessed), toWire(i.created)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (i *Info) UnmarshalJSON(text []byte) error {
	var w wireInfo
	err := json.Unmarshal(text, &w)
	if err == nil && w.Size < 0 {
		err = fmt.Errorf("hostfs: a size of %d bytes", w.Size)
	}
	*i = Info{string(w.Name), w.Mode, w.Bits, w.Size, w.Owner, w.Group, w.Links, w.Modified.time(), w.Accessed.time(), w.Created.time()}
	return err
}

// IsDir reports whether it is a folder.
func (i *Info) IsDir() bool { return i.mode.IsDir() }

// Info returns i.
func (i *Info) Info() (fs.FileInfo, error) { return i, nil }

// Sys returns nil.
func (i *Info) Sys() any { return nil }

// Owner is the user id that the guest sees; 65534 for a user outside its range.
func (i *Info) Owner() int { return i.owner }

// Group is the group id that the guest sees; 65534 for a group outside its range.
func (i *Info) Group() int { return i.group }

// Links is the number of its names.
func (i *Info) Links() int { return int(i.links) }

// ModTime is when its content was last changed. The guest can set it to any time.
func (i *Info) ModTime() time.Time { return i.modified }

// AccessTime is when it was last read, if the mount records that.
func (i *Info) AccessTime() time.Time { return i.accessed }

// CreateTime is when it was created; zero if the file system does not record that.
func (i *Info) CreateTime() time.Time { return i.created }

// String returns fs.FormatFileInfo.
func (i *Info) String() string { return fs.FormatFileInfo(i) }

func (f *FS) info(name string, st *unix.Statx_t) *Info {
	i := &Info{
		name: path.Base(name), mode: fileMode(st.Mode), bits: st.Mode, size: int64(st.Size), links: st.Nlink,
		owner: f.ids.guest(st.Uid), group: f.ids.guest(st.Gid),
		modified: timeOf(st.Mtime), accessed: timeOf(st.Atime),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		i.created = timeOf(st.Btime)
	}
	return i
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// types maps the file types of stat(2) to Go's.
var types = map[uint16]fs.FileMode{
	unix.S_IFDIR:  fs.ModeDir,
	unix.S_IFLNK:  fs.ModeSymlink,
	unix.S_IFIFO:  fs.ModeNamedPipe,
	unix.S_IFSOCK: fs.ModeSocket,
	unix.S_IFBLK:  fs.ModeDevice,
	unix.S_IFCHR:  fs.ModeDevice | fs.ModeCharDevice,
}

func fileMode(m uint16) fs.FileMode {
	mode := types[m&unix.S_IFMT] | fs.FileMode(m&0o777)
	for i, flag := range [...]fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid} {
		if m&(unix.S_ISVTX<<i) != 0 {
			mode |= flag
		}
	}
	return mode
}

// permissions returns the kernel's bits of a mode, or fallback if it is zero. It refuses
// set-id bits: a program that runs as its owner would be a risk.
func permissions(mode fs.FileMode, fallback uint32) (uint32, error) {
	if mode == 0 {
		return fallback, nil
	}
	if mode&^(fs.ModePerm|fs.ModeSticky) != 0 {
		return 0, fmt.Errorf("only permissions and the sticky bit can be set: %w", fs.ErrInvalid)
	}
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits, nil
}
