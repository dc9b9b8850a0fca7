package runtime

import (
	"fmt"
	"path/filepath"
	"strings"

	"gaol/runtime/isolation"
)

// Isolation is what confines the processes of a sandbox. Programs and permissions work alike
// in all of them; docs/isolation.md lists the differences.
type Isolation int

const (
	// IsolationNative is gaol's own jail: package jail makes its namespaces, cgroups, filters
	// and mounts.
	IsolationNative Isolation = iota

	// IsolationOCI is a container that an OCI runtime makes, such as runc: see OCIOptions.
	// Each run starts a new Node in it, as with LauncherExec.
	IsolationOCI
)

// String returns "native" or "oci".
func (i Isolation) String() string { return nameOf(i, "native", "oci") }

// OCIOptions are options of IsolationOCI.
type OCIOptions struct {
	// Runtime is the runtime's program: "runc", "crun", or an absolute path. runc is looked
	// up beside the running program, where `make build` leaves it, then in PATH. Empty: runc.
	Runtime string

	// SystemdCgroup makes systemd start a scope for the container, gaol-*.scope in
	// system.slice. It holds the container's pid 1; runs have their own cgroups below
	// Options.CgroupParent, which have the limits. Without it the container's cgroup is below
	// Options.CgroupParent, too.
	SystemdCgroup bool
}

// systemdSuffix follows a runtime's name if SystemdCgroup is set.
const systemdSuffix = "+systemd"

// ParseIsolation parses the command line's name of an isolation: "native" or "", "runc", "crun",
// or "oci=" and the absolute path of an OCI runtime. The suffix "+systemd" of an OCI runtime sets
// SystemdCgroup.
func ParseIsolation(name string) (Isolation, OCIOptions, error) {
	program, systemd := strings.CutSuffix(name, systemdSuffix)
	path, isPath := strings.CutPrefix(program, "oci=")
	switch {
	case name == "" || name == "native":
		return IsolationNative, OCIOptions{}, nil
	case program == "runc" || program == "crun":
		return IsolationOCI, OCIOptions{Runtime: program, SystemdCgroup: systemd}, nil
	case isPath && filepath.IsAbs(path):
		return IsolationOCI, OCIOptions{Runtime: path, SystemdCgroup: systemd}, nil
	case isPath:
		return 0, OCIOptions{}, fmt.Errorf("isolation %q: the path of the OCI runtime is not absolute", name)
	}
	return 0, OCIOptions{}, fmt.Errorf("isolation %q: not one of native, runc, crun and oci=/path", name)
}

func (o Options) checkIsolation() error {
	switch {
	case o.Isolation < IsolationNative || o.Isolation > IsolationOCI:
		return optionError("Isolation", "%v does not exist", o.Isolation)
	case o.OCI != (OCIOptions{}):
		if err := o.Isolation.Check(isolation.OCIRuntime); err != nil {
			return optionError("OCI", "%w", err)
		}
	}
	if r := o.OCI.Runtime; r != "" && r != "runc" && r != "crun" && !filepath.IsAbs(r) {
		return optionError("OCI", "Runtime %q is not runc, crun or an absolute path", r)
	}
	if o.Zygote != (ZygoteOptions{}) {
		if err := o.Isolation.Check(isolation.Zygote); err != nil {
			return optionError("Zygote", "%w", err)
		}
	}
	return nil
}

// Check returns a *[isolation.UnsupportedError] if the isolation lacks a feature.
func (i Isolation) Check(f isolation.Feature) error {
	return isolation.Check(isolation.Name(i.String()), f)
}

// launcher returns the launcher that the isolation has.
func (o Options) launcher() Launcher {
	if o.Launcher == LauncherZygote && o.Isolation.Check(isolation.Zygote) != nil {
		return LauncherExec
	}
	return o.Launcher
}
