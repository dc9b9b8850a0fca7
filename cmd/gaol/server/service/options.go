package service

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/vfs"
)

// options returns the runtime's options for a tree with permissions. The caller closes the folders after it has created the
// sandbox, unless there is an error.
func (s *Service) options(t *tenant.Tenant, tree requestjson.Tree, permissions policy.Permissions, cwd string) (o runtime.Options, opened folders, err error) {
	if o, err = s.optionsWithoutMounts(t, tree, permissions, cwd); err != nil {
		return o, nil, err
	}
	if s.trusted {
		o.Progress = os.Stderr // of a missing default image; the client's program shows it
	}
	if len(tree.Mounts) > 0 || isOfHost(tree.NodeModules) {
		if opened, err = s.addMounts(t, tree, &o); err != nil {
			opened.close()
		}
	}
	return o, opened, err
}

// folders are open folders of the server's machine.
type folders []*os.File

func (f folders) close() {
	for _, folder := range f {
		folder.Close()
	}
}

func (s *Service) optionsWithoutMounts(t *tenant.Tenant, tree requestjson.Tree, permissions policy.Permissions, cwd string) (o runtime.Options, err error) {
	o = s.base(t)
	o.Image, o.Cwd, o.ReadOnlyRoot, o.Hostname, o.HostPorts, o.BigInts = tree.Image, cwd, tree.ReadOnly, tree.Hostname, tree.HostPorts, tree.BigInts
	isolation, err := s.isolation(tree.Isolation)
	if err != nil {
		return o, err
	}
	isolate(&o, isolation)
	if o.Limits, err = limitOptions(tree.Limits); err != nil {
		return o, err
	}
	for _, port := range tree.HostPorts {
		if !s.settings.Load().AllowsHostPort(port) {
			return o, Refuse(Forbidden, "hostPorts: the server does not allow port %d of its machine", port)
		}
	}
	if o.Permissions, err = s.permissions(permissions, cwd, tree.Mounts); err != nil {
		return o, err
	}
	if o.Files, err = treeFiles(tree); err != nil {
		return o, err
	}
	if err := s.chooseImage(t, &o); err != nil {
		return o, err
	}
	if tree.Snapshot != "" {
		if o.Snapshot, err = s.snapshotName(t, tree.Snapshot); err != nil {
			return o, err
		}
	}
	o.NodeModulesPath = tree.NodeModules.GuestPath
	if name, ok := strings.CutPrefix(tree.NodeModules.HostPath, snapshotScheme); ok {
		name, err = s.snapshotName(t, name)
		o.NodeModules = snapshotScheme + name
	}
	return o, err
}

// snapshotScheme begins a nodeModules that names a snapshot.
const snapshotScheme = "snapshot:"

// chooseImage replaces the image that a request names by its name in the store: the tenant's own image of that name, or else
// the server's. Images that the launcher does not support have the other launcher.
func (s *Service) chooseImage(t *tenant.Tenant, o *runtime.Options) error {
	image, err := s.images.find(t, o.Image)
	if errors.Is(err, rootfs.ErrNotFound) {
		image, err = s.serverImage(o.Image)
	} else {
		o.Image = s.prefix(t) + o.Image
	}
	if image != nil && o.Launcher.Supports(image) != nil {
		o.Launcher, o.Zygote = runtime.LauncherExec, runtime.ZygoteOptions{}
	}
	return err
}

// serverImage returns an image of the server that the settings allow; nil for the default image, whose name is empty, and
// for a trusted client's missing one. It rejects references that are not names, which the SDK also accepts: a tenant could
// use images that the operator has replaced.
func (s *Service) serverImage(name string) (*rootfs.Image, error) {
	if images := s.settings.Load().Images; len(images) > 0 && !slices.Contains(images, cmp.Or(name, defaultImage)) {
		return nil, Refuse(Forbidden, "image %q: the server allows %s", name, strings.Join(images, ", "))
	}
	if name == "" {
		return nil, nil
	}
	if err := rootfs.CheckName(name); err != nil && !s.trusted {
		return nil, Refuse(Invalid, "image: %w", err)
	}
	store, err := rootfs.Open(s.store)
	if err != nil {
		return nil, err
	}
	image, err := store.Lookup(name)
	missing := errors.Is(err, rootfs.ErrNotFound) || errors.Is(err, rootfs.ErrAmbiguous)
	switch {
	case missing && s.trusted:
		return nil, nil
	case missing, err == nil && !s.trusted && (!slices.Contains(image.Names, name) || isOfTenant(name)):
		return nil, Refuse(Invalid, "image %q: the server has none of this name", name)
	}
	return image, err
}

// defaultImage is the name of the image of sandboxes without one.
const defaultImage = "default"

// limitOptions returns the limits as the SDK has them.
func limitOptions(l *requestjson.Limits) (runtime.Limits, error) {
	if l == nil {
		return runtime.Limits{}, nil
	}
	if l.CPUTimeMs > maxMilliseconds {
		return runtime.Limits{}, Refuse(Invalid, "cpuTimeMs: %d is more than a year", l.CPUTimeMs)
	}
	return runtime.Limits{
		Memory: roundMemory(l.Memory), CPUs: l.CPUs, CPUTime: milliseconds(l.CPUTimeMs), Pids: l.Pids, OpenFiles: l.OpenFiles,
		Disk: l.Disk, Files: l.Files, Output: l.Output, Value: l.Value,
	}, nil
}

// roundMemory rounds a memory limit up, so that few limits are in use: each needs a separate Node that
// runs are forked from.
func roundMemory(n int64) int64 {
	step := int64(64 << 20)
	if n > 512<<20 {
		step = 256 << 20
	}
	if n <= 0 || n > 1<<50 {
		return n
	}
	return (n + step - 1) / step * step
}

const maxMilliseconds = int64(365 * 24 * time.Hour / time.Millisecond)

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// permissions checks a request's permissions against the server's, and completes them. Scopes that
// are omitted have the SDK's default, or the server's if that allows less.
func (s *Service) permissions(asked policy.Permissions, cwd string, mounts []requestjson.Mount) (policy.Permissions, error) {
	if s.trusted {
		return asked, nil
	}
	most := s.settings.Load().Permissions
	if !most.Env.IsZero() && !asked.Env.IsZero() {
		// policy.Narrow does not compare this scope: see there.
		return asked, Refuse(Forbidden, "more than the server allows: its settings have the rules of scope env")
	}
	w, err := world(cwd, mounts)
	if err != nil {
		return asked, err
	}
	if _, err := policy.Narrow(most, asked, w); err != nil {
		return asked, &Error{Code: Forbidden, Err: fmt.Errorf("more than the server allows: %w", err)}
	}
	base := policy.Permissions{Network: defaultNetwork(most)} // of the defaults only this one denies anything
	return asked.Over(base.Over(most)), nil
}

// defaultNetwork returns the network of a request that omits it: the SDK's default, or the server's
// if that allows less. It denies everything if each of them allows something that the other denies.
func defaultNetwork(most policy.Permissions) policy.Scope {
	usual := policy.Default()
	for _, s := range []policy.Scope{usual.Network, most.Network} {
		p := policy.Permissions{Network: s}
		_, err := policy.Narrow(policy.Permissions{Network: most.Network}, p, policy.World{})
		if _, other := policy.Narrow(usual, p, policy.World{}); err == nil && other == nil {
			return s
		}
	}
	return policy.Scope{Default: policy.Deny}
}

// world describes the tree of a sandbox for package policy, as the SDK does.
func world(cwd string, mounts []requestjson.Mount) (w policy.World, err error) {
	dir, err := vfs.ParsePath(cmp.Or(cwd, string(vfs.Workspace)))
	if err != nil {
		return w, Refuse(Invalid, "cwd: %w", err)
	}
	w = policy.World{Own: vfs.Strings(vfs.Own(dir)), Shared: vfs.Strings(vfs.Shared())}
	for _, m := range mounts {
		if accesses[m.Access] != runtime.ReadOnly {
			w.Own = append(w.Own, m.Target)
		}
	}
	return w, nil
}

func treeFiles(t requestjson.Tree) (map[string][]byte, error) {
	all := map[string][]byte{}
	maps.Copy(all, t.FileBytes)
	for name, text := range t.Files {
		if _, twice := all[name]; twice {
			return nil, Refuse(Invalid, "files: %q is also in fileBytes", name)
		}
		all[name] = []byte(text)
	}
	return all, nil
}

// snapshotName returns the name in the store of a tenant's snapshot.
func (s *Service) snapshotName(t *tenant.Tenant, name string) (string, error) {
	if strings.Contains(name, ":") || name == "" {
		return "", Refuse(Invalid, "snapshot %q: want the name of a snapshot of yours", name)
	}
	return s.prefix(t) + name, nil
}

// isOfHost reports whether it is a folder of the server's machine.
func isOfHost(n requestjson.NodeModules) bool {
	return n.HostPath != "" && !strings.HasPrefix(n.HostPath, snapshotScheme)
}

// isolation returns the isolation that a request names; "" is the server's default.
func (s *Service) isolation(name string) (settings.Isolation, error) {
	set := s.settings.Load()
	if name == "" {
		return set.Allowed[0], nil
	}
	i, err := set.FindIsolation(name)
	if err == nil {
		return i, nil
	}
	code := Forbidden
	if _, _, unknown := runtime.ParseIsolation(name); unknown != nil || s.trusted {
		code = Invalid
	}
	return i, &Error{Code: code, Err: err}
}

// isolate sets the isolation of a sandbox.
func isolate(o *runtime.Options, i settings.Isolation) {
	o.Isolation, o.OCI = i.Kind, i.OCI
	if i.Kind.Check(runtime.FeatureZygote) != nil {
		o.Launcher, o.Zygote = runtime.LauncherExec, runtime.ZygoteOptions{}
	}
}

// bounded returns a time that a request asks for, which must not exceed the server's; zero is the
// server's.
func bounded(name string, asked, most int64) (time.Duration, error) {
	if asked > most {
		return 0, Refuse(Invalid, "%s: %d is more than the server's %d", name, asked, most)
	}
	return milliseconds(cmp.Or(asked, most)), nil
}
