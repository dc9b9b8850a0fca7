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

	"gaol/internal/kernfile"
)

// v2 implements a group as one directory of the unified hierarchy.
type v2 struct {
	root string
	need []string // controllers of each group; empty in tests of a mount without controllers
}

func newV2(root string, need []string) *v2 { return &v2{root: root, need: need} }

func (v *v2) dir(path string) string    { return filepath.Join(v.root, path) }
func (v *v2) dirs(path string) []string { return []string{v.dir(path)} }

func (v *v2) otherDirs(string) []string { return nil }

func (v *v2) identified() (backend, error)   { return v, nil }
func (v *v2) id(path string) (uint64, error) { return inode(v.dir(path)) }

// initRoot attaches a BPF program to the group that decides about devices. The library
// generates the program but does not attach it: its Update leaves a descriptor for each
// group open until the garbage collector runs.
func (v *v2) initRoot(path string, rules []specs.LinuxDeviceCgroup) error {
	code, license, err := cgroup2.DeviceFilter(rules)
	if err != nil {
		return err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.CGroupDevice, Instructions: code, License: license})
	if err != nil {
		return err
	}
	defer func() { _ = program.Close() }() // the group holds a reference
	dir, err := os.Open(v.dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return link.RawAttachProgram(link.RawAttachProgramOptions{
		Target: int(dir.Fd()), Program: program, Attach: ebpf.AttachCGroupDevice, Flags: unix.BPF_F_ALLOW_MULTI,
	})
}

// create does not use the library's NewManager, which enables the controllers of all
// parents each time, whether enabled or not: such a write waits until every group that is
// being deleted is gone.
func (v *v2) create(path string, l Limits) error {
	if err := v.enable(filepath.Dir(path)); err != nil {
		return err
	}
	err := v.mkdir(path)
	if errors.Is(err, fs.ErrExist) {
		err = v.enableControllers(filepath.Dir(path)) // waits as mkdir does, see enable
	}
	if err != nil {
		return err
	}
	return v.setLimits(path, l)
}

func (v *v2) setLimits(path string, l Limits) error {
	var errs []error
	set := func(file, text string) { errs = append(errs, kernfile.WriteFile(v.dir(path)+"/"+file, text)) }
	if l.Memory > 0 {
		set("memory.max", fmt.Sprint(l.Memory))
		errs = append(errs, ignoreGone(kernfile.WriteFile(v.dir(path)+"/memory.swap.max", "0"))) // missing if the kernel lacks swap
	}
	if l.CPUs > 0 {
		set("cpu.max", fmt.Sprint(l.quota(), cpuPeriod))
	}
	if l.Pids > 0 {
		set("pids.max", fmt.Sprint(l.Pids))
	}
	return errors.Join(errs...)
}

// enable creates the group at path if it is missing, and enables the controllers for the
// groups below it. It must be called before those are created.
//
// While another process enables controllers, the kernel already reports them as enabled,
// and an existing group may have any part of their files. Creating a group waits for that
// and creates all files.
func (v *v2) enable(path string) error {
	have, err := kernfile.ReadFile(v.subtree(path))
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
	return v.enableControllers(path)
}

// enableControllers enables the missing controllers; concurrent callers serialize in the
// kernel.
func (v *v2) enableControllers(path string) error {
	var text []string
	for _, c := range v.need {
		text = append(text, "+"+c)
	}
	err := kernfile.WriteFile(v.subtree(path), strings.Join(text, " "))
	for tries := 0; tries < 10 && path == "/" && errors.Is(err, unix.EBUSY); tries++ { // processes may fork meanwhile
		if err = v.vacate(); err == nil {
			err = kernfile.WriteFile(v.subtree(path), strings.Join(text, " "))
		}
	}
	if err != nil {
		return v.explain(path, err)
	}
	return nil
}

func (v *v2) mkdir(path string) error    { return os.Mkdir(v.dir(path), 0o755) }
func (v *v2) subtree(path string) string { return filepath.Join(v.dir(path), "cgroup.subtree_control") }

// explain adds to err why the controllers can't be enabled in path. A group with
// processes can't enable any for its children: the rule of no internal processes, see
// cgroups(7).
func (v *v2) explain(path string, err error) error {
	for parent := path; ; parent = filepath.Dir(parent) {
		pids, _ := listProcs([]string{v.dir(parent)})
		// Only the root is exempt, and only the root lacks cgroup.type.
		if _, statErr := os.Stat(v.dir(parent) + "/cgroup.type"); len(pids) > 0 && statErr == nil {
			return fmt.Errorf("%w: group %s holds processes (%d is one), so its children can't have controllers: "+
				"move them to a new group below it, or choose another parent", err, parent, pids[0])
		}
		if parent == "/" {
			return fmt.Errorf("%w: %s and the groups above it do not offer %s: delegate them (systemd: Delegate=yes)",
				err, path, strings.Join(v.need, ", "))
		}
	}
}

// kill kills the group and its descendants atomically by cgroup.kill, of Linux 5.14.
//
// It then kills each process: cgroup.kill, up to Linux 6.18 at least, signals only the
// first thread of a process. If that thread has ended while others run, the process
// survives. A signal to the process reaches the other threads.
//
// The library's Kill would also log, and wait for the processes as if they were children of
// this one.
func (v *v2) kill(path string, _ int) (bool, error) {
	top := v.dir(path)
	var populated int64
	if err := readKey(&populated, top+"/cgroup.events", "populated"); err != nil {
		return ignoreGone(err) == nil, ignoreGone(err)
	}
	if populated == 0 {
		return true, nil
	}
	killErr := ignoreGone(kernfile.WriteFile(top+"/cgroup.kill", "1"))
	dirs, err := tree(top)
	if err == nil {
		err = killProcs(dirs)
	}
	return false, errors.Join(killErr, err)
}

func (v *v2) setFrozen(path string, frozen bool) error {
	text := "0"
	if frozen {
		text = "1"
	}
	return kernfile.WriteFile(v.dir(path)+"/cgroup.freeze", text)
}

func (v *v2) isFreezing(path string) (bool, error) {
	var frozen int64
	err := readKey(&frozen, v.dir(path)+"/cgroup.events", "frozen")
	return frozen == 0, err
}

// usage reads only the files it needs; the library's Stat also reads memory.stat and
// io.stat.
func (v *v2) usage(path string) (Usage, error) {
	var u Usage
	var µs int64
	dir := v.dir(path)
	err := errors.Join(
		readKey(&µs, dir+"/cpu.stat", "usage_usec"),
		readInt(&u.Memory, dir+"/memory.current"),
		ignoreGone(readInt(&u.PeakMemory, dir+"/memory.peak")),
		readKey(&u.OOMKills, dir+"/memory.events", "oom_kill"), // includes descendants, unlike memory.events.local
		ignoreGone(readInt(&u.PeakPids, dir+"/pids.peak")),
		readKey(&u.PidsRefused, dir+"/pids.events", "max"),
	)
	u.CPU = time.Duration(µs) * time.Microsecond
	return u, err
}

func (v *v2) socketMemory(path string) (n int64, err error) {
	err = readKey(&n, v.dir(path)+"/memory.stat", "sock")
	return n, err
}

func (v *v2) fileMemory(path string) (n int64, err error) {
	err = readKey(&n, v.dir(path)+"/memory.stat", "shmem")
	return n, err
}

func (v *v2) reset(string, Usage, Limits) bool           { return false } // Linux can't reset the processor time
func (v *v2) isComplete(string) bool                     { return false }
func (v *v2) renew(string) error                         { return nil }
func (v *v2) release(path string) error                  { return removeAll(v.dirs(path)) }
func (v *v2) reuse(string, Limits, Limits) (int64, bool) { return 0, true }
