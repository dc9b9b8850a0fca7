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
	"gaol/rootfs"
	"gaol/vfs"
)

// Access is what a guest may do with a folder of the host's.
type Access = jail.Access

// The accesses.
const (
	ReadOnly = jail.ReadOnly // the zero value

	// The guest changes a copy, which counts as its own files (Limits.Disk). Only a folder
	// can be shown so. Of one file, Options.Files gives the guest a copy.
	CopyOnWrite = jail.CopyOnWrite

	// The guest changes the host's files. Limits don't bound what it writes there, and the
	// length of a file anywhere in the tree, holes included, is no longer bound to Limits.Disk.
	ReadWrite = jail.ReadWrite
)

// Mount shows a folder or a file of the host in the tree. It is opened once, when Create
// checks it: what its path leads to later is no matter. What belongs to its owner, the
// guest sees as its own, and what the guest makes belongs to that owner, where the
// kernel can do that for its file system; elsewhere files of a read-only mount show as
// nobody's, and the other accesses are refused. Of mounts below Source nothing shows.
// Sockets show, but the guest can't connect to those that processes of the host listen on,
// unless Options.UnixSockets allows it and Access is not CopyOnWrite.
type Mount struct {
	// Source is a path of the host. Refused are "/"; the store in use, the one that is used
	// where none is named, and /run/gaol, where live jails are registered, with all that is
	// in them and the folders above them; and what is no storage: /proc, /sys and /dev, but
	// for /dev/shm, and such file systems elsewhere.
	//
	// The guest can read where Source is in its file system, unless Access is CopyOnWrite
	// (or the folder is NodeModules):
	// /proc/self/mountinfo has the path in its fourth field, and the device, type and options
	// of the file system, as /proc/self/mounts has them. Do not put
	// secrets in the path; where Source is the root of a file system, the path is "/".
	Source string

	// Target is where it is to be: an absolute path in the guest's tree, made if
	// missing. A mount below another's is laid over that: then what is missing of the
	// path is made in the host's folder if that is ReadWrite, with the guest's rights
	// and as its own, and stays there; in the guest's copy if it is CopyOnWrite; and if
	// it is ReadOnly, Create fails with [jail.ErrNotInMount]. The same goes for Cwd,
	// NodeModules, Files and Folders below a mount. No link of the source is followed.
	// In /proc, /dev and /usr/libexec/gaol nothing can be mounted.
	Target string

	Access Access
}

// nodeModules is where NodeModules shows: ESM and CommonJS look there from every
// program in the working directory.
const nodeModules = "node_modules"

// mounts are those of the options as the tree has them.
func (o Options) mounts(cwd vfs.Path) ([]Mount, error) {
	list := slices.Clone(o.Mounts)
	switch {
	case o.NodeModules == snapshotPrefix:
		return nil, optionError("NodeModules", "%q names no snapshot: write %sNAME", o.NodeModules, snapshotPrefix)
	case o.NodeModules != "" && packagesOf(o.NodeModules) == "":
		if !filepath.IsAbs(o.NodeModules) {
			return nil, optionError("NodeModules", "%q: neither an absolute path nor %sNAME", o.NodeModules, snapshotPrefix)
		}
		list = append(list, Mount{Source: o.NodeModules, Target: string(cwd.Join(nodeModules))})
	}
	seen := map[string]bool{}
	for _, m := range list {
		target, err := vfs.ParsePath(m.Target)
		switch {
		case err != nil:
			return nil, optionError("Mounts", "%w", err)
		case seen[m.Target]:
			return nil, optionError("Mounts", "%s twice", target)
		case ownedBy(target, jailsOwn) != "":
			return nil, optionError("Mounts", "%s: %w", target, &ownError{ownedBy(target, jailsOwn)})
		case m.Access < ReadOnly || m.Access > ReadWrite:
			return nil, optionError("Mounts", "%s: there is no access %d", target, m.Access)
		case !filepath.IsAbs(m.Source):
			return nil, optionError("Mounts", "source %q: not an absolute path", m.Source)
		}
		seen[m.Target] = true
	}
	return list, nil
}

// jailsOwn are places that are the jail's own in every tree. There is no /sys, and in it
// a mount may show what programs look for.
var jailsOwn = []vfs.Path{"/proc", "/dev", vfs.Path(strings.TrimSuffix(guestFolder, "/"))}

// ownedBy is the one of the places that a path is, or is in; "" if it is free.
func ownedBy(p vfs.Path, places []vfs.Path) vfs.Path {
	for _, place := range places {
		if isIn(string(p), string(place)) {
			return place
		}
	}
	return ""
}

// ownError says that nothing of the caller's can be in a place.
type ownError struct{ place vfs.Path }

func (e *ownError) Error() string {
	return fmt.Sprintf("%s is the jail's own, and holds nothing else: choose another place, such as one in %s", e.place, vfs.Workspace)
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
			return open, optionError("Snapshot", "%w", err)
		}
	}
	if s.packages != "" {
		root, err := rt.hold(s.packages)
		if err == nil {
			err = add(s.openPackages(root))
		}
		if err != nil {
			return open, optionError("NodeModules", "%w", err)
		}
	}
	return open, add(s.openSources(rt.store))
}

var errCopyOfFile = errors.New("it is a file, and only a folder can be copy-on-write: have it read-only, or give the guest a copy by option Files (--file)")

// openSources opens those of the host's.
func (s settings) openSources(store string) (open []jail.Mount, err error) {
	own := []string{store, jail.DefaultStateDir}
	if usual, err := rootfs.DefaultDir(); err == nil { // otherwise there is none: no home folder
		own = append(own, usual)
	}
	for i, m := range s.mounts {
		overlay := s.throughOverlay(m)
		packages := s.hostPackages && i == len(s.mounts)-1
		if s.sealed(m.Target) && len(s.changed(m.Target)) == 0 {
			m.Access = ReadOnly // what is the guest's it could chmod, which nothing else holds
		}
		source, err := openSource(m.Source, own)
		if err == nil && packages && !isFolder(source) {
			source.Close()
			err = fmt.Errorf("%s: %w", m.Source, unix.ENOTDIR)
		}
		if err != nil {
			closeMounts(open)
			if packages {
				return nil, &OptionError{"NodeModules", err}
			}
			return nil, fmt.Errorf("mount %s: %w", m.Target, err)
		}
		open = append(open, jail.Mount{Source: source, Target: m.Target, Access: m.Access, Overlay: overlay})
		if m.Access == CopyOnWrite && !isFolder(source) {
			closeMounts(open)
			return nil, fmt.Errorf("mount %s: source %s: %w", m.Target, m.Source, errCopyOfFile)
		}
	}
	return open, nil
}

// throughOverlay reports whether the guest sees a mount through an overlay, where sockets
// of the host can't be connected to. Packages are mounted so because popular ones use
// sockets of their own; they need not show what the host changes later.
func (s settings) throughOverlay(m Mount) bool {
	return m.Access == CopyOnWrite || s.hostPackages && m.Target == string(s.cwd.Join(nodeModules))
}

// furnish has a jail be made with the options' files and mounts, of which those of
// Options.Mounts come last.
func (s settings) furnish(spec *jail.Spec, mounts []jail.Mount) {
	spec.Mounts = mounts
	spec.Files = s.files
	cwd := string(s.cwd)
	if slices.ContainsFunc(mounts, func(m jail.Mount) bool { return m.Target != cwd && isIn(cwd, m.Target) }) {
		spec.Make = append(slices.Clone(spec.Make), jail.Place{Path: cwd, Tree: true})
	}
	s.seal(spec, mounts)
	if !s.readOnlyRoot {
		return
	}
	fixed := texts(slices.Concat(vfs.Own(s.cwd), vfs.Shared()))
	for _, m := range mounts[len(mounts)-len(s.mounts):] {
		if m.Access != ReadOnly {
			spec.Writable = append(spec.Writable, jail.Place{Path: m.Target, Tree: isFolder(m.Source)})
			fixed = slices.DeleteFunc(fixed, func(dir string) bool { return isIn(dir, m.Target) })
		}
	}
	for _, dir := range fixed {
		spec.ReadOnly = append(spec.ReadOnly, jail.Place{Path: dir, Tree: true})
	}
}

// seal has sealed mounts that are not read-only as a whole be so but where the guest may
// change something.
func (s settings) seal(spec *jail.Spec, mounts []jail.Mount) {
	for _, m := range mounts {
		if m.Access == ReadOnly || !s.sealed(m.Target) {
			continue
		}
		spec.ReadOnly = append(spec.ReadOnly, jail.Place{Path: m.Target, Tree: true})
		spec.Writable = append(spec.Writable, s.changed(m.Target)...)
		for _, inner := range mounts {
			if inner.Access != ReadOnly && inner.Target != m.Target && isIn(inner.Target, m.Target) && !s.sealed(inner.Target) {
				spec.Writable = append(spec.Writable, jail.Place{Path: inner.Target, Tree: isFolder(inner.Source)})
			}
		}
	}
}

func (s settings) sealed(dir string) bool { return slices.Contains(s.plan.Sealed, dir) }

// changed are the places in a folder where the guest may change something.
func (s settings) changed(dir string) (list []jail.Place) {
	for _, g := range s.plan.Grants {
		if isIn(g.Place.Path, dir) && slices.ContainsFunc(g.Operations, changes) {
			list = append(list, jail.Place(g.Place))
		}
	}
	return list
}

func isFolder(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.IsDir()
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
	unix.SELINUX_MAGIC: "selinuxfs", unix.SMACK_MAGIC: "smackfs", unix.PSTOREFS_MAGIC: "pstore", unix.RDTGROUP_SUPER_MAGIC: "resctrl",
	unix.XENFS_SUPER_MAGIC: "xenfs",
}

// noStorageDirs have such file systems in them, and some whose type tells nothing:
// devtmpfs has the number of any tmpfs, which the folder of the cgroups is, too.
var noStorageDirs = []string{"/proc", "/sys", "/dev"}

var errSource = errors.New("can't be shown to a guest")

// openSource opens a folder or a file that may be shown. What it checks is what is open.
func openSource(path string, own []string) (*os.File, error) {
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
	if real == "/" {
		return fmt.Errorf("%w: it is all that the host has. Name the folders that the guest needs", errSource)
	}
	for _, dir := range noStorageDirs {
		if isIn(real, dir) && !isIn(real, "/dev/shm") {
			return fmt.Errorf("%w: it is in %s, which shows the host's kernel and devices", errSource, dir)
		}
	}
	for _, dir := range own {
		if dir, err = whereIs(dir); err != nil {
			return err
		}
		if overlap(real, dir) {
			return fmt.Errorf("%w: it has to do with %s, where gaol keeps its images or its state. Name another folder, or one beside that", errSource, dir)
		}
	}
	return nil
}

// whereIs is where a folder is, links followed, or would be if it is not there: who could
// make it would have it.
func whereIs(dir string) (string, error) {
	folder, err := os.OpenFile(dir, unix.O_PATH, 0)
	if errors.Is(err, os.ErrNotExist) && dir != "/" {
		above, err := whereIs(filepath.Dir(dir))
		return filepath.Join(above, filepath.Base(dir)), err
	}
	if err != nil {
		return "", err
	}
	defer folder.Close()
	return pathOf(folder)
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
