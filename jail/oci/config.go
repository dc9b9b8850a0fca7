package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"gaol/jail/enter"
	"gaol/jail/procfs"
)

// Config describes a container.
type Config struct {
	// Root is the host path of the guest's root, complete but for /proc, in the mount
	// namespace of the thread that calls Create. Proc is the path of a folder with files for /proc.
	Root, Proc string

	// Namespaces are existing namespaces, which are open in this process. They include a user
	// namespace, which maps the container's ids, and a cgroup namespace.
	Namespaces map[specs.LinuxNamespaceType]*os.File

	Hostname      string
	CgroupsPath   string // as in the OCI spec: with Runtime.SystemdCgroup, SLICE:PREFIX:NAME
	HideProcesses bool   // from processes that may not trace them

	// Limits are resource limits of all processes, and of the runtime itself, which could set them
	// in a user namespace of another user only with CAP_SYS_RESOURCE.
	Limits []enter.Limit

	Seccomp *specs.LinuxSeccomp
	Args    []string // of pid 1
}

// spec returns the container's configuration, with the devices and readonly paths of "runc spec".
func (c *Config) spec() (*specs.Spec, error) {
	namespaces := []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace}}
	if c.Namespaces[specs.NetworkNamespace] == nil {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace})
	}
	for kind, f := range c.Namespaces {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: kind, Path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())})
	}
	masked, err := masks()
	return &specs.Spec{
		Version:     "1.0.2", // crun refuses others than 1.0
		Process:     c.process(0, c.Args),
		Root:        &specs.Root{Path: c.Root}, // not Readonly: each mount sets its own flags
		Hostname:    c.Hostname,
		Domainname:  "(none)", // the kernel's initial value; otherwise the host's would remain
		Mounts:      c.mounts(),
		Annotations: map[string]string{"org.systemd.property.CollectMode": "'inactive-or-failed'"}, // systemd's, if it makes the cgroup
		Linux: &specs.Linux{
			Resources:     &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
			CgroupsPath:   c.CgroupsPath,
			Namespaces:    namespaces,
			Seccomp:       c.Seccomp,
			MaskedPaths:   append(masked, "/sys/firmware"),
			ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}, err
}

// process returns a process without rights.
func (c *Config) process(id uint32, args []string) *specs.Process {
	most := 1000 // the kernel kills guests first when the machine is short of memory
	return &specs.Process{
		User: specs.User{UID: id, GID: id},
		Args: args, Env: []string{}, Cwd: "/",
		Capabilities:    &specs.LinuxCapabilities{},
		NoNewPrivileges: true,
		OOMScoreAdj:     &most,
		// Without Rlimits it inherits Limits from the runtime; the entry program sets the others.
	}
}

// mounts returns the container's mounts. Its root already contains /dev.
func (c *Config) mounts() []specs.Mount {
	proc := []string{"ro", "nosuid", "nodev", "noexec"}
	if c.HideProcesses {
		proc = append(proc, "hidepid=2")
	}
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: proc},
		// Without a mount for it the runtime would add devices to it.
		{Destination: "/dev", Type: "bind", Source: c.Root + "/dev", Options: []string{"rbind"}},
	}
	for _, name := range generated() {
		list = append(list, specs.Mount{Destination: "/proc/" + name, Type: "bind", Source: c.Proc + "/" + name, Options: []string{"bind", "ro"}})
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
