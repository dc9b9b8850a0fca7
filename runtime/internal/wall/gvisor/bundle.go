package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/kernel"
	"gaol/jail/mounts"
	"gaol/runtime/internal/sandbox"
)

// Names in the folder of a sandbox.
const (
	rootDir  = "root"  // the agent's root, which is empty
	stateDir = "state" // of runsc
	mountDir = "mounts"
)

// agentPath is where the agent sees gaol.
const agentPath = "/gaol"

// capabilities are the agent's, inside gVisor.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
	"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
	"CAP_SYS_ADMIN", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_RESOURCE",
}

// slow is the agent's factor of timeouts for starts: in gVisor, Node takes some times as long to start.
const slow = "4"

// writeBundle makes the files that runsc reads.
func writeBundle(dir, gaol string, spec *sandbox.Spec) error {
	for _, d := range []string{dir, filepath.Join(dir, rootDir), filepath.Join(dir, stateDir), filepath.Join(dir, mountDir)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(dir, rootDir), 0o755); err != nil { // the agent also acts as the guest's user
		return err
	}
	factor := os.Getenv(kernel.SlowVariable)
	if factor == "" {
		factor = slow
	}
	c := config(dir, gaol, spec)
	c.Process.Env = []string{"PATH=/", kernel.SlowVariable + "=" + factor}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// config describes the agent's process and what it sees.
func config(dir, gaol string, spec *sandbox.Spec) *specs.Spec {
	list := []specs.Mount{{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup"}, bind(agentPath, gaol, false)}
	for at, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "tmpfs", "/tmp": "tmpfs", "/run": "tmpfs"} {
		list = append(list, specs.Mount{Destination: at, Type: kind, Source: kind})
	}
	for i, image := range images(spec) {
		list = append(list, bind(image, dir+imagePath(i), false))
	}
	for i, m := range spec.Mounts {
		list = append(list, bind(mountPath(i), dir+mountPath(i), m.Access == sandbox.ReadWrite))
	}
	return &specs.Spec{
		Version: "1.0.2", Hostname: "gaol", Mounts: list,
		Root: &specs.Root{Path: filepath.Join(dir, rootDir)},
		Process: &specs.Process{
			Args: []string{agentPath, "agent"}, Cwd: "/",
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities, Inheritable: capabilities},
			Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: maxFiles, Soft: maxFiles}},
			OOMScoreAdj:  new(1000), // the kernel kills guests first when the machine is short of memory
		},
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{
			{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
		}},
	}
}

// maxFiles bounds the descriptors of the agent, and Limits.OpenFiles.
const maxFiles = 1 << 20

// mountPath is the agent's path of the nth mount.
func mountPath(n int) string { return "/" + mountDir + "/" + strconv.Itoa(n) }

func bind(at, source string, writable bool) specs.Mount {
	access := "ro"
	if writable {
		access = "rw"
	}
	return specs.Mount{Destination: at, Type: "bind", Source: source, Options: []string{"bind", access}}
}

// images are the folders of images that the agent uses, by the same paths.
func images(spec *sandbox.Spec) []string {
	list := []string{spec.Image}
	if w := spec.Warm; w != nil && w.Image != spec.Image {
		list = append(list, w.Image)
	}
	return list
}

// imagePath is the path of an image's mount in the folder of the sandbox.
func imagePath(n int) string { return "/" + mountDir + "/image" + strconv.Itoa(n) }

// clone is a detached mount, for a path in the folder of the sandbox.
type clone struct {
	*os.File
	path string
}

// cloneMounts makes the mounts that the agent uses, in which owners have the ids of its jail. The caller closes them, also those
// that come with an error.
//
// Preconditions: the thread is in the mount namespace of the sources.
func cloneMounts(spec *sandbox.Spec) (clones []clone, err error) {
	for i, image := range images(spec) {
		f, err := mounts.ImageOutside(image, jail.FirstID)
		if err != nil {
			return clones, err
		}
		clones = append(clones, clone{f, imagePath(i)})
	}
	for i, m := range spec.Mounts {
		source, ok := m.Source.(*os.File)
		if !ok {
			return clones, errors.ErrUnsupported
		}
		f, err := mounts.CloneOutside(mounts.Mount{Source: source, Access: m.Access, Owner: m.Owner}, jail.FirstID)
		if err != nil {
			return clones, fmt.Errorf("mount %s: %w", m.Target, err)
		}
		clones = append(clones, clone{f, mountPath(i)})
	}
	return clones, nil
}

// attach mounts a clone on a new folder or file below dir.
func (c clone) attach(dir string) error {
	info, err := c.Stat()
	if err == nil {
		if info.IsDir() {
			err = os.Mkdir(dir+c.path, 0o700)
		} else {
			err = os.WriteFile(dir+c.path, nil, 0o600)
		}
	}
	if err != nil {
		return err
	}
	err = unix.MoveMount(int(c.Fd()), "", unix.AT_FDCWD, dir+c.path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	return os.NewSyscallError("move_mount", err)
}
