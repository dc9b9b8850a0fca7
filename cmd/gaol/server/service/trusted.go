package service

import (
	"path/filepath"
	"strings"

	"gaol/runtime"
)

// trust prepares the service for a client that is trusted like root, as a program that embeds gaol is:
// nothing has to be divided between tenants. Jails are in a cgroup that other programs may use, too.
func (s *Service) trust(cgroupParent string) {
	s.tenants.parent, s.tenants.shared = cgroupParent, true
	s.quotas.DisableTurns()
}

// addTrustedMounts adds the mounts of a trusted client to the options. Like those of the SDK, they belong
// to the owners of the folders.
func addTrustedMounts(tree Tree, o *runtime.Options) error {
	absolute := func(path string) error { // the client may have another working directory
		if !filepath.IsAbs(path) {
			return refuse(Invalid, "mount %q: want an absolute path", path)
		}
		return nil
	}
	for _, m := range tree.Mounts {
		if err := absolute(m.Source); err != nil {
			return err
		}
		o.Mounts = append(o.Mounts, runtime.Mount{Source: m.Source, Target: m.Target, Access: accesses[m.Access]})
	}
	if !isOfHost(tree.NodeModules) {
		return nil
	}
	o.NodeModules = tree.NodeModules.HostPath
	return absolute(o.NodeModules)
}

// isOwnSnapshot reports whether a snapshot in the store is one of this service's tenants.
func (s *Service) isOwnSnapshot(name string) bool {
	return strings.HasPrefix(name, allSnapshots) != s.trusted
}
