package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"gaol/jail/mounts"
	"gaol/jail/procfs"
	"gaol/jail/seccomp"
	"gaol/jail/step"
)

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
		Root:        &specs.Root{Path: containerRoot(j.identity.stateDir)}, // not Readonly: each mount sets its own flags
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
	most := 1000 // the kernel kills guests first when the machine is short of memory
	return &specs.Process{
		User: specs.User{UID: id, GID: id},
		Args: args, Env: []string{}, Cwd: "/",
		Capabilities:    &specs.LinuxCapabilities{},
		NoNewPrivileges: true,
		OOMScoreAdj:     &most,
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
		{Destination: "/dev", Type: "bind", Source: containerRoot(j.identity.stateDir) + "/dev", Options: []string{"rbind"}},
	}
	for _, name := range generated() {
		list = append(list, specs.Mount{Destination: "/proc/" + name, Type: "bind", Source: filepath.Join(stageDir(j.identity.stateDir), mounts.Proc, name), Options: []string{"bind", "ro"}})
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

// generated returns the entries of /proc that files of the host replace. Runtimes refuse
// mounts over others.
func generated() (names []string) {
	for _, e := range procfs.RootEntries {
		if e.Source == procfs.Generated && e.Name != sysctls {
			names = append(names, e.Name)
		}
	}
	return names
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
