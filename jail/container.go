package jail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/jail/procfs"
	"gaol/jail/seccomp"
	"gaol/jail/step"
)

// errNoZygote is the error of commands that a jail with Spec.OCI cannot start.
var errNoZygote = errors.New("a container cannot have zygotes")

// container lets an OCI runtime make the namespaces, the root directory, the user and the filter of
// pid 1, and start processes in them.
//
//	startPid1 ── bundle: config.json ── "runc run --detach" ── pid 1
//	launch ── process.json ── "runc exec --detach" ── the entry program (package enter)
//
// The bundle and the runtime's state of each container are in a separate folder. Killing the
// processes and removing the cgroups and this folder removes the container, without "runc delete". If
// the host process dies, the next host process that creates a jail removes them.
type container struct {
	*Jail
	started atomic.Int64 // number of the last file in the container's folder
}

// startPid1 implements starter.
func (j *container) startPid1(top *cgroupFiles, mount func() error) error {
	if err := mount(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), kernel.Timeout(startTimeout))
	defer cancel()
	namespaces, err := j.newNamespaces(top)
	defer func() {
		for _, f := range namespaces {
			f.Close()
		}
	}()
	if err != nil {
		return err
	}
	pid1, err := j.create(ctx, namespaces)
	if err != nil {
		return err
	}
	j.pid1 = pid1
	if err := j.openPid1(); err != nil {
		return err
	}
	if !j.spec.OCI.SystemdCgroup {
		if err := j.moveToInitCgroup(top); err != nil {
			return step.Wrap("move", "pid 1", err)
		}
	}
	if err := j.prepareNetwork(); err != nil {
		return err
	}
	return step.Wrap("mount", procfs.BootID, mounts.ReplaceBootID(pid1.PID()))
}

// containerCgroup returns the container's cgroup as the runtime's driver names it: the jail's, or a new
// scope.
func (j *Jail) containerCgroup() string {
	if j.spec.OCI.SystemdCgroup {
		return scopeSlice + ":" + scopePrefix + ":" + j.identity.newScope()
	}
	return cgroup.FromMount(j.identity.Cgroup())
}

var errOpened = errors.New("the namespaces are open")

// newNamespaces makes the container's namespaces that the runtime would make in another way than
// createSteps. The runtime would make the user namespace as the host's root: createSteps explains why
// the jail's host user must make it. In a network namespace the runtime would bring up the loopback
// interface. The cgroup namespace begins in the jail's cgroups, wherever the runtime's driver makes
// the container's. After an error the caller must close the files, too.
func (j *Jail) newNamespaces(top *cgroupFiles) (files map[specs.LinuxNamespaceType]*os.File, err error) {
	var flags uint64 = unix.CLONE_NEWUSER
	names := map[specs.LinuxNamespaceType]string{specs.UserNamespace: "user", specs.CgroupNamespace: "cgroup"}
	if !j.spec.Loopback {
		flags |= unix.CLONE_NEWNET
		names[specs.NetworkNamespace] = "net"
	}
	in := top.with(j.shared)
	list := enter.List{StartIn: in.startIn}
	list.Steps = slices.Concat([]enter.Step{enter.CloseOthers()}, in.joinSteps(), []enter.Step{
		enter.CgroupNamespace(), enter.EffectiveUser(j.identity.ID()), enter.Clone(nil, flags), enter.AwaitHost(),
	})
	files = map[specs.LinuxNamespaceType]*os.File{}
	err = enter.Launch(j.program, list, func(child *enter.Child) error {
		defer func() {
			_ = child.Kill() // it was needed for the namespaces only
			_, _ = child.Wait()
		}()
		failed := j.mapIDs(child.PID())
		for kind, name := range names {
			f, err := kernfile.Open(fmt.Sprintf("/proc/%d/ns/%s", child.PID(), name), unix.O_RDONLY)
			if failed = cmp.Or(failed, err); err == nil {
				files[kind] = f
			}
		}
		return cmp.Or(failed, errOpened)
	})
	if errors.Is(err, errOpened) {
		err = nil
	}
	return files, err
}

// moveToInitCgroup moves pid 1 out of the cgroup in which the runtime has started it: see
// makeInitCgroup.
func (j *Jail) moveToInitCgroup(top *cgroupFiles) error {
	init, err := makeInitCgroup(top)
	if err != nil || init == nil {
		return err
	}
	defer init.Close()
	return kernfile.WriteFile(filepath.Join(init.Name(), "cgroup.procs"), strconv.Itoa(j.pid1.PID()))
}

// launch implements starter.
func (j *container) launch(ctx context.Context, p *Process, c *Command, in *cgroupFiles) error {
	if c.Zygote != nil {
		return step.Wrap("start", c.name(), errNoZygote)
	}
	steps := in.joinSteps()
	if in.startIn != nil {
		procs, err := kernfile.Open(filepath.Join(in.startIn.Name(), "cgroup.procs"), unix.O_WRONLY)
		if err != nil {
			return step.Wrap("open", "cgroup", err)
		}
		defer procs.Close()
		steps = append(steps, enter.JoinCgroup(procs))
	}
	list := enter.List{Steps: containerSteps(c, steps), Filter: c.Filter.Program, Files: c.Files, OnListener: p.onListener(c.Filter)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // before the process joins its cgroup, killing the cgroup does not end it
		select {
		case <-p.killed:
			stop()
		case <-ctx.Done():
		}
	}()
	var child *enter.Supervised
	unwatch := func() bool { return true }
	err := enter.LaunchIn(list, func(files []*os.File, args []string) (err error) {
		if child, err = j.enter(ctx, files, args); err == nil {
			p.first = child
			unwatch = context.AfterFunc(ctx, func() { _ = child.Kill() })
		}
		return err
	})
	unwatch()
	if err != nil && child != nil {
		_ = child.Kill()
	}
	return err
}

// containerSteps are the steps of the entry program in a container. The runtime replaces the other
// enterSteps, except for join: the process already runs as the guest's user without capabilities.
func containerSteps(c *Command, join []enter.Step) []enter.Step {
	steps := slices.Concat([]enter.Step{enter.CloseOthers()}, join, limitSteps(c))
	if c.Terminal {
		steps = append(steps, enter.Terminal())
	}
	return append(steps, c.lastSteps()...)
}

// limitFiles are files in /sys/fs/cgroup in which libuv looks for the limits in cgroup v2: in
// folders of the runs' cgroups, because the root of a container's cgroup namespace is above them.
// Further runs see no limits there.
func (s *Spec) limitFiles() (files []File) {
	if v, err := cgroup.Detect(); err != nil || v != cgroup.V2 {
		return nil
	}
	const top, limits, most = "/sys/fs/cgroup/", "limits", 256
	for path, text := range s.Limits.Files() {
		if name := strings.TrimPrefix(path, top); !strings.Contains(name, "/") {
			files = append(files, File{Path: top + limits + "/" + name, Mode: 0o444, Data: []byte(text)})
		}
	}
	for n := 1; n <= most; n++ {
		files = append(files, File{Path: top + cgroup.PoolName(n), Mode: os.ModeSymlink, Data: []byte(limits)})
	}
	return files
}

// create makes the container and starts its pid 1. namespaces are open. The runtime has nothing to
// delete: the cgroups and the folder are the jail's.
//
// Preconditions: the thread is in the mount namespace of the tree.
func (j *container) create(ctx context.Context, namespaces map[specs.LinuxNamespaceType]*os.File) (*enter.Supervised, error) {
	spec, err := j.config(namespaces)
	if err != nil {
		return nil, err
	}
	dir := j.identity.Dir()
	if !filepath.IsAbs(dir) {
		return nil, step.Wrap("make", dir, errRelative)
	}
	bundle := filepath.Join(dir, "bundle")
	for _, d := range []string{dir, filepath.Join(dir, containerState), bundle} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, step.Wrap("make", d, err)
		}
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), encode(spec), 0o600); err != nil {
		return nil, step.Wrap("write", "bundle", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, step.Wrap("open", os.DevNull, err)
	}
	defer null.Close()
	return j.supervise(ctx, "pid 1", []*os.File{null, null, null}, "run", "--detach", "--bundle", bundle)
}

// coreLimit is set for the runtime itself, whose children inherit it: it could set it in a user
// namespace of another user only with CAP_SYS_RESOURCE.
var coreLimit = enter.Limit{Resource: unix.RLIMIT_CORE, Most: maxCore}

// supervise executes a command of the runtime, with further arguments, that starts a process.
func (j *container) supervise(ctx context.Context, target string, files []*os.File, args ...string) (*enter.Supervised, error) {
	dir := j.identity.Dir()
	pidFile := filepath.Join(dir, strconv.FormatInt(j.started.Add(1), 10)+".pid")
	args = append(j.spec.OCI.command(dir, args...), "--pid-file", pidFile, "gaol-"+j.identity.name())
	p, err := enter.Supervise(ctx, j.program, enter.Starter{Args: args, Files: files, Limits: []enter.Limit{coreLimit}, PIDFile: pidFile})
	_ = os.Remove(pidFile) // it does not exist if the runtime failed
	if errors.Is(err, syscall.ECHILD) {
		err = step.Wrap("run "+j.spec.OCI.Path, target, logged(dir, errRuntime))
	}
	return p, err
}

var (
	errRelative = errors.New("the folder of a container must be absolute")
	errRuntime  = errors.New("it failed without an error message")
)

// enter starts the entry program in the container, with files and the arguments args, of which
// the first is its name.
func (j *container) enter(ctx context.Context, files []*os.File, args []string) (*enter.Supervised, error) {
	p := containerProcess(mounts.GuestUID, append([]string{enter.Path}, args[1:]...))
	process := filepath.Join(j.identity.Dir(), fmt.Sprintf("process-%d.json", j.started.Add(1)))
	if err := os.WriteFile(process, encode(p), 0o600); err != nil {
		return nil, step.Wrap("write", "process", err)
	}
	defer func() { _ = os.Remove(process) }() // the runtime has read it
	return j.supervise(ctx, enter.Path, files, "exec", "--detach", "--process", process, "--preserve-fds", strconv.Itoa(len(files)-3))
}

// OCIRuntime is an OCI runtime: runc, or a program with its command line.
type OCIRuntime struct {
	// Path is the host path of its program, which root executes.
	Path string

	// SystemdCgroup makes the runtime let systemd make the containers' cgroups.
	SystemdCgroup bool
}

// command returns the arguments of a command of the runtime.
func (r *OCIRuntime) command(dir string, args ...string) []string {
	global := []string{r.Path, "--root", filepath.Join(dir, containerState), "--log", filepath.Join(dir, logFile), "--log-format", "json"}
	if r.SystemdCgroup {
		global = append(global, "--systemd-cgroup")
	}
	return append(global, args...)
}

// Names in the folder of a container.
const (
	containerState = "state"
	logFile        = "log"
)

// logged returns the last error in a runtime's log, or err if there is none.
func logged(dir string, err error) error {
	text, readErr := os.ReadFile(filepath.Join(dir, logFile))
	if readErr != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var last struct{ Level, Msg string }
	if json.Unmarshal(lines[len(lines)-1], &last) != nil || last.Msg == "" {
		return err
	}
	const most = 1000
	return errors.New(strings.ToValidUTF8(last.Msg[:min(len(last.Msg), most)], "?"))
}

// The configuration of a container for an OCI runtime, and of processes in it. Paths that runc masks or
// makes read-only by default are so here; the rest of /proc is masked, too.

// config returns the container's configuration, with the devices and readonly paths of "runc spec".
// given are open namespaces, which the runtime does not make.
func (j *container) config(given map[specs.LinuxNamespaceType]*os.File) (*specs.Spec, error) {
	filter, err := seccomp.OCI()
	if err != nil {
		return nil, step.Wrap("seccomp", "container", err)
	}
	masked, err := masks()
	if err != nil {
		return nil, step.Wrap("list", "/proc", err)
	}
	namespaces := []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace}}
	if given[specs.NetworkNamespace] == nil {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace})
	}
	for kind, f := range given {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: kind, Path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())})
	}
	return &specs.Spec{
		Version:     "1.0.2", // crun refuses others than 1.0
		Process:     containerProcess(0, j.spec.Reaper),
		Root:        &specs.Root{Path: containerRoot(j.identity.stateDir())}, // not Readonly: each mount sets its own flags
		Hostname:    j.spec.Hostname,
		Domainname:  "(none)", // the kernel's initial value; otherwise the host's would remain
		Mounts:      j.mounts(),
		Annotations: map[string]string{"org.systemd.property.CollectMode": "'inactive-or-failed'"}, // systemd's, if it makes the cgroup
		Linux: &specs.Linux{
			Resources:     &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
			CgroupsPath:   j.containerCgroup(),
			Namespaces:    namespaces,
			Seccomp:       filter,
			MaskedPaths:   append(masked, "/sys/firmware"),
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}, nil
}

// containerProcess returns a process without rights.
func containerProcess(id uint32, args []string) *specs.Process {
	return &specs.Process{
		User: specs.User{UID: id, GID: id},
		Args: args, Env: []string{}, Cwd: "/",
		Capabilities:    &specs.LinuxCapabilities{},
		NoNewPrivileges: true,
		OOMScoreAdj:     new(1000), // the kernel kills guests first when the machine is short of memory
		// Without Rlimits it inherits coreLimit from the runtime; the entry program sets the others.
	}
}

// mounts returns the container's mounts. Its root already contains /dev.
func (j *container) mounts() []specs.Mount {
	proc := []string{"ro", "nosuid", "nodev", "noexec"}
	if j.spec.HideProcesses {
		proc = append(proc, "hidepid=2")
	}
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: proc},
		// Without a mount for it the runtime would add devices to it.
		{Destination: "/dev", Type: "bind", Source: containerRoot(j.identity.stateDir()) + "/dev", Options: []string{"rbind"}},
	}
	files := filepath.Join(stageDir(j.identity.stateDir()), mounts.Proc)
	for _, e := range procfs.RootEntries {
		// Runtimes refuse mounts over other entries.
		if e.Source == procfs.Generated && e.Name != sysctls {
			list = append(list, specs.Mount{Destination: "/proc/" + e.Name, Type: "bind", Source: filepath.Join(files, e.Name), Options: []string{"bind", "ro"}})
		}
	}
	return list
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of specs can be encoded
	}
	return text
}

const sysctls = "sys"

// masks returns the paths of /proc to mask: all that package procfs does not list. The
// sysctls that it lists are the kernel's own.
func masks() ([]string, error) {
	var shown []string
	for _, e := range procfs.RootEntries {
		if e.Name != sysctls {
			shown = append(shown, e.Name)
		}
	}
	for _, e := range procfs.Sysctls {
		shown = append(shown, sysctls+"/"+e.Name)
	}
	return unlisted("", shown)
}

// unlisted returns the entries of a folder below /proc, with a final slash or empty, that are
// not shown. It omits processes and links.
func unlisted(dir string, shown []string) (paths []string, err error) {
	entries, err := os.ReadDir("/proc/" + dir)
	if errors.Is(err, fs.ErrNotExist) { // its module was unloaded
		return nil, nil
	}
	for _, e := range entries {
		path := dir + e.Name()
		switch {
		case slices.Contains(shown, path) || e.Type() == fs.ModeSymlink || dir == "" && strings.Trim(e.Name(), "0123456789") == "":
		case slices.ContainsFunc(shown, func(s string) bool { return strings.HasPrefix(s, path+"/") }):
			below, belowErr := unlisted(path+"/", shown)
			paths, err = append(paths, below...), errors.Join(err, belowErr)
		default:
			paths = append(paths, "/proc/"+path)
		}
	}
	return paths, err
}
