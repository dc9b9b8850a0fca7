package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// noStorage lists file systems that expose the host's kernel and devices.
var noStorage = map[int64]string{
	unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs", unix.CGROUP_SUPER_MAGIC: "cgroup", unix.CGROUP2_SUPER_MAGIC: "cgroup2",
	unix.DEVPTS_SUPER_MAGIC: "devpts", unix.DEBUGFS_MAGIC: "debugfs", unix.TRACEFS_MAGIC: "tracefs", unix.SECURITYFS_MAGIC: "securityfs",
	unix.BPF_FS_MAGIC: "bpf", unix.EFIVARFS_MAGIC: "efivarfs", unix.BINFMTFS_MAGIC: "binfmt_misc", unix.NSFS_MAGIC: "nsfs",
	unix.SELINUX_MAGIC: "selinuxfs", unix.SMACK_MAGIC: "smackfs", unix.PSTOREFS_MAGIC: "pstore", unix.RDTGROUP_SUPER_MAGIC: "resctrl",
	unix.XENFS_SUPER_MAGIC: "xenfs",
}

// noStorageDirs contain such file systems, and some that their type does not identify:
// devtmpfs and the folder of the cgroups have the type of tmpfs.
var noStorageDirs = []string{"/proc", "/sys", "/dev"}

var errSource = errors.New("can't be shown to a guest")

// openSource opens a folder or a file and checks that guests may see it. It checks the open
// file, not the path, which may change. private are folders that guests must not see.
func openSource(path string, private []string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := checkSource(f, private); err != nil {
		f.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return f, nil
}

func checkSource(f *os.File, private []string) error {
	var info unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &info), unix.Fstatfs(int(f.Fd()), &fs)); err != nil {
		return err
	}
	if kind := info.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return fmt.Errorf("%w: it is neither a folder nor a file", errSource)
	}
	if name, ok := noStorage[fs.Type]; ok {
		return fmt.Errorf("%w: it is %s", errSource, name)
	}
	real, err := pathOf(f)
	if err != nil {
		return err
	}
	if real == "/" {
		return fmt.Errorf("%w: it is all that the host has. Name the folders that the guest needs", errSource)
	}
	for _, dir := range noStorageDirs {
		if isIn(real, dir) && !isIn(real, "/dev/shm") {
			return fmt.Errorf("%w: it is in %s, which shows the host's kernel and devices", errSource, dir)
		}
	}
	for _, dir := range private {
		if dir, err = realPath(dir); err != nil {
			return err
		}
		if isIn(real, dir) || isIn(dir, real) {
			return fmt.Errorf("%w: it has to do with %s, where gaol keeps its images or its state. Name another folder, or one beside that", errSource, dir)
		}
	}
	return nil
}

// realPath resolves the links in the path of a folder. It also resolves the path of a missing folder,
// because the guest could create it through a mount.
func realPath(dir string) (string, error) {
	folder, err := os.OpenFile(dir, unix.O_PATH, 0)
	if errors.Is(err, os.ErrNotExist) && dir != "/" {
		above, err := realPath(filepath.Dir(dir))
		return filepath.Join(above, filepath.Base(dir)), err
	}
	if err != nil {
		return "", err
	}
	defer folder.Close()
	return pathOf(folder)
}

// pathOf returns the path of an open file, as the kernel reports it.
func pathOf(f *os.File) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
}

// isIn reports whether a path is a folder or inside it.
func isIn[P ~string](path, dir P) bool {
	return path == dir || dir == "/" || strings.HasPrefix(string(path), string(dir)+"/")
}
