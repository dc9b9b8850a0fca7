package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"gaol/jail"
	"gaol/policy"
	"gaol/vfs"
)

// What a zero field of Options and RunOptions means.
const (
	defaultHostname     = "secure-exec"
	defaultCgroupParent = "/gaol"
	defaultTimeout      = 30 * time.Second
	defaultName         = "main.mjs"
	defaultCommonJS     = "main.cjs"
)

var defaultLimits = Limits{
	Memory: 256 << 20,
	CPUs:   1,
	Pids:   64,
	Files:  1024,
	Disk:   64 << 20,
	Inodes: 16384,
	Output: 16 << 20,
	Value:  16 << 20,
}

// Least values that a run can live with.
const (
	minMemory = 48 << 20 // a bare Node touches some 45 MB
	minPids   = 16       // a bare Node has 7 threads, and 4 more once it reads a file
	minFiles  = 32       // a bare Node has 20 open
	minDisk   = 64 << 10
	minInodes = 16
	minHeap   = 16 << 20 // Node's own modules are in it
)

// What the kernel's structures and ours hold.
const (
	maxHostname = 64        // sethostname(2)
	maxString   = 128 << 10 // MAX_ARG_STRLEN of execve(2), the final NUL included
	maxStrings  = 768 << 10 // of arguments, and of variables: execve(2) takes 2 MiB of both with the usual stack
	maxProgram  = 16 << 20
)

// settings are Options once they are checked and their defaults filled in.
type settings struct {
	env          map[string]string
	cwd          vfs.Path
	hostname     string
	limits       Limits
	cgroupParent string
	launcher     Launcher
	zygote       ZygoteOptions
	unfit        error    // why in an imported image only commands can run
	node         string   // where an imported image has Node; "" for the usual place
	libraries    []string // folders with libraries of an imported image, beside the usual ones

	image       string // host folder with its root
	permissions policy.Permissions
	plan        *policy.Plan
	degraded    bool
	audit       bool

	mounts       []Mount
	hostPackages bool // NodeModules is a folder of the host
	unixSockets  bool
	snapshot     string
	packages     string // a snapshot
	files        []jail.File
	readOnlyRoot bool

	concurrentRuns int
	contexts       int

	bindings *globals
	calls    CallLimits
	heapMiB  int64         // of V8's old space
	evaluate *evaluateHead // nil but with Evaluate
	context  *contextHead  // nil but for a context
}

func (o Options) settle() (settings, error) {
	s := settings{
		hostname:     o.Hostname,
		cgroupParent: o.CgroupParent,
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
	if s.hostname == "" {
		s.hostname = defaultHostname
	}
	if s.cgroupParent == "" {
		s.cgroupParent = defaultCgroupParent
	}
	if o.Cwd != "" {
		cwd, err := vfs.ParsePath(o.Cwd)
		if err != nil {
			return settings{}, optionError("Cwd", "%w", err)
		}
		s.cwd = cwd
	}
	var err error
	s.heapMiB = heapMiB(s.limits.Memory)
	if s.mounts, err = o.mounts(s.cwd); err != nil {
		return settings{}, err
	}
	s.hostPackages = o.NodeModules != "" && s.packages == ""
	s.unixSockets = o.UnixSockets || !slices.ContainsFunc(s.mounts, func(m Mount) bool { return !s.throughOverlay(m) })
	if s.bindings, err = newGlobals(o.Bindings); err != nil {
		return settings{}, fmt.Errorf("option Bindings: %w", err)
	}
	if s.calls, err = o.Calls.settle(defaultCalls); err != nil {
		return settings{}, fmt.Errorf("option Calls: %w", err)
	}
	if s.files, err = o.gather(s.limits); err != nil {
		return settings{}, err
	}
	if err := overlayEnv(s.env, o.Env); err != nil {
		return settings{}, optionError("Env", "%w", err)
	}
	if err := s.permit(o.Permissions); err != nil {
		return settings{}, optionError("Permissions", "%w", err)
	}
	return s, errors.Join(checkHostname(s.hostname), checkCgroup(s.cgroupParent), s.launcher.known(), s.zygote.check(s.launcher), checkCount("MaxConcurrentRuns", s.concurrentRuns), checkCount("MaxContexts", s.contexts), s.limits.check())
}

func (l Limits) withDefaults() Limits {
	d := defaultLimits
	for _, f := range []struct{ value, fallback *int64 }{
		{&l.Memory, &d.Memory}, {&l.Pids, &d.Pids}, {&l.Files, &d.Files}, {&l.Disk, &d.Disk},
		{&l.Inodes, &d.Inodes}, {&l.Output, &d.Output}, {&l.Value, &d.Value},
	} {
		if *f.value == 0 {
			*f.value = *f.fallback
		}
	}
	if l.CPUs == 0 {
		l.CPUs = d.CPUs
	}
	return l
}

func (l Limits) check() error {
	const huge = 1 << 50 // so that sums do not overflow
	var failed error
	for _, f := range []struct {
		name               string
		value, least, most int64
	}{
		{"Memory", l.Memory, minMemory, huge},
		{"Pids", l.Pids, minPids, 4 << 20},    // PID_MAX_LIMIT
		{"Files", l.Files, minFiles, 1 << 20}, // fs.nr_open
		{"Disk", l.Disk, minDisk, huge},
		{"Inodes", l.Inodes, minInodes, huge},
		{"Output", l.Output, 1, 1 << 30},
		{"Value", l.Value, 1, 1 << 30},
		{"CPUTime", int64(l.CPUTime), 0, math.MaxInt64},
	} {
		if f.value < f.least || f.value > f.most {
			failed = errors.Join(failed, &LimitError{f.name, float64(f.value), float64(f.least), float64(f.most)})
		}
	}
	const leastCPUs, mostCPUs = 0.05, 4096            // with less, Node takes seconds to start
	if !(l.CPUs >= leastCPUs && l.CPUs <= mostCPUs) { // written so that NaN fails
		failed = errors.Join(failed, &LimitError{"CPUs", l.CPUs, leastCPUs, mostCPUs})
	}
	return failed
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
		return fmt.Errorf("option CgroupParent: %q is no absolute, clean path of a cgroup", p)
	}
	return nil
}

func checkCount(option string, n int) error {
	if n < 1 || n > mostConcurrentRuns {
		return fmt.Errorf("option %s: %d is not between 1 and %d", option, n, mostConcurrentRuns)
	}
	return nil
}

func (l Launcher) known() error {
	if l < LauncherZygote || l > LauncherExec {
		return optionError("Launcher", "there is no %v", l)
	}
	return nil
}

func (o ZygoteOptions) check(l Launcher) error {
	if l != LauncherZygote && o != (ZygoteOptions{}) {
		return fmt.Errorf("option Zygote: the launcher is %v", l)
	}
	if o.Forks < 0 || o.Age < 0 || o.Patience < 0 {
		return fmt.Errorf("option Zygote: %+v has a negative field", o)
	}
	return nil
}

// baseEnv is what a run sees if the caller says nothing.
func baseEnv() map[string]string {
	return map[string]string{
		"PATH":   "/usr/local/bin:/usr/bin:/bin",
		"HOME":   string(vfs.Home),
		"USER":   "node",
		"LANG":   "C.UTF-8",
		"TMPDIR": "/tmp",
	}
}

var errEnvName = errors.New("a variable's name has at least one character and no '=' or NUL")

// overlayEnv puts extra over env after checking it.
func overlayEnv(env, extra map[string]string) error {
	for name, value := range extra {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("%q: %w", name, errEnvName)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("%q: the value has a NUL", name)
		case len(name)+len(value)+2 > maxString:
			return fmt.Errorf("%q: longer than %d bytes", name, maxString)
		}
		env[name] = value
	}
	total := 0
	for name, value := range env {
		total += len(name) + len(value) + 2
	}
	if total > maxStrings {
		return fmt.Errorf("all variables together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}

// envList renders variables as execve takes them, in a stable order.
func envList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}
