package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/containerd/cgroups/v3/cgroup2"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// v2 keeps a group in the one unified hierarchy.
type v2 struct {
	root string
	need []string // controllers that a group must have; tests of a mount without any need none
}

func newV2(root string, need []string) *v2 { return &v2{root: root, need: need} }

func (v *v2) joinFile() string          { return "cgroup.procs" }
func (v *v2) dir(path string) string    { return filepath.Join(v.root, path) }
func (v *v2) dirs(path string) []string { return []string{v.dir(path)} }

func (v *v2) otherDirs(string) []string { return nil }

// makeTop puts a program on the group that the kernel asks about devices. The library
// only writes it: loading it, its Update leaves a descriptor open until the garbage
// collector comes by, one for each group.
func (v *v2) makeTop(path string, rules []specs.LinuxDeviceCgroup) error {
	code, license, err := cgroup2.DeviceFilter(rules)
	if err != nil {
		return err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupDevice, Instructions: code, License: license})
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }() // the group keeps it
	dir, err := os.Open(v.dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return link.RawAttachProgram(link.RawAttachProgramOptions{
		Target: int(dir.Fd()), Program: program, Attach: ebpf.AttachCGroupDevice, Flags: unix.BPF_F_ALLOW_MULTI,
	})
}

func (v *v2) manager(path string) (*cgroup2.Manager, error) {
	return cgroup2.Load(path, cgroup2.WithMountpoint(v.root))
}

// create does not use the library's NewManager, which enables the controllers of
// all parents each time: such a write waits for the removal of every group that
// is just being deleted, however little it changes.
func (v *v2) create(path string, l Limits) error {
	if err := v.enable(filepath.Dir(path)); err != nil {
		return err
	}
	err := v.mkdir(path)
	if errors.Is(err, fs.ErrExist) {
		err = v.toggle(filepath.Dir(path)) // waits, as mkdir does
	}
	if err != nil {
		return err
	}
	m, err := v.manager(path)
	if err != nil {
		return err
	}
	return m.Update(v.resources(path, l))
}

// enable makes the group at path, unless it is there, and has the groups below it
// get their controllers. It comes before those are made. Another may enable them at
// the same time, which takes a while, in which the kernel tells already that they
// are on: a group that is there may have some of their files, all or none. Making
// one waits for that, and gives it all of them.
func (v *v2) enable(path string) error {
	have, err := readFile(v.subtree(path))
	if err == nil && !slices.ContainsFunc(v.need, func(c string) bool { return !slices.Contains(strings.Fields(string(have)), c) }) {
		return nil
	}
	if path != "/" {
		if err := v.enable(filepath.Dir(path)); err != nil {
			return err
		}
		if err := v.mkdir(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return v.toggle(path)
}

// toggle has the kernel enable what is not, and wait for who does the same.
func (v *v2) toggle(path string) error {
	var text []string
	for _, c := range v.need {
		text = append(text, "+"+c)
	}
	if err := writeFile(v.subtree(path), strings.Join(text, " ")); err != nil {
		return v.explain(path, err)
	}
	return nil
}

func (v *v2) mkdir(path string) error    { return os.Mkdir(v.dir(path), 0o755) }
func (v *v2) subtree(path string) string { return filepath.Join(v.dir(path), "cgroup.subtree_control") }

// explain looks for the group that kept the controllers from being enabled in path. A
// group that holds processes can't pass any on to children: the rule of no
// internal processes, see cgroups(7).
func (v *v2) explain(path string, err error) error {
	for parent := path; ; parent = filepath.Dir(parent) {
		pids, _ := listProcs([]string{v.dir(parent)})
		// Only a real root is exempt, and only it has no cgroup.type.
		if _, statErr := os.Stat(v.dir(parent) + "/cgroup.type"); len(pids) > 0 && statErr == nil {
			return fmt.Errorf("%w: group %s holds processes (%d is one), so its children can't have controllers: "+
				"move them to a group of their own below it, or choose another parent", err, parent, pids[0])
		}
		if parent == "/" {
			return fmt.Errorf("%w: %s and the groups above it do not offer %s: have them delegated (systemd: Delegate=yes)",
				err, path, strings.Join(v.need, ", "))
		}
	}
}

func (v *v2) resources(path string, l Limits) *cgroup2.Resources {
	r := &cgroup2.Resources{}
	if l.Memory > 0 {
		r.Memory = &cgroup2.Memory{Max: &l.Memory}
		if _, err := os.Stat(v.dir(path) + "/memory.swap.max"); err == nil { // not there if the kernel has no swap
			r.Memory.Swap = new(int64)
		}
	}
	if l.CPUs > 0 {
		quota, period := l.quota(), uint64(cpuPeriod)
		r.CPU = &cgroup2.CPU{Max: cgroup2.NewCPUMax(&quota, &period)}
	}
	if l.Pids > 0 {
		r.Pids = &cgroup2.Pids{Max: l.Pids}
	}
	return r
}

func (v *v2) addPID(path string, pid int) error {
	// A missing group would otherwise read "permission denied": the library
	// opens cgroup.procs with O_CREATE.
	if _, err := os.Stat(v.dir(path)); err != nil {
		return err
	}
	m, err := v.manager(path)
	if err != nil {
		return err
	}
	return m.AddProc(uint64(pid))
}

// kill asks the kernel to kill the group and its descendants at once. The
// library's own Kill is not used since it would also log, and wait for the
// processes as if they were our children.
func (v *v2) kill(path string, _ int) (bool, error) {
	top := v.dir(path)
	var populated int64
	if err := readKey(&populated, top+"/cgroup.events", "populated"); err != nil {
		return gone(err) == nil, gone(err)
	}
	if populated == 0 {
		return true, nil
	}
	err := writeFile(top+"/cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) {
		return false, v.killByFreezing(top)
	}
	return false, errors.Join(err, v.killHeadless(top))
}

// killHeadless kills processes whose first thread has ended while others go on. It
// is to that one alone that cgroup.kill sends its signal, of Linux 6.18 too: the
// process goes on. A signal to the process finds another thread.
func (v *v2) killHeadless(top string) error {
	dirs, err := tree(top)
	if err != nil {
		return err
	}
	return killProcs(dirs)
}

// killByFreezing is for Linux before 5.14, without cgroup.kill.
func (v *v2) killByFreezing(top string) error {
	dirs, err := tree(top)
	if err != nil {
		return err
	}
	// Here the frozen do die, so that they are thawed only for who comes next.
	return errors.Join(
		writeFile(top+"/cgroup.freeze", "1"),
		killProcs(dirs),
		writeFile(top+"/cgroup.freeze", "0"),
	)
}

// usage reads the few files it needs; the library's Stat reads all of
// memory.stat and io.stat, too.
func (v *v2) usage(path string) (Usage, error) {
	var u Usage
	var µs int64
	dir := v.dir(path)
	err := errors.Join(
		readKey(&µs, dir+"/cpu.stat", "usage_usec"),
		readInt(&u.Memory, dir+"/memory.current"),
		optional(readInt(&u.PeakMemory, dir+"/memory.peak")),
		readKey(&u.OOMKills, dir+"/memory.events", "oom_kill"), // counts descendants; memory.events.local does not
		optional(readInt(&u.PeakPids, dir+"/pids.peak")),
		readKey(&u.PidsRefused, dir+"/pids.events", "max"),
	)
	u.CPU = time.Duration(µs) * time.Microsecond
	return u, err
}

func (v *v2) retire(path string) error                   { return removeAll(v.dirs(path)) }
func (v *v2) reuse(string, Limits, Limits) (int64, bool) { return 0, true }

// A process can vanish at any time, its group between two calls.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
