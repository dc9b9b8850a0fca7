package runtime

import (
	"cmp"
	"context"
	"slices"

	"gaol/internal/ociruntime"
	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs"
)

// spec describes the runtime's sandbox. The caller must close the mounts, even if there is an
// error.
func (rt *NodeRuntime) spec() (spec sandbox.Spec, err error) {
	s := rt.opts
	if err := checkReserved(s.cwd, reservedForFiles); err != nil {
		return spec, optionError("Cwd", "%w", err)
	}
	spec = sandbox.Spec{
		Spec: jail.Spec{
			Tree: jail.Tree{
				Image:      s.image,
				OneOverlay: s.oneOverlay,
				Owned:      s.owned,
				Layer:      guest.Files(),
				Dirs:       vfs.Strings(vfs.Own(s.cwd)),
				Files:      s.files,
				Disk:       s.Limits.Disk,
				Inodes:     s.Limits.Files,
				Commands:   s.commandNames(),
			},
			Hostname:     s.Hostname,
			Limits:       cgroup.Limits{Memory: s.Limits.Memory, CPUs: s.Limits.CPUs, Pids: s.Limits.Pids},
			CgroupParent: s.CgroupParent,
		},
		OpenFiles:     s.Limits.OpenFiles,
		UnixSockets:   s.UnixSockets,
		Plan:          s.plan,
		Permissions:   s.Permissions,
		World:         s.tree().World(),
		AllowDegraded: s.AllowDegraded,
		AuditDenials:  s.AuditDenials,
	}
	if s.Limits.onDisk() {
		spec.DiskDir = rt.store
	}
	if s.Isolation == IsolationOCI {
		path, err := ociruntime.Find(s.OCI.Runtime)
		if err != nil {
			return spec, optionError("OCI", "%w", err)
		}
		spec.OCI = &jail.OCIRuntime{Path: path, SystemdCgroup: s.OCI.SystemdCgroup}
	}
	// The tree bounds its own size. The limit of a file's length is for sparse files, which
	// occupy nothing but are read as zeros. A folder of the host that the guest writes to has
	// no such limit, and the kernel has only one for all files of a process.
	if !s.writesHost() {
		spec.FileSize = s.Limits.Disk
	}
	if s.Launcher == LauncherZygote {
		spec.Warm, spec.Park = s.warm(), max(0, cmp.Or(s.Zygote.Park, defaultPark))
	}
	if err = rt.openMounts(&spec); err == nil {
		s.configureMounts(&spec)
	}
	return spec, err
}

// writesHost reports whether guests can write to folders of the host.
func (s *settings) writesHost() bool {
	return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Access == ReadWrite })
}

// Resources counts the processes, descriptors and sockets of a runtime's active runs, and the content
// of its tree.
type Resources = jail.Resources

// Resources counts the resources that the runtime uses now. Guests may change them meanwhile. At
// most 16,384 descriptors are inspected.
func (rt *NodeRuntime) Resources(ctx context.Context) (_ Resources, err error) {
	defer wrap(&err, "resources")
	ctx, done, err := rt.beginCall(ctx)
	if err != nil {
		return Resources{}, err
	}
	defer done()
	r, err := rt.sandbox.Resources(ctx)
	return r, rt.orEnded(err)
}
