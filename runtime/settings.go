package runtime

import (
	"cmp"
	"errors"
	"path"
	"regexp"
	"slices"

	"gaol/jail"
	"gaol/policy"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/node"
	"gaol/vfs"
)

// Defaults of Options and RunOptions.
const (
	defaultHostname     = "secure-exec"
	defaultCgroupParent = "/gaol"
	defaultName         = "main.mjs"
	defaultCommonJS     = "main.cjs"
)

const (
	maxHostname = 64 // sethostname(2)
	maxProgram  = 16 << 20
)

// settings are Options after validation, with defaults filled in.
type settings struct {
	env          map[string]string
	cwd          vfs.Path
	hostname     string
	limits       Limits
	cgroupParent string
	launcher     Launcher
	zygote       ZygoteOptions
	noNode       error    // why an imported image can only run commands
	node         string   // guest path of an imported image's Node; "" for the usual one
	libraries    []string // folders with libraries of an imported image, in addition to the usual ones

	image       string // host folder of its root
	permissions policy.Permissions
	plan        *policy.Plan
	degraded    bool
	audit       bool

	mounts       []Mount
	hostPackages bool // NodeModules is a folder of the host
	unixSockets  bool
	snapshot     string
	packages     string // name of a snapshot with packages
	files        []jail.File
	readOnlyRoot bool

	concurrentRuns int
	contexts       int

	bindings *hostcall.Bindings
	calls    CallLimits
	heapMiB  int64           // of V8's old space
	evaluate *guest.Evaluate // nil except for Evaluate
	context  *guest.Context  // nil except for a context
}

// resolve validates options and fills in defaults.
func (o Options) resolve() (settings, error) {
	s := settings{
		hostname:     cmp.Or(o.Hostname, defaultHostname),
		cgroupParent: cmp.Or(o.CgroupParent, defaultCgroupParent),
		cwd:          vfs.Workspace,
		limits:       o.Limits.withDefaults(),
		env:          baseEnv(),
		launcher:     o.Launcher,
		zygote:       o.Zygote,
		degraded:     o.AllowDegraded,
		audit:        o.AuditDenials,
		readOnlyRoot: o.ReadOnlyRoot,
		snapshot:     o.Snapshot,
		packages:     packagesOf(o.NodeModules),

		concurrentRuns: cmp.Or(o.MaxConcurrentRuns, defaultConcurrentRuns),
		contexts:       cmp.Or(o.MaxContexts, defaultContexts),
	}
	if o.Cwd != "" {
		cwd, err := vfs.ParsePath(o.Cwd)
		if err != nil {
			return settings{}, optionError("Cwd", "%w", err)
		}
		s.cwd = cwd
	}
	var err error
	s.heapMiB = node.OldSpaceMiB(s.limits.Memory)
	if s.mounts, err = o.mounts(s.cwd); err != nil {
		return settings{}, err
	}
	s.hostPackages = o.NodeModules != "" && s.packages == ""
	s.unixSockets = o.UnixSockets || !slices.ContainsFunc(s.mounts, func(m Mount) bool { return !s.throughOverlay(m) })
	if s.bindings, err = newBindings(o.Bindings); err != nil {
		return settings{}, optionError("Bindings", "%w", err)
	}
	if s.calls, err = o.Calls.resolve(defaultCalls); err != nil {
		return settings{}, optionError("Calls", "%w", err)
	}
	if s.files, err = o.initFiles(s.limits); err != nil {
		return settings{}, err
	}
	if err := overlayEnv(s.env, o.Env); err != nil {
		return settings{}, optionError("Env", "%w", err)
	}
	if err := s.setPermissions(o.Permissions); err != nil {
		return settings{}, optionError("Permissions", "%w", err)
	}
	return s, errors.Join(checkHostname(s.hostname), checkCgroup(s.cgroupParent), s.launcher.validate(), s.zygote.validate(s.launcher), checkCount("MaxConcurrentRuns", s.concurrentRuns), checkCount("MaxContexts", s.contexts), s.limits.validate())
}

var hostnamePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func checkHostname(name string) error {
	if len(name) > maxHostname || !hostnamePattern.MatchString(name) {
		return optionError("Hostname", "%q is no host name of at most %d letters, digits, dots and hyphens", name, maxHostname)
	}
	return nil
}

var cgroupPattern = regexp.MustCompile(`^(/[A-Za-z0-9_@:.\\-]+)+$`)

func checkCgroup(p string) error {
	if !cgroupPattern.MatchString(p) || path.Clean(p) != p {
		return optionError("CgroupParent", "%q is no absolute, clean path of a cgroup", p)
	}
	return nil
}

func checkCount(option string, n int) error {
	if n < 1 || n > maxConcurrentRuns {
		return optionError(option, "%d is not between 1 and %d", n, maxConcurrentRuns)
	}
	return nil
}
