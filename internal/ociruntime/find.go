package ociruntime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// The runtimes that [Find] knows by name.
const (
	Runc = "runc"
	Crun = "crun"
)

// Runsc is gVisor's program. [Find] does not know it: sandboxes in gVisor are no containers.
const Runsc = "runsc"

// Gaol is gaol's own program, which is the running executable unless that is another program that uses gaol.
const Gaol = "gaol"

// QEMU and Mkfs are programs of Debian's packages qemu-system-x86 and erofs-utils, for virtual machines.
const (
	QEMU = "qemu-system-x86_64"
	Mkfs = "mkfs.erofs"
)

// cures describe how to install a missing program.
var cures = map[string]string{
	Runc:          `build it with "make build" or "go install -tags seccomp github.com/opencontainers/runc@v1.5", and set Options.OCI.Runtime to its path`,
	Crun:          `install it ("apt-get install crun"), or set Options.OCI.Runtime to its path`,
	Runsc:         `build it with "make gvisor", and put it beside gaol`,
	QEMU:          `install it ("apt-get install qemu-system-x86")`,
	Mkfs:          `install it ("apt-get install erofs-utils")`,
	Gaol:          `put it in PATH: build it with "make build"`,
	"gaol-server": `put it beside gaol: build it with "make build"`,
	"nats-server": `put it beside gaol: build it with "make build" or "go install github.com/nats-io/nats-server/v2@v2.15"`,
}

// Find returns the path of a runtime's program, without symbolic links:
//
//   - "" and "runc": runc beside the running executable, as make build puts it there, or in
//     ../lib/gaol, as make install does; else runc in PATH
//   - "crun": crun in PATH
//   - an absolute path: that file
//
// The program must be an executable regular file that only its owner can write. The owner must be
// root, the caller, or the owner of the running executable: in a developer's checkout, sudo executes
// programs that belong to the developer.
func Find(name string) (string, error) {
	f, err := ownFinder()
	if err != nil {
		return "", err
	}
	return f.find(name)
}

// FindGaol returns the path of [Gaol], beside the running executable or else in PATH, by the rules of [Find] for runc.
func FindGaol() (string, error) {
	f, err := ownFinder()
	if err != nil {
		return "", err
	}
	return f.besideOrInPath(Gaol)
}

// FindRunsc returns the path of [Runsc], by the rules of [Find] for runc.
func FindRunsc() (string, error) {
	f, err := ownFinder()
	if err != nil {
		return "", err
	}
	return f.besideOrInPath(Runsc)
}

// Machine is what virtual machines are made of.
type Machine struct {
	QEMU, Mkfs, Gaol string // programs
	Kernel, Modules  string // files that "make microvm" makes
}

// FindMachine returns the files of virtual machines: programs by the rules of [Find] for crun, [Gaol] as FindGaol, and files in
// the folder microvm beside the running executable, or beside gaol in PATH.
func FindMachine() (m Machine, err error) {
	f, err := ownFinder()
	if err != nil {
		return m, err
	}
	if m.QEMU, err = f.inPath(QEMU); err != nil {
		return m, err
	}
	if m.Mkfs, err = f.inPath(Mkfs); err != nil {
		return m, err
	}
	if m.Gaol, err = f.besideOrInPath(Gaol); err != nil {
		return m, err
	}
	for name, path := range map[string]*string{"microvm/kernel": &m.Kernel, "microvm/modules.cpio": &m.Modules} {
		*path, err = f.beside(name)
		if errors.Is(err, fs.ErrNotExist) {
			if gaol, failed := f.inPath(Gaol); failed == nil {
				*path, err = finder{filepath.Dir(gaol), f.owners}.beside(name)
			}
		}
		if err != nil {
			return m, fmt.Errorf("%w: fetch the kernel of virtual machines with \"make microvm\", and put its folder beside gaol", err)
		}
	}
	return m, nil
}

// Beside returns the path of another program that make build puts beside the running executable, by the rules of [Find] for runc,
// but without PATH. If it is missing, the error wraps [fs.ErrNotExist], names no path, and contains how to install it.
func Beside(name string) (string, error) {
	f, err := ownFinder()
	if err != nil {
		return "", err
	}
	path, err := f.beside(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("find %s: %w: %s", name, fs.ErrNotExist, cures[name])
	}
	return path, err
}

// A finder looks for programs of some owners, beside a folder of executables.
type finder struct {
	dir    string
	owners []uint32
}

// ownFinder returns the finder beside the running executable.
func ownFinder() (finder, error) {
	self, err := os.Executable()
	if err != nil {
		return finder{}, fmt.Errorf("find the running executable: %w", err)
	}
	owners := []uint32{0, uint32(os.Geteuid())} //nolint:gosec // a user's id is not negative on Linux
	if info, err := os.Stat("/proc/self/exe"); err == nil {
		owners = append(owners, owner(info))
	}
	return finder{filepath.Dir(self), owners}, nil
}

func (f finder) find(name string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		return f.check(name)
	case name == Crun:
		return f.inPath(Crun)
	case name != Runc && name != "":
		return "", fmt.Errorf("unknown OCI runtime %q: want runc, crun or an absolute path", name)
	}
	return f.besideOrInPath(Runc)
}

func (f finder) besideOrInPath(name string) (string, error) {
	if path, err := f.beside(name); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	return f.inPath(name)
}

func (f finder) beside(name string) (string, error) {
	path, err := f.check(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		path, err = f.check(filepath.Join(f.dir, "../lib/gaol", name))
	}
	return path, err
}

func (f finder) inPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("program %s: %w: %s", name, err, cures[name])
	}
	return f.check(path)
}

// check returns the path of a program that root may execute, without symbolic links.
func (f finder) check(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path) //nolint:forbidigo // of the operator, whose folders are trusted
	if err != nil {
		return "", fmt.Errorf("find a program: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("find a program: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("program %s is not a regular file", path)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("program %s is not executable: chmod +x %[1]s", path)
	case info.Mode()&0o022 != 0:
		return "", fmt.Errorf("program %s can be written by other users than its owner: chmod go-w %[1]s", path)
	case !slices.Contains(f.owners, owner(info)):
		return "", fmt.Errorf("program %s belongs to user %d instead of root: chown root %[1]s", path, owner(info))
	}
	return path, nil
}

func owner(info fs.FileInfo) uint32 {
	return info.Sys().(*syscall.Stat_t).Uid
}
