package runtime

import (
	"fmt"
	"path/filepath"
	"strings"

	"gaol/policy"
	"gaol/runtime/internal/sandbox/native"
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

	// IsolationRemote is gaol's own jail, made by an agent: gaol in another process, which is found in PATH. It confines no better
	// than IsolationNative, and is for tests of how sandboxes on other machines are reached.
	IsolationRemote

	// IsolationGVisor is gaol's own jail inside gVisor, a kernel in a process, which runsc starts: it is looked up beside the
	// running program, where `make gvisor` leaves it, then in PATH, as is gaol, of which an agent runs in gVisor. Limits.CPUs bound
	// all runs together, and Limits.Memory is checked 20 times a second; a cgroup of the host bounds both for the whole sandbox.
	IsolationGVisor

	// IsolationMicroVM is gaol's own jail in a virtual machine with its own Linux kernel, which QEMU runs. QEMU and mkfs.erofs are looked
	// up in PATH, as is gaol, of which an agent runs in the machine, and the kernel beside gaol, where `make microvm` leaves it. The
	// memory of all runs together is bounded by the machine's, which is made for one.
	IsolationMicroVM
)

// String returns "native", "oci", "remote", "gvisor" or "microvm".
func (i Isolation) String() string { return nameOf(i, "native", "oci", "remote", "gvisor", "microvm") }

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

// ParseIsolation parses the command line's name of an isolation: "native" or "", "gvisor", "microvm", "remote", "runc", "crun",
// or "oci=" and the absolute path of an OCI runtime. The suffix "+systemd" of an OCI runtime sets
// SystemdCgroup.
func ParseIsolation(name string) (Isolation, OCIOptions, error) {
	program, systemd := strings.CutSuffix(name, systemdSuffix)
	path, isPath := strings.CutPrefix(program, "oci=")
	switch {
	case name == "" || name == "native":
		return IsolationNative, OCIOptions{}, nil
	case name == "remote":
		return IsolationRemote, OCIOptions{}, nil
	case name == "gvisor":
		return IsolationGVisor, OCIOptions{}, nil
	case name == "microvm":
		return IsolationMicroVM, OCIOptions{}, nil
	case program == "runc" || program == "crun":
		return IsolationOCI, OCIOptions{Runtime: program, SystemdCgroup: systemd}, nil
	case isPath && filepath.IsAbs(path):
		return IsolationOCI, OCIOptions{Runtime: path, SystemdCgroup: systemd}, nil
	case isPath:
		return 0, OCIOptions{}, fmt.Errorf("isolation %q: the path of the OCI runtime is not absolute", name)
	}
	return 0, OCIOptions{}, fmt.Errorf("isolation %q: not one of native, gvisor, microvm, runc, crun and oci=/path", name)
}

func (o Options) checkIsolation() error {
	switch {
	case o.Isolation < IsolationNative || o.Isolation > IsolationMicroVM:
		return optionError("Isolation", "%v does not exist", o.Isolation)
	case o.OCI != (OCIOptions{}):
		if err := o.Isolation.Check(FeatureOCI); err != nil {
			return optionError("OCI", "%w", err)
		}
	}
	if r := o.OCI.Runtime; r != "" && r != "runc" && r != "crun" && !filepath.IsAbs(r) {
		return optionError("OCI", "Runtime %q is not runc, crun or an absolute path", r)
	}
	if err := o.Isolation.Check(FeatureAudit); o.AuditDenials && err != nil {
		return optionError("AuditDenials", "%w", err)
	}
	if err := o.Isolation.Check(FeatureFiles); o.Limits.Files != 0 && o.Limits.Files != DefaultLimits().Files && err != nil {
		return optionError("Limits", "%w", err)
	}
	if err := o.Isolation.Check(FeatureMounts); len(o.Mounts) > 0 && err != nil {
		return optionError("Mounts", "%w", err)
	} else if o.NodeModules != "" && err != nil {
		return optionError("NodeModules", "%w", err)
	} else if o.Snapshot != "" && err != nil {
		return optionError("Snapshot", "%w", err)
	}
	if err := o.Isolation.Check(FeatureCommands); o.Commands != nil && err != nil {
		return optionError("Commands", "%w", err)
	}
	if o.Zygote != (ZygoteOptions{}) {
		return ofOption("Zygote", o.Isolation.Check(FeatureZygote))
	}
	return nil
}

// Feature is an option that not all isolations support.
type Feature string

// The features, named as in this package.
const (
	FeatureZygote Feature = "LauncherZygote" // also Options.Zygote
	FeaturePark   Feature = "PoolOptions.Park"
	FeatureOCI    Feature = "Options.OCI"
	FeatureDerive Feature = "StepRunner"
	FeatureAudit  Feature = "Options.AuditDenials"
	FeaturePause  Feature = "Pause" // and Resume

	FeatureCommands  Feature = "Options.Commands"
	FeatureLandlock  Feature = "Options.Permissions with rules that Landlock enforces" // unless AllowDegraded omits them
	FeatureLocalhost Feature = "RunOptions.Permissions that deny localhost in a runtime with external hosts"
	FeatureExec      Feature = "LauncherExec, Command and Spawn with permissions that deny childProcess"
	FeatureMounts    Feature = "Options.Mounts" // also NodeModules and Snapshot
	FeatureFiles     Feature = "Limits.Files"   // other than the default, which is not enforced then
)

// lacking are the features that an isolation lacks, with the reason.
var lacking = map[Isolation]map[Feature]string{
	IsolationNative: {FeatureOCI: "it lacks an OCI runtime"},
	IsolationOCI: {
		FeatureZygote: "each run is started by the OCI runtime, with a new Node",
		FeaturePark:   "no process can wait in the container for its program, because each run is started by the OCI runtime",
		FeatureDerive: "the container's programs run with the host's rights, so no guest may own them",
	},
	IsolationRemote: {
		FeatureOCI:    "its agent makes jails itself",
		FeatureDerive: "images are made on the host",
		FeatureAudit:  "the audit log is the host's",
	},
	IsolationGVisor: {
		FeatureOCI:       "its agent makes jails itself",
		FeatureDerive:    "images are made on the host",
		FeatureAudit:     "its kernel lacks an audit log",
		FeaturePause:     "its kernel lacks the freezer of cgroups",
		FeatureCommands:  "its kernel does not notify of system calls, by which programs call commands of the host",
		FeatureLandlock:  "its kernel lacks Landlock, so mounts and filters of system calls enforce all permissions",
		FeatureLocalhost: "its kernel lacks BPF programs, so all runs have the same ports of localhost",
		FeatureExec:      "its kernel does not notify of system calls, so that the filter also refuses the first program; LauncherZygote forks it",
		FeatureFiles:     "its kernel does not limit the number of files",
	},
	IsolationMicroVM: {
		FeatureOCI:    "its agent makes jails itself",
		FeatureDerive: "images are made on the host",
		FeatureAudit:  "its kernel is older than Linux 6.15",
		FeatureMounts: "its machine does not see files of the host; Options.Files and FS copy them",
	},
}

// checkPlan returns an [*UnsupportedError] if the isolation cannot enforce a plan.
func (i Isolation) checkPlan(p *policy.Plan, degraded bool) error {
	if native.NeedsLandlock(p) && !degraded {
		if err := i.Check(FeatureLandlock); err != nil {
			return err
		}
	}
	if p.Net.NoLocalhost {
		return i.Check(FeatureLocalhost)
	}
	return nil
}

// checkExec returns an [*UnsupportedError] if the isolation cannot execute the first program of a run with a plan.
func (i Isolation) checkExec(p *policy.Plan) error {
	if !p.Spawn.Denied {
		return nil
	}
	return i.Check(FeatureExec)
}

// UnsupportedError reports that an isolation lacks a feature. It wraps [ErrUnsupported].
type UnsupportedError struct {
	Isolation Isolation
	Feature   Feature
	Why       string
	Instead   Isolation // an isolation that supports the feature
}

// Error names the feature, the reason, and an isolation that supports it.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("isolation %v does not support %s: %s; use isolation %v", e.Isolation, e.Feature, e.Why, e.Instead)
}

// Unwrap returns ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return ErrUnsupported }

// Check returns an [*UnsupportedError] if the isolation lacks a feature.
func (i Isolation) Check(f Feature) error {
	why, lacks := lacking[i][f]
	if !lacks {
		return nil
	}
	instead := IsolationNative
	if i == IsolationNative {
		instead = IsolationOCI
	}
	return &UnsupportedError{i, f, why, instead}
}
