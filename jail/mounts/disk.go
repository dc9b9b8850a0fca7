package mounts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// A writable layer on disk is an ext4 file system in a sparse file without a name, on a loop device. Nothing of it is left when its
// last mount and descriptor are gone, also if the host is killed: the kernel then detaches the device and frees the file.
//
//	format ── once for each size: mke2fs and empty files for its surplus of inodes, kept in memory as some 200 KB
//	  │
//	O_TMPFILE in Tree.DiskDir ── loop device ── detached mount ── Stage.Open attaches it instead of a tmpfs
//	                                                                │
//	                                              limitDisk fills what exceeds Disk and Inodes
//
// The kernel charges the guest's page cache to its cgroup and can reclaim it. The device reads and writes its file
// directly, so there is no second copy. There is no journal and no barrier, because no file system outlives a crash. Blocks that
// the guest frees stay in the file until its end.

const (
	blockSize  = 4096
	inodeSize  = 256
	groupSize  = 128 << 20 // bytes of a block group
	groupExtra = 3         // blocks of a group for bitmaps and descriptors, at most

	// The file system keeps up to 16 MiB for itself. The stage's own files take the rest, beside Tree.Files.
	diskReserve = 32 << 20
	stageInodes = 128

	extentBlocks = 16 * blockSize
)

// diskSize is the size of a file system with room for the guest's files and the host's.
type diskSize struct{ bytes, inodes int64 }

// sizeOf returns the least size with room for everything in the tree, rounded up so that few sizes are formatted.
func sizeOf(t Tree) diskSize {
	size := diskSize{t.Disk + diskReserve, t.Inodes + stageInodes}
	add := func(path string, data int) { // with all folders above it
		entries := int64(strings.Count(path, "/"))
		size.bytes, size.inodes = size.bytes+roundUp(int64(data), blockSize)+entries*blockSize, size.inodes+entries
	}
	for _, f := range slices.Concat(t.Files, t.Layer) {
		add(f.Path, len(f.Data))
	}
	for _, p := range slices.Concat(t.Make, t.Keep, t.Hide, t.Show, t.ReadOnly, t.Writable, t.NoExec, t.Exec) {
		add(p.Path, 0)
	}
	for _, path := range slices.Concat(t.Dirs, t.Pinned) {
		add(path, 0)
	}
	for _, m := range t.Mounts {
		add(m.Target+"/lower/upper/work/index", 0) // of an overlay
	}
	for _, p := range t.Show { // its neighbours are hidden one by one
		for dir := filepath.Dir(p.Path); dir != "/"; dir = filepath.Dir(dir) {
			entries, _ := os.ReadDir(filepath.Join(t.Image, dir)) // it may be missing
			size.bytes, size.inodes = size.bytes+int64(len(entries))*inodeSize, size.inodes+int64(len(entries))
		}
	}
	return diskSize{roundUp(size.bytes, groupSize/8), roundUp(size.inodes, 64)}
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// total returns the size of the file, in bytes.
func (s diskSize) total() int64 {
	used := s.bytes + s.inodes*inodeSize
	return roundUp(used+(used/groupSize+1)*groupExtra*blockSize, blockSize)
}

// piece is a part of a formatted file that is not a hole.
type piece struct {
	at   int64
	data []byte
}

// formats caches formatted file systems by size.
var formats struct {
	sync.Mutex
	bySize map[diskSize][]piece
}

const maxFormats = 16

// format returns a new file system of that size.
func format(size diskSize, dir string) ([]piece, error) {
	formats.Lock()
	known := formats.bySize[size]
	formats.Unlock()
	if known != nil {
		return known, nil
	}
	f, err := unnamedFile(dir, size)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command("/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-b", strconv.Itoa(blockSize), "-I", strconv.Itoa(inodeSize), "-m", "0",
		"-N", strconv.FormatInt(size.inodes, 10), "-E", "lazy_itable_init=1,nodiscard",
		"-O", "none,extent,flex_bg,64bit,uninit_bg,sparse_super,large_file,huge_file,dir_index,dir_nlink,extra_isize,ext_attr,filetype",
		"/proc/self/fd/3")
	cmd.Env, cmd.ExtraFiles = []string{"MKE2FS_CONFIG=/dev/null"}, []*os.File{f}
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("format a disk of %d bytes by mke2fs (Debian: apt install e2fsprogs): %w\n%s", size.total(), err, bytes.TrimSpace(out))
	}
	if err := fillFormat(f, size.inodes); err != nil {
		return nil, err
	}
	pieces, err := readPieces(f)
	if err != nil {
		return nil, err
	}
	formats.Lock()
	defer formats.Unlock()
	if len(formats.bySize) >= maxFormats || formats.bySize == nil {
		formats.bySize = map[diskSize][]piece{}
	}
	formats.bySize[size] = pieces
	return pieces, nil
}

// fillFormat takes the inodes that mke2fs has made beyond a number: it makes the same number in each block group.
func fillFormat(f *os.File, inodes int64) error {
	root, err := mountFile(f)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := filepath.Join(descriptorPath(root), fillDir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	free, err := freeSpace(dir)
	if err != nil {
		return err
	}
	return errors.Join(makeFiles(dir, "format", free.inodes-inodes), flush(root))
}

// flush writes a file system to its device, and makes it read-only. Closing its last mount can do that too late: a
// child process holds a copy of the descriptor between fork and exec.
func flush(root *os.File) error {
	context, err := unix.Fspick(int(root.Fd()), "", unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)
	if err != nil {
		return os.NewSyscallError("fspick", err)
	}
	defer unix.Close(context)
	return os.NewSyscallError("fsconfig", errors.Join(unix.FsconfigSetFlag(context, "ro"), unix.FsconfigReconfigure(context)))
}

func makeFiles(dir, prefix string, n int64) error {
	for i := range n {
		if err := makeEmpty(filepath.Join(dir, prefix+strconv.FormatInt(i, 10)), false, 0); err != nil {
			return err
		}
	}
	return nil
}

func readPieces(f *os.File) (list []piece, err error) {
	for at := int64(0); ; {
		if at, err = f.Seek(at, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		end, err := f.Seek(at, unix.SEEK_HOLE)
		if err != nil {
			return nil, err
		}
		p := piece{at, make([]byte, end-at)}
		if _, err := io.ReadFull(io.NewSectionReader(f, at, end-at), p.data); err != nil {
			return nil, err
		}
		list, at = append(list, p), end
	}
}

// unnamedFile makes a sparse file. The folder's file system must have the space now, though others may take it later.
func unnamedFile(dir string, size diskSize) (*os.File, error) {
	if free, err := freeSpace(dir); err != nil || free.bytes < size.total() {
		return nil, cmp.Or(err, fmt.Errorf("a disk of %d bytes on %s, which has %d left: %w", size.total(), dir, free.bytes, unix.ENOSPC))
	}
	f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return f, f.Truncate(size.total())
}

// makeDisk returns a detached mount of a new file system, or nil if the tree is in memory.
func makeDisk(t Tree) (*os.File, error) {
	if t.DiskDir == "" {
		return nil, nil
	}
	size := sizeOf(t)
	pieces, err := format(size, t.DiskDir)
	if err != nil {
		return nil, err
	}
	f, err := unnamedFile(t.DiskDir, size)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, p := range pieces {
		if _, err := f.WriteAt(p.data, p.at); err != nil {
			return nil, err
		}
	}
	return mountFile(f)
}

// CheckDisks makes a disk in a folder, as Tree.DiskDir does, and closes it.
func CheckDisks(dir string) error {
	disk, err := makeDisk(Tree{DiskDir: dir, Disk: 1 << 20})
	disk.Close() // nil if it failed
	return err
}

// mountFile returns a detached mount of the file system in a file.
func mountFile(f *os.File) (*os.File, error) {
	device, err := attachLoop(f)
	if err != nil {
		return nil, fmt.Errorf("attach a disk to a loop device: %w", err)
	}
	defer device.Close()
	return MountDetached("ext4", device.Name(), 0, "nobarrier", "noinit_itable")
}

// attachLoop attaches a file to an unused loop device, which is detached when nothing uses it any more.
func attachLoop(f *os.File) (*os.File, error) {
	control, err := kernfile.Open("/dev/loop-control", unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(f.Fd()), Size: blockSize, Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO}}
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, os.NewSyscallError("ioctl", err)
		}
		path := "/dev/loop" + strconv.Itoa(number)
		_ = unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(7, uint32(number)))) // a container's /dev lacks new devices
		device, err := kernfile.Open(path, unix.O_RDWR)
		if err != nil {
			return nil, err
		}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		device.Close()
		if err != unix.EBUSY { // another process was faster
			return nil, os.NewSyscallError("ioctl", err)
		}
	}
}

// MountDetached makes a file system, or opens that of a device, and mounts it nowhere. attrs are of
// mount_setattr(2).
func MountDetached(kind, source string, attrs int, options ...string) (*os.File, error) {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(context)
	err = unix.FsconfigSetString(context, "source", source)
	for _, option := range options {
		err = errors.Join(err, unix.FsconfigSetFlag(context, option))
	}
	if err := errors.Join(err, unix.FsconfigCreate(context)); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attrs|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	return os.NewFile(uintptr(fd), source), nil
}

// limitDisk fills the file system until the guest's share is left.
func (s *Stage) limitDisk() error {
	free, err := freeSpace(".")
	if err != nil {
		return err
	}
	if err := makeFiles(fillDir, "stage", free.inodes-s.tree.Inodes-1); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(fillDir, "blocks"))
	if err != nil {
		return err
	}
	defer f.Close()
	for filled, singles := int64(0), int64(0); ; {
		if free, err = freeSpace("."); err != nil {
			return err
		}
		excess := (free.bytes - s.tree.Disk) / blockSize * blockSize
		switch {
		case free.bytes < s.tree.Disk || free.inodes < s.tree.Inodes:
			return fmt.Errorf("the disk has %d bytes and %d files left instead of %d and %d: %w", free.bytes, free.inodes, s.tree.Disk, s.tree.Inodes, unix.ENOSPC)
		case excess == 0:
			return nil
		case excess > extentBlocks: // the list of a file's extents takes blocks, too
			excess -= extentBlocks
		default: // the only block of a file takes no other one
			if err := allocateBlock(filepath.Join(fillDir, "stage"+strconv.FormatInt(singles, 10))); err != nil {
				return err
			}
			singles++
			continue
		}
		if err := unix.Fallocate(int(f.Fd()), 0, filled, excess); err != nil {
			return os.NewSyscallError("fallocate", err)
		}
		filled += excess
	}
}

// allocateBlock allocates the first block of a file.
func allocateBlock(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("fallocate", unix.Fallocate(int(f.Fd()), 0, 0, blockSize))
}

// freeSpace returns the free space of a file system for others than the host's root.
func freeSpace(path string) (diskSize, error) {
	var now unix.Statfs_t
	err := unix.Statfs(path, &now)
	return diskSize{int64(now.Bavail) * now.Bsize, int64(now.Ffree)}, os.NewSyscallError("statfs", err)
}

// DiscardDisk closes the disk of a stage, of which nothing is mounted any more. Data that is not in the file yet is
// dropped, which saves seconds for a large disk.
func DiscardDisk(disk *os.File) error {
	if disk == nil {
		return nil
	}
	err := kernfile.Control(disk, func(fd int) error { return unix.IoctlSetPointerInt(fd, ext4Shutdown, withoutLog) })
	return errors.Join(os.NewSyscallError("ioctl", err), disk.Close())
}

// From the kernel's fs/ext4/ext4.h and xfs_fs.h.
const (
	ext4Shutdown = 0x8004587d // EXT4_IOC_SHUTDOWN
	withoutLog   = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
)
