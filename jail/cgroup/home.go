package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// initGroup is the group of the first processes of a container, which systemd in a container chooses, too.
const initGroup = "/init.scope"

// home returns the group below which this process creates groups, empty for the root of the mount. If the mount shows the groups of
// the whole machine, as in a privileged pod, it is the container's, whose limits then also bound guests. The files are
// /proc/1/cgroup and /proc/self/cgroup.
func home(root string, files ...string) (string, error) {
	var paths [2]string
	for i, file := range files {
		text, err := kernfile.ReadFile(file)
		if err != nil {
			return "", err
		}
		_, path, _ := strings.Cut("\n"+string(text), "\n0::")
		path, _, _ = strings.Cut(path, "\n")
		paths[i] = strings.TrimSuffix(strings.TrimSuffix(path, initGroup), "/")
	}
	// Outside of a container, pid 1 is in the root or in systemd's init.scope.
	if _, err := os.Stat(root + paths[0] + "/cgroup.type"); err != nil || !strings.HasPrefix(paths[1]+"/", paths[0]+"/") {
		return "", nil
	}
	return paths[0], nil
}

// FromMount returns the path of an existing group relative to the mount, as OCI runtimes need it.
func FromMount(path string) string {
	on, _ := machineBackend() // it has made the group
	if v, ok := on.(*v2); ok {
		return strings.TrimPrefix(v.dir(path), mountpoint)
	}
	return path
}

// vacate moves the processes of a container's root to a group below it: a group with processes can't enable controllers, unless it is
// the root of the machine. It also lets an exhausted limit of the container end one process instead of all, which the kubelet asks for.
func (v *v2) vacate() error {
	if err := v.mkdir(initGroup); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	_ = kernfile.WriteFile(v.dir("/memory.oom.group"), "0") // in a cgroup namespace, it may be read-only
	pids, err := listProcs(v.dirs("/"))
	for _, pid := range pids {
		if moved := kernfile.WriteFile(v.dir(initGroup)+"/"+procsFile, fmt.Sprint(pid)); !errors.Is(moved, unix.ESRCH) {
			err = errors.Join(err, moved)
		}
	}
	return err
}
