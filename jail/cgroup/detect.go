package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Version is a version of the kernel's cgroup interface.
type Version int

// The versions. The zero Version is neither.
const (
	V1 Version = 1
	V2 Version = 2
)

// String is "v1" or "v2".
func (v Version) String() string { return fmt.Sprintf("v%d", int(v)) }

const mountpoint = "/sys/fs/cgroup"

// controllersV1 are the v1 hierarchies a group is made in, in the order in which
// a process is put into them. The freezer is first, because Kill finds processes
// by it: whatever is in any hierarchy must be in that one.
var controllersV1 = []string{"freezer", "pids", "memory", "cpu", "cpuacct"}

// controllersV2 must be enabled in a group's parent. Freezing and CPU accounting
// are part of v2 itself.
var controllersV2 = []string{"cpu", "memory", "pids"}

// MissingError says that this machine's cgroups can't be used.
type MissingError struct {
	Version     Version  // what was found at Path; 0: nothing
	Path        string   // where it was looked for
	Controllers []string // what is not there
	Cure        string   // what the administrator should do
}

// Error names what is missing, and the cure.
func (e *MissingError) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("cgroup: none mounted at %s: %s", e.Path, e.Cure)
	}
	return fmt.Sprintf("cgroup: %s at %s lacks %s: %s", e.Version, e.Path, strings.Join(e.Controllers, ", "), e.Cure)
}

// ReadOnlyError says that cgroups are there but can't be made.
type ReadOnlyError struct {
	Path string
	Err  error
}

// Error names the directory, and the cure.
func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("cgroup: %s: %v: run as root, and in a container with /sys/fs/cgroup writable", e.Path, e.Err)
}

// Unwrap gives the system's error.
func (e *ReadOnlyError) Unwrap() error { return e.Err }

// Detect says which version's controllers this machine offers. It fails with a
// [*MissingError] when some are not there, and with a [*ReadOnlyError] when this
// process may not make groups. It looks afresh each time.
func Detect() (Version, error) {
	v, err := look(mountpoint)
	if err != nil {
		return 0, err
	}
	return v, nil
}

// machine keeps what was found: mounts do not change under a running server, and
// each run asks. A failed look is not kept, for it may have failed for want of a
// file descriptor.
var machine struct {
	sync.Mutex
	on backend
}

// thisMachine is the backend for what Detect finds.
func thisMachine() (backend, error) {
	machine.Lock()
	defer machine.Unlock()
	if machine.on != nil {
		return machine.on, nil
	}
	v, err := look(mountpoint)
	if err != nil {
		return nil, err
	}
	machine.on = newV1(mountpoint)
	if v == V2 {
		machine.on = newV2(mountpoint, controllersV2)
	}
	return machine.on, nil
}

func look(root string) (Version, error) {
	b, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")) // only v2 has this file
	switch {
	case err == nil:
		return V2, lookV2(root, strings.Fields(string(b)))
	case errors.Is(err, os.ErrNotExist):
		return V1, lookV1(root)
	default:
		return 0, fmt.Errorf("cgroup: detect: %w", err)
	}
}

func lookV2(root string, have []string) error {
	var missing []string
	for _, c := range controllersV2 {
		if !slices.Contains(have, c) {
			missing = append(missing, c)
		}
	}
	if missing != nil {
		return &MissingError{V2, root, missing,
			"boot without cgroup_disable= and systemd.unified_cgroup_hierarchy=0; in a container, have them delegated to it"}
	}
	return writable(root)
}

func lookV1(root string) error {
	var missing []string
	for _, c := range controllersV1 {
		if _, err := os.Stat(filepath.Join(root, c, "cgroup.procs")); err != nil {
			missing = append(missing, c)
		}
	}
	if len(missing) == len(controllersV1) {
		return &MissingError{0, root, missing, "mount -t cgroup2 none " + root}
	}
	if missing != nil {
		return &MissingError{V1, root, missing,
			"boot with systemd.unified_cgroup_hierarchy=1, or mount each: mount -t cgroup -o NAME none " + root + "/NAME"}
	}
	for _, c := range controllersV1 {
		if err := writable(filepath.Join(root, c)); err != nil {
			return err
		}
	}
	return nil
}

func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &ReadOnlyError{dir, err}
	}
	return nil
}
