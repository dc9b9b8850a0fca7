package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"

	"gaol/internal/egress"
	"gaol/internal/lazyregexp"
	"gaol/policy"
	"gaol/runtime/internal/hostcall"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/work"
	"gaol/vfs"
)

// DefaultCgroupParent is the default of Options.CgroupParent.
const DefaultCgroupParent = "/gaol"

// Defaults of Options and RunOptions.
const (
	defaultHostname = "secure-exec"
	defaultName     = "main.mjs"
	defaultCommonJS = "main.cjs"
)

const (
	maxHostname = 64 // sethostname(2)
	maxProgram  = 16 << 20
)

// settings are Options after validation. Defaults replace zero values, Permissions is complete,
// Mounts includes the mount of NodeModules, and UnixSockets reports whether runs may create such
// sockets. Files, Folders and Bindings have other forms below.
type settings struct {
	Options

	env       map[string]string // Env, over the variables that every run has
	cwd       vfs.Path
	noNode    error    // why an imported image can only run commands
	node      string   // guest path of an imported image's Node; "" for the usual one
	libraries []string // folders with libraries of an imported image, in addition to the usual ones

	image        string // host folder of its root
	zygote       string // the same of the image that zygotes use, if that is another one
	plan         *policy.Plan
	hostPorts    []uint16
	proxy        func(host string, port uint16) (*url.URL, error)
	hostPackages bool     // NodeModules is a folder of the host
	modules      vfs.Path // where NodeModules is mounted
	packages     string   // name of a snapshot with packages
	files        []sandbox.File

	work     *work.Domain // compiles code
	bindings *hostcall.Bindings
	heapMiB  int64 // of V8's old space

	variables *environment // of runs that add none; newRuntime sets it

	oneOverlay, owned bool // of the tree, see jail.Tree
}

// resolve validates options and fills in defaults.
func (o Options) resolve() (s settings, err error) {
	if err := o.checkIsolation(); err != nil {
		return s, err
	}
	s = settings{Options: o, env: baseEnv(), packages: packagesOf(o.NodeModules), work: work.InProcess}
	s.Files, s.Folders, s.Bindings = nil, nil, nil
	s.Env = maps.Clone(o.Env)
	s.Hostname = cmp.Or(o.Hostname, defaultHostname)
	s.CgroupParent = cmp.Or(o.CgroupParent, DefaultCgroupParent)
	s.MaxConcurrentRuns = cmp.Or(o.MaxConcurrentRuns, defaultConcurrentRuns())
	if o.Launcher == LauncherZygote && o.Isolation.Check(FeatureZygote) != nil {
		s.Launcher = LauncherExec
	}
	if err := errors.Join(fill(&s.Options, true), fill(&s.Limits, true), fill(&s.Network, true)); err != nil {
		return s, err
	}
	s.heapMiB = cmp.Or(o.Heap>>20, oldSpaceMiB(s.Limits.Memory))
	if s.cwd, err = parseCwd(cmp.Or(o.Cwd, string(vfs.Workspace))); err != nil {
		return s, err
	}
	if err := errors.Join(s.setMounts(o), s.setCalls(o)); err != nil {
		return s, err
	}
	if s.files, err = o.initFiles(s.Limits); err != nil {
		return s, err
	}
	if s.proxy, err = egress.NewProxy(o.Proxy); err != nil {
		return s, optionError("Proxy", "%w", err)
	}
	if err := overlayEnv(s.env, o.Env); err != nil {
		return s, optionError("Env", "%w", err)
	}
	if s.hostPorts, err = checkHostPorts(o.HostPorts); err != nil {
		return s, err
	}
	// After the mounts and Cwd, on which the rules about files depend.
	if err := s.setPermissions(o.Permissions); err != nil {
		return s, &OptionError{"Permissions", err}
	}
	for _, port := range s.hostPorts {
		if !slices.Contains(s.plan.Net.Host, port) { // no guest may connect to it
			return s, optionError("HostPorts", `the permissions deny port %d; this rule of the network scope allows it: {"mode": "allow", "operations": ["fetch", "connect"], "patterns": ["tcp://localhost:%d"]}`, port, port)
		}
	}
	return s, errors.Join(checkHostname(s.Hostname), checkCgroup(s.CgroupParent), s.Launcher.validate(), s.Zygote.validate(s.Launcher), s.MountUser.validate(), checkHeap(s.Heap, s.Limits))
}

// setMounts validates the mounts of the host's files.
func (s *settings) setMounts(o Options) (err error) {
	if s.modules, err = o.modulesPath(s.cwd); err != nil {
		return err
	}
	if s.Mounts, err = o.mounts(s.modules); err != nil {
		return err
	}
	s.hostPackages = o.NodeModules != "" && s.packages == ""
	s.UnixSockets = o.UnixSockets || !slices.ContainsFunc(s.Mounts, func(m Mount) bool { return !s.throughOverlay(m) })
	return nil
}

// setCalls validates what guests can call.
func (s *settings) setCalls(o Options) (err error) {
	if s.bindings, err = o.newBindings(o.Bindings); err != nil {
		return optionError("Bindings", "%w", err)
	}
	if err := checkCommands(o.Commands); err != nil {
		return optionError("Commands", "%w", err)
	}
	s.Commands = maps.Clone(o.Commands)
	return ofOption("Calls", fill(&s.Calls, true))
}

var hostnamePattern = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

func checkHostname(name string) error {
	if len(name) > maxHostname || !hostnamePattern().MatchString(name) {
		return optionError("Hostname", "%q is not a host name of at most %d letters, digits, dots and hyphens", name, maxHostname)
	}
	return nil
}

var cgroupPattern = lazyregexp.New(`^(/[A-Za-z0-9_@:.\\-]+)+$`)

func checkCgroup(p string) error {
	if !cgroupPattern().MatchString(p) || path.Clean(p) != p {
		return optionError("CgroupParent", "%q is not an absolute, clean path of a cgroup", p)
	}
	return nil
}

// initFiles collects the files of Options.Files and Options.Folders.
type initFiles struct {
	limits Limits
	bytes  int64
	byPath map[string]sandbox.File
}

// reservedForFiles are folders that cannot be the working directory, or have files of the caller, except for /dev/shm.
var reservedForFiles = append([]vfs.Path{"/sys"}, reservedForMounts...)

// initFiles returns the files that the tree begins with, sorted, because the order of maps is random
// and the jail's files should not be.
func (o Options) initFiles(l Limits) (list []sandbox.File, err error) {
	g := &initFiles{limits: l, byPath: map[string]sandbox.File{}}
	for name, text := range o.Files {
		if err := g.add(name, 0o644, slices.Clone(text)); err != nil {
			return nil, optionError("Files", "%w", err)
		}
	}
	for dir, from := range o.Folders {
		if err := g.folder(dir, from); err != nil {
			return nil, optionError("Folders", "%w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.byPath)) {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, isFile := g.byPath[dir]; isFile {
				return nil, optionError("Files", "%s is a file, and has %s in it", dir, name)
			}
		}
		list = append(list, g.byPath[name])
	}
	return list, nil
}

func (g *initFiles) folder(dir string, from fs.FS) error {
	if _, err := vfs.ParsePath(dir); err != nil {
		return err
	}
	return fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return &fs.PathError{Op: "copy", Path: name, Err: fs.ErrInvalid}
		}
		if info.Size() > g.limits.Disk {
			return g.tooLarge(name)
		}
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		return g.add(path.Join(dir, name), mode, text)
	})
}

func (g *initFiles) add(name string, mode fs.FileMode, text []byte) error {
	at, err := vfs.ParsePath(name)
	if err != nil {
		return err
	}
	if err := checkReserved(at, reservedForFiles); err != nil && checkReserved(at, vfs.Shared()) == nil {
		return err
	}
	g.bytes += int64(len(text))
	_, twice := g.byPath[name]
	switch {
	case name == "/":
		return errors.New("/ is a folder")
	case twice:
		return fmt.Errorf("%s twice", name)
	case g.bytes > g.limits.Disk:
		return g.tooLarge(name)
	case int64(len(g.byPath)) == g.limits.Files:
		return fmt.Errorf("%s: there are more than %d files, the limit of the tree", name, g.limits.Files)
	}
	g.byPath[name] = sandbox.File{Path: name, Mode: mode, Data: text}
	return nil
}

func (g *initFiles) tooLarge(name string) error {
	return fmt.Errorf("%s: the files have more than %s in all, the limit of the disk", name, formatBytes(g.limits.Disk))
}
