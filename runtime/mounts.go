package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs"
)

// Access is a guest's access to a mounted folder of the host.
type Access = sandbox.Access

// The accesses.
const (
	ReadOnly = sandbox.ReadOnly // the zero value

	// The guest changes a copy, which counts as its own files (Limits.Disk). Only folders can
	// be mounted like this. Options.Files gives the guest a copy of a single file.
	CopyOnWrite = sandbox.CopyOnWrite

	// The guest changes the host's files. Limits do not bound its writes there, and the
	// length of a file anywhere in the tree, including holes, is no longer limited to
	// Limits.Disk.
	ReadWrite = sandbox.ReadWrite
)

// Mount makes a folder or a file of the host visible in the tree. Create checks and opens it
// once; if its path is replaced later, the mount still shows the old file. Files of the folder's
// owner appear as the guest's, and files that the guest creates belong to that owner, if the kernel
// supports that (idmapped mounts) for the file system. Otherwise files of a read-only mount
// appear as owned by an unmapped user, and other accesses are refused. File systems mounted below
// Source are not visible. Sockets are visible, but the guest cannot connect to listening processes
// of the host, unless Options.UnixSockets allows it and Access is not CopyOnWrite.
type Mount struct {
	// Source is a path of the host. Create refuses "/"; the store in use, the default store,
	// and /run/gaol, where active jails are registered, with everything inside them and the
	// folders that contain them; and file systems that are not storage: /proc, /sys and /dev,
	// except for /dev/shm, and others of their types elsewhere.
	//
	// The guest can read the path of Source inside its file system, unless Access is
	// CopyOnWrite or the folder is NodeModules: the fourth field of /proc/self/mountinfo has
	// it, beside the device, type and options of the file system. Do not put secrets in the
	// path. If Source is the root of a file system, the path is "/".
	Source string

	// Target is an absolute path in the guest's tree, which is created if it is missing. If it
	// is below another mount, missing parts of the path are created in that mount: in the
	// host's folder, permanently, with the guest's rights and as its own, if that is ReadWrite;
	// in the guest's copy if it is CopyOnWrite; and if it is ReadOnly, Create fails with
	// [gaol/jail.ErrNotInMount]. The same applies to Cwd, NodeModules, Files and Folders below a
	// mount. Links in the other mount are not followed. Nothing can be mounted in /proc, /dev
	// and /usr/libexec/gaol.
	Target string

	Access Access
}

// MountUser is a user of the host, with groups.
type MountUser struct {
	UID, GID int

	// Groups are further groups of the user. In a mount whose source has one of them, the guest
	// is a member of this group instead of GID. A guest is never a member of two groups: what
	// only another group may access is denied, and a file that denies access to one of the
	// user's groups, but allows it to all others, is accessible.
	Groups []int
}

// owner returns the ids that appear as the guest's in the mount of a source: nil for its owner's.
func (u *MountUser) owner(source *os.File) (*sandbox.Owner, error) {
	if u == nil {
		return nil, nil
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &info); err != nil {
		return nil, err
	}
	owner := &sandbox.Owner{UID: u.UID, GID: u.GID}
	if slices.Contains(u.Groups, int(info.Gid)) {
		owner.GID = int(info.Gid)
	}
	return owner, nil
}

// validate rejects ids that the kernel does not have.
func (u *MountUser) validate() error {
	if u == nil {
		return nil
	}
	for _, id := range append([]int{u.UID, u.GID}, u.Groups...) {
		if id < 0 || id >= math.MaxUint32 {
			return optionError("MountUser", "%d is not a user or group", id)
		}
	}
	return nil
}

// nodeModules is the name of folders in which programs find packages.
const nodeModules = "node_modules"

// modulesPath returns where NodeModules is mounted.
func (o Options) modulesPath(cwd vfs.Path) (vfs.Path, error) {
	if o.NodeModulesPath == "" {
		return cwd.Join(nodeModules), nil
	}
	at, err := vfs.ParsePath(o.NodeModulesPath)
	if err == nil && o.NodeModules == "" {
		err = errors.New("there is no NodeModules to show")
	}
	return at, ofOption("NodeModulesPath", err)
}

// mounts returns the mounts of the options, the one for NodeModules last, which is at modules.
func (o Options) mounts(modules vfs.Path) ([]Mount, error) {
	list := slices.Clone(o.Mounts)
	switch {
	case o.NodeModules == snapshotPrefix:
		return nil, optionError("NodeModules", "%q names no snapshot: write %sNAME", o.NodeModules, snapshotPrefix)
	case o.NodeModules != "" && packagesOf(o.NodeModules) == "":
		if !filepath.IsAbs(o.NodeModules) {
			return nil, optionError("NodeModules", "%q: neither an absolute path nor %sNAME", o.NodeModules, snapshotPrefix)
		}
		list = append(list, Mount{Source: o.NodeModules, Target: string(modules)})
	}
	seen := map[string]bool{}
	for _, m := range list {
		target, err := vfs.ParsePath(m.Target)
		switch {
		case err != nil:
			return nil, optionError("Mounts", "%w", err)
		case seen[m.Target]:
			return nil, optionError("Mounts", "%s twice", target)
		case m.Access < ReadOnly || m.Access > ReadWrite:
			return nil, optionError("Mounts", "%s: access %d is not valid", target, m.Access)
		case !filepath.IsAbs(m.Source):
			return nil, optionError("Mounts", "source %q: not an absolute path", m.Source)
		}
		if err := checkReserved(target, reservedForMounts); err != nil {
			return nil, optionError("Mounts", "%w", err)
		}
		seen[m.Target] = true
	}
	return list, nil
}

// reservedForMounts are folders that every jail fills itself. /sys is not among them: a mount
// may provide files in it that programs look for.
var reservedForMounts = []vfs.Path{"/proc", "/dev", guest.Dir, sandbox.ProgramDir}

// checkReserved returns an error if p is, or is inside, one of the folders.
func checkReserved(p vfs.Path, folders []vfs.Path) error {
	for _, dir := range folders {
		if isIn(p, dir) {
			return fmt.Errorf("%s: %s is the jail's own, and holds nothing else: choose another place, such as one in %s", p, dir, vfs.Workspace)
		}
	}
	return nil
}

// packagesOf returns the name of the snapshot in NodeModules, or "".
func packagesOf(nodeModules string) string {
	if name, ok := strings.CutPrefix(nodeModules, snapshotPrefix); ok {
		return name
	}
	return ""
}

const snapshotPrefix = "snapshot:"

// openMounts adds all mounts to spec in the order in which they are made: Options.Mounts last, because
// they may be inside the folders of a snapshot. The caller must close them, even if there is an
// error.
func (rt *NodeRuntime) openMounts(spec *sandbox.Spec) error {
	s := rt.opts
	if s.Snapshot != "" {
		if err := rt.openSnapshot(spec); err != nil {
			return optionError("Snapshot", "%w", err)
		}
	}
	if s.packages != "" {
		if err := rt.openPackages(spec); err != nil {
			return optionError("NodeModules", "%w", err)
		}
	}
	return s.openSources(spec, rt.store)
}

// openSources adds the mounts of the host's files.
func (s settings) openSources(spec *sandbox.Spec, store string) error {
	private := []string{store, sandbox.StateDir, rootfs.DefaultDir}
	for i, m := range s.Mounts {
		packages := s.hostPackages && i == len(s.Mounts)-1
		source, err := openSource(m.Source, private)
		if err == nil {
			opened := sandbox.Mount{Source: source, Target: m.Target, Access: s.access(m), Overlay: s.throughOverlay(m)}
			opened.Owner, err = s.MountUser.owner(source)
			spec.Mounts = append(spec.Mounts, opened)
		}
		switch {
		case err == nil && isFolder(source):
		case err == nil && packages:
			err = fmt.Errorf("%s: %w", m.Source, unix.ENOTDIR)
		case err == nil && s.access(m) == CopyOnWrite:
			err = fmt.Errorf("source %s: it is a file, and only a folder can be copy-on-write: mount it read-only, or give the guest a copy by option Files (--file)", m.Source)
		}
		if err != nil && packages {
			return &OptionError{"NodeModules", err}
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	return nil
}

// access returns the access that the guest has to a mount. One in which it may change nothing
// is read-only: otherwise the guest could chmod its own files.
func (s settings) access(m Mount) Access {
	if s.sealed(m.Target) && len(s.writable(m.Target)) == 0 {
		return ReadOnly
	}
	return m.Access
}

// throughOverlay reports whether the guest sees a mount through an overlay, where it cannot
// connect to sockets of the host. Packages are mounted like this because popular ones use
// unix sockets, and they need not show later changes of the host.
func (s settings) throughOverlay(m Mount) bool {
	return m.Access == CopyOnWrite || s.hostPackages && m.Target == string(s.modules)
}

// configureMounts adds the files, and the paths that the mounts need. Options.Mounts are the last in
// spec.Mounts.
func (s settings) configureMounts(spec *sandbox.Spec) {
	cwd := string(s.cwd)
	if slices.ContainsFunc(spec.Mounts, func(m sandbox.Mount) bool { return m.Target != cwd && isIn(cwd, m.Target) }) {
		spec.Make = append(spec.Make, policy.Place{Path: cwd, Tree: true})
	}
	s.seal(spec)
	if !s.ReadOnlyRoot {
		return
	}
	readOnly := vfs.Strings(slices.Concat(vfs.Own(s.cwd), vfs.Shared()))
	for _, m := range spec.Mounts[len(spec.Mounts)-len(s.Mounts):] {
		if m.Access != ReadOnly {
			spec.Writable = append(spec.Writable, policy.Place{Path: m.Target, Tree: isFolder(m.Source)})
			readOnly = slices.DeleteFunc(readOnly, func(dir string) bool { return isIn(dir, m.Target) })
		}
	}
	for _, dir := range readOnly {
		spec.ReadOnly = append(spec.ReadOnly, policy.Place{Path: dir, Tree: true})
	}
}

// seal makes sealed mounts read-only except where the guest may change something.
func (s settings) seal(spec *sandbox.Spec) {
	for _, m := range spec.Mounts {
		if m.Access == ReadOnly || !s.sealed(m.Target) {
			continue
		}
		spec.ReadOnly = append(spec.ReadOnly, policy.Place{Path: m.Target, Tree: true})
		spec.Writable = append(spec.Writable, s.writable(m.Target)...)
		for _, inner := range spec.Mounts {
			if inner.Access != ReadOnly && inner.Target != m.Target && isIn(inner.Target, m.Target) && !s.sealed(inner.Target) {
				spec.Writable = append(spec.Writable, policy.Place{Path: inner.Target, Tree: isFolder(inner.Source)})
			}
		}
	}
}

func (s settings) sealed(dir string) bool { return slices.Contains(s.plan.Sealed, dir) }

// writable returns the places in a folder where the guest may change something.
func (s settings) writable(dir string) (list []policy.Place) {
	for _, g := range s.plan.Grants {
		if isIn(g.Place.Path, dir) && slices.ContainsFunc(g.Operations, changes) {
			list = append(list, g.Place)
		}
	}
	return list
}

// changes reports whether a read-only mount refuses the operation.
func changes(op policy.Operation) bool {
	return sandbox.Creates(op) || op == "rm" || op == "rename" || op == "truncate"
}

func isFolder(f fs.File) bool {
	info, err := f.Stat()
	return err == nil && info.IsDir()
}

func closeMounts(list []sandbox.Mount) {
	for _, m := range list {
		_ = m.Source.Close()
	}
}
