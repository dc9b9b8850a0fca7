package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
	"gaol/vfs"
)

// options returns the runtime's options for a tree with permissions.
func (s *Service) options(t *tenant.Tenant, tree Tree, permissions json.RawMessage, cwd string) (o runtime.Options, err error) {
	o = runtime.Options{
		Image: tree.Image, Store: s.store, Cwd: cwd, ReadOnlyRoot: tree.ReadOnly, Hostname: tree.Hostname,
		Launcher: runtime.LauncherZygote, CgroupParent: s.cgroup(t),
	}
	if o.Limits, err = tree.Limits.options(); err != nil {
		return o, err
	}
	if o.Permissions, err = s.permissions(permissions, cwd); err != nil {
		return o, err
	}
	if o.Files, err = tree.files(); err != nil {
		return o, err
	}
	if images := s.settings.Load().Images; len(images) > 0 && !slices.Contains(images, orDefault(tree.Image)) {
		return o, refuse(Forbidden, "image %q: the server allows %s", tree.Image, strings.Join(images, ", "))
	}
	if strings.HasPrefix(tree.Image, "sha256:") {
		return o, refuse(Invalid, "image %q: want a name", tree.Image)
	}
	if tree.Snapshot != "" {
		if o.Snapshot, err = snapshotName(t, tree.Snapshot); err != nil {
			return o, err
		}
	}
	return o, s.addMounts(t, tree, &o)
}

// defaultImage is the name of the image of sandboxes without one.
const defaultImage = "default"

func orDefault(image string) string {
	if image == "" {
		return defaultImage
	}
	return image
}

// options returns the limits as the SDK has them.
func (l *Limits) options() (runtime.Limits, error) {
	if l == nil {
		return runtime.Limits{}, nil
	}
	if l.CPUTimeMs > maxMilliseconds {
		return runtime.Limits{}, refuse(Invalid, "cpuTimeMs: %d is more than a year", l.CPUTimeMs)
	}
	return runtime.Limits{
		Memory: roundMemory(l.Memory), CPUs: l.CPUs, CPUTime: milliseconds(l.CPUTimeMs), Pids: l.Pids, Files: l.Files,
		Disk: l.Disk, Inodes: l.Inodes, Output: l.Output, Value: l.Value,
	}, nil
}

// roundMemory rounds a memory limit up: each one in use has a Node of its own that runs are forked
// from.
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

// permissions parses a request's permissions, and checks them against the server's. Scopes that
// are omitted have the SDK's default, or the server's if that allows less.
func (s *Service) permissions(text json.RawMessage, cwd string) (policy.Permissions, error) {
	asked, err := parsePermissions(text)
	if err != nil {
		return asked, err
	}
	most := s.settings.Load().Permissions
	if cwd == "" {
		cwd = string(vfs.Workspace)
	}
	w := policy.World{Own: []string{path.Clean(cwd)}, Shared: []string{"/tmp"}, Cwd: path.Clean(cwd)}
	base := most
	if merged, err := policy.Narrow(most, policy.Default(), w); err == nil {
		base = merged
	}
	if _, err := policy.Narrow(most, asked, w); err != nil {
		return asked, &Error{Code: Forbidden, Err: fmt.Errorf("more than the server allows: %w", err)}
	}
	return asked.Over(base), nil
}

func parsePermissions(text json.RawMessage) (policy.Permissions, error) {
	if len(text) == 0 {
		return policy.Permissions{}, nil
	}
	p, err := policy.Parse(text)
	if err != nil {
		return p, &Error{Code: Invalid, Err: err}
	}
	return p, nil
}

func (t Tree) files() (map[string][]byte, error) {
	all := maps.Clone(t.FileBytes)
	if all == nil {
		all = map[string][]byte{}
	}
	for name, text := range t.Files {
		if _, twice := all[name]; twice {
			return nil, refuse(Invalid, "files: %q is also in fileBytes", name)
		}
		all[name] = []byte(text)
	}
	return all, nil
}

// snapshotName returns the name in the store of a tenant's snapshot.
func snapshotName(t *tenant.Tenant, name string) (string, error) {
	if strings.Contains(name, ":") || name == "" {
		return "", refuse(Invalid, "snapshot %q: want the name of a snapshot of yours", name)
	}
	return snapshotPrefix(t) + name, nil
}

// snapshotPrefix begins the names of a tenant's snapshots. It is a hash because the names of tenants
// and snapshots may have any length.
func snapshotPrefix(t *tenant.Tenant) string {
	sum := sha256.Sum256([]byte(t.Name))
	return "tenant-" + hex.EncodeToString(sum[:16]) + "."
}

// cgroup is the parent of a tenant's jails, so that tenants share the processors equally.
func (s *Service) cgroup(t *tenant.Tenant) string {
	return path.Join(s.cgroupParent, strings.ReplaceAll(t.Name, ":", "-"))
}

// addMounts adds the mounts of the server's machine.
func (s *Service) addMounts(_ *tenant.Tenant, tree Tree, _ *runtime.Options) error {
	if len(tree.Mounts) > 0 || tree.NodeModules != "" {
		return refuse(Forbidden, "the server does not allow mounts")
	}
	return nil
}
