package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/vfs"
)

// Access is what a guest may do with a folder of the host's.
type Access = jail.Access

// The accesses.
const (
	ReadOnly    = jail.ReadOnly    // the zero value
	CopyOnWrite = jail.CopyOnWrite // the guest changes a copy, which counts as its own files (Limits.Disk)
	ReadWrite   = jail.ReadWrite   // the guest changes the host's files; Limits don't bound what it writes there
)

// Mount shows a folder or a file of the host in the tree. It is opened once, when Create
// checks it: what its path leads to later is no matter. What belongs to its owner, the
// guest sees as its own, and what the guest makes belongs to that owner, where the
// kernel can do that for its file system; elsewhere files of a read-only mount show as
// nobody's, and the other accesses are refused. Of mounts below Source nothing shows.
type Mount struct {
	// Source is a path of the host. Refused are "/", what gaol keeps its images and its
	// state in and what is above that, and file systems that are no storage, such as
	// /proc, /sys and /dev.
	Source string

	// Target is where it is to be: an absolute path in the guest's tree, made if
	// missing. A mount below another's is laid over that.
	Target string

	Access Access
}

// nodeModules is where NodeModules shows: ESM and CommonJS look there from every
// program in the working directory.
const nodeModules = "node_modules"

// mounts are those of the options as the tree has them.
func (o Options) mounts(cwd vfs.Path) ([]Mount, error) {
	list := slices.Clone(o.Mounts)
	if o.NodeModules != "" && packagesOf(o.NodeModules) == "" {
		list = append(list, Mount{Source: o.NodeModules, Target: string(cwd.Join(nodeModules))})
	}
	seen := map[string]bool{}
	for _, m := range list {
		target, err := vfs.ParsePath(m.Target)
		switch {
		case err != nil:
			return nil, fmt.Errorf("option Mounts: %w", err)
		case seen[m.Target]:
			return nil, fmt.Errorf("option Mounts: %s twice", target)
		case m.Access < ReadOnly || m.Access > ReadWrite:
			return nil, fmt.Errorf("option Mounts: %s: there is no access %d", target, m.Access)
		case !filepath.IsAbs(m.Source):
			return nil, fmt.Errorf("option Mounts: source %q: not an absolute path", m.Source)
		}
		seen[m.Target] = true
	}
	return list, nil
}

// packagesOf is the snapshot that NodeModules names, if it does.
func packagesOf(nodeModules string) string {
	name, _ := strings.CutPrefix(nodeModules, snapshotPrefix)
	if name == nodeModules {
		return ""
	}
	return name
}

const snapshotPrefix = "snapshot:"

// openMounts opens what shows in the tree, what is laid over others last. The caller
// closes it, also if there is an error.
func (rt *NodeRuntime) openMounts() (open []jail.Mount, err error) {
	s := rt.opts
	add := func(more []jail.Mount, err error) error {
		open = append(open, more...)
		return err
	}
	if s.snapshot != "" {
		root, err := rt.hold(s.snapshot)
		if err == nil {
			err = add(s.openSnapshot(root))
		}
		if err != nil {
			return open, fmt.Errorf("option Snapshot: %w", err)
		}
	}
	if s.packages != "" {
		root, err := rt.hold(s.packages)
		if err == nil {
			err = add(s.openPackages(root))
		}
		if err != nil {
			return open, fmt.Errorf("option NodeModules: %w", err)
		}
	}
	return open, add(s.openSources(rt.store))
}

// openSources opens those of the host's.
func (s settings) openSources(store string) (open []jail.Mount, err error) {
	for _, m := range s.mounts {
		if slices.Contains(s.plan.Sealed, m.Target) {
			m.Access = ReadOnly // what is the guest's it could chmod, which nothing else holds
		}
		source, err := openSource(m.Source, store, jail.DefaultStateDir)
		if err != nil {
			closeMounts(open)
			return nil, fmt.Errorf("mount %s: %w", m.Target, err)
		}
		open = append(open, jail.Mount{Source: source, Target: m.Target, Access: m.Access})
	}
	return open, nil
}

// furnish has a jail be made with the options' files and mounts.
func (s settings) furnish(spec *jail.Spec, mounts []jail.Mount) {
	spec.Mounts = mounts
	spec.Files = s.files
	if !s.readOnlyRoot {
		return
	}
	w := s.world()
	for _, dir := range slices.Concat(w.Own, w.Shared) {
		spec.ReadOnly = append(spec.ReadOnly, jail.Place{Path: dir, Tree: true})
	}
	for _, m := range mounts {
		if m.Access != ReadOnly {
			spec.Writable = append(spec.Writable, jail.Place{Path: m.Target, Tree: true})
		}
	}
}

func closeMounts(list []jail.Mount) {
	for _, m := range list {
		m.Source.Close()
	}
}

// noStorage are file systems that show the host's kernel and devices.
var noStorage = map[int64]string{
	unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs", unix.CGROUP_SUPER_MAGIC: "cgroup", unix.CGROUP2_SUPER_MAGIC: "cgroup2",
	unix.DEVPTS_SUPER_MAGIC: "devpts", unix.DEBUGFS_MAGIC: "debugfs", unix.TRACEFS_MAGIC: "tracefs", unix.SECURITYFS_MAGIC: "securityfs",
	unix.BPF_FS_MAGIC: "bpf", unix.EFIVARFS_MAGIC: "efivarfs", unix.BINFMTFS_MAGIC: "binfmt_misc", unix.NSFS_MAGIC: "nsfs",
}

var errSource = errors.New("can't be shown to a guest")

// openSource opens a folder or a file that may be shown. What it checks is what is open.
func openSource(path string, own ...string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := checkSource(f, own); err != nil {
		f.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return f, nil
}

func checkSource(f *os.File, own []string) error {
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
	// devtmpfs has the number of any tmpfs.
	for _, dir := range append([]string{"/dev"}, own...) {
		folder, err := os.OpenFile(dir, unix.O_PATH, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			dir, err = pathOf(folder)
			folder.Close()
		}
		if err != nil {
			return err
		}
		if real == "/" || overlap(real, dir) && dir != "/dev" || dir == "/dev" && isIn(real, dir) && !isIn(real, "/dev/shm") {
			return fmt.Errorf("%w: it has to do with %s", errSource, dir)
		}
	}
	return nil
}

// pathOf is where an open file is, by the kernel's word.
func pathOf(f *os.File) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
}

// overlap reports whether one of the folders is the other, or in it.
func overlap(a, b string) bool { return isIn(a, b) || isIn(b, a) }

func isIn(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
