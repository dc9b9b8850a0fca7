package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail/kernfile"
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

// procsFile lists the processes of a group. Writing a pid to it moves the process there.
const procsFile = "cgroup.procs"

// controllersV1 are the v1 hierarchies of a group, in the order in which a process joins
// them. The freezer is first because Kill finds processes by it: a process in any other
// hierarchy must be in that one.
var controllersV1 = []string{"freezer", "pids", "memory", "cpu", "cpuacct"}

// controllersV2 must be enabled in a group's parent. Freezing and CPU accounting are part
// of v2 itself.
var controllersV2 = []string{"cpu", "memory", "pids"}

// MissingError is the error if this machine lacks cgroup controllers.
type MissingError struct {
	Version     Version // the version mounted at Path; 0: none
	Path        string
	Controllers []string // the missing ones
	Cure        string   // advice for the administrator
}

// Error names the missing controllers and the cure.
func (e *MissingError) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("cgroup: none mounted at %s: %s", e.Path, e.Cure)
	}
	return fmt.Sprintf("cgroup: %s at %s lacks %s: %s", e.Version, e.Path, strings.Join(e.Controllers, ", "), e.Cure)
}

// ReadOnlyError is the error if this process may not create cgroups.
type ReadOnlyError struct {
	Path string
	Err  error
}

// Error names the directory and the cure.
func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("cgroup: %s: %v: run as root, and in a container with /sys/fs/cgroup writable", e.Path, e.Err)
}

// Unwrap returns the error of access(2).
func (e *ReadOnlyError) Unwrap() error { return e.Err }

// Detect returns the cgroup version of this machine. The error is a [*MissingError] if
// controllers are missing, and a [*ReadOnlyError] if this process may not create groups.
// The result is not cached.
func Detect() (Version, error) { return detect(mountpoint) }

// machineBackend returns the backend for the version that Detect returns. It is cached: mounts do not
// change under a running server, and each run needs it.
var machineBackend = kernfile.Once(func() (backend, error) {
	v, err := detect(mountpoint)
	switch {
	case err != nil:
		return nil, err
	case v == V2:
		return newV2(mountpoint, controllersV2), nil
	}
	return newV1(mountpoint), nil
})

func detect(root string) (Version, error) {
	b, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")) // only v2 has this file
	switch {
	case err == nil:
		return V2, checkV2(root, strings.Fields(string(b)))
	case errors.Is(err, os.ErrNotExist):
		return V1, checkV1(root)
	default:
		return 0, fmt.Errorf("cgroup: detect: %w", err)
	}
}

func checkV2(root string, have []string) error {
	missing := slices.DeleteFunc(slices.Clone(controllersV2), func(c string) bool { return slices.Contains(have, c) })
	if len(missing) > 0 {
		return &MissingError{V2, root, missing,
			"boot without cgroup_disable= and systemd.unified_cgroup_hierarchy=0; in a container, delegate them to it"}
	}
	return checkWritable(root)
}

// checkV1 expects each hierarchy in a folder, or a link to one, with its controller's name. If
// there is none at all, the error advises v2, which needs a single mount.
func checkV1(root string) error {
	missing := slices.DeleteFunc(slices.Clone(controllersV1), func(c string) bool {
		_, err := os.Stat(filepath.Join(root, c, procsFile))
		return err == nil
	})
	if len(missing) == len(controllersV1) {
		return &MissingError{0, root, missing, "mount -t cgroup2 none " + root}
	}
	if len(missing) > 0 {
		return &MissingError{V1, root, missing,
			"boot with systemd.unified_cgroup_hierarchy=1, or mount each: mount -t cgroup -o NAME none " + root + "/NAME"}
	}
	for _, c := range controllersV1 {
		if err := checkWritable(filepath.Join(root, c)); err != nil {
			return err
		}
	}
	return nil
}

func checkWritable(dir string) error {
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &ReadOnlyError{dir, err}
	}
	return nil
}
