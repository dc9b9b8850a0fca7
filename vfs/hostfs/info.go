package hostfs

import (
	"io/fs"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// Info tells about a file, folder, link or other thing as it was at one moment. It is
// an fs.FileInfo and an fs.DirEntry.
type Info struct {
	name         string
	mode         fs.FileMode
	size         int64
	owner, group int
	links        uint32
	modified     time.Time
	accessed     time.Time
	created      time.Time
}

var (
	_ fs.FileInfo = (*Info)(nil)
	_ fs.DirEntry = (*Info)(nil)
)

// Name is the last component of the path that was asked for; "/" of the root's.
func (i *Info) Name() string { return i.name }

// Size is in bytes.
func (i *Info) Size() int64 { return i.size }

// Mode is type and permissions.
func (i *Info) Mode() fs.FileMode { return i.mode }

// Type is that of Mode.
func (i *Info) Type() fs.FileMode { return i.mode.Type() }

// IsDir tells whether it is a folder.
func (i *Info) IsDir() bool { return i.mode.IsDir() }

// Info returns i.
func (i *Info) Info() (fs.FileInfo, error) { return i, nil }

// Sys returns nil.
func (i *Info) Sys() any { return nil }

// Owner is the user id that the guest sees; 65534 if it has none for it.
func (i *Info) Owner() int { return i.owner }

// Group is the group id that the guest sees; 65534 if it has none for it.
func (i *Info) Group() int { return i.group }

// Links is how many names it has.
func (i *Info) Links() int { return int(i.links) }

// ModTime is when its content was last changed, or so the guest says: it can set it.
func (i *Info) ModTime() time.Time { return i.modified }

// AccessTime is when it was last read, as far as the mount records that.
func (i *Info) AccessTime() time.Time { return i.accessed }

// CreateTime is when it was made; zero where the file system doesn't know.
func (i *Info) CreateTime() time.Time { return i.created }

// String is that of fs.FormatFileInfo.
func (i *Info) String() string { return fs.FormatFileInfo(i) }

func (f *FS) info(name string, st *unix.Statx_t) *Info {
	i := &Info{
		name: path.Base(name), mode: fileMode(st.Mode), size: int64(st.Size), links: st.Nlink,
		owner: f.ids.guest(st.Uid), group: f.ids.guest(st.Gid),
		modified: timeOf(st.Mtime), accessed: timeOf(st.Atime),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		i.created = timeOf(st.Btime)
	}
	return i
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// types are the kernel's, stat(2), and Go's.
var types = map[uint16]fs.FileMode{
	unix.S_IFREG:  0,
	unix.S_IFDIR:  fs.ModeDir,
	unix.S_IFLNK:  fs.ModeSymlink,
	unix.S_IFIFO:  fs.ModeNamedPipe,
	unix.S_IFSOCK: fs.ModeSocket,
	unix.S_IFBLK:  fs.ModeDevice,
	unix.S_IFCHR:  fs.ModeDevice | fs.ModeCharDevice,
}

func fileMode(m uint16) fs.FileMode {
	kind, known := types[m&unix.S_IFMT]
	if !known {
		kind = fs.ModeIrregular
	}
	mode := kind | fs.FileMode(m&0o777)
	for bit, flag := range map[uint16]fs.FileMode{
		unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky,
	} {
		if m&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// permissions gives the kernel's bits of a mode that may be set. The set-id bits may
// not: nothing good comes of what runs as its owner.
func permissions(mode fs.FileMode) (uint32, error) {
	if mode&^(fs.ModePerm|fs.ModeSticky) != 0 {
		return 0, errMode
	}
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits, nil
}
