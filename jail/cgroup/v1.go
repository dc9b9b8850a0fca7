package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// v1 keeps a group in one hierarchy per controller.
type v1 struct {
	root       string
	subsystems []cgroup1.Subsystem
	memsw      bool // the kernel counts swap, so a limit on it can be set
	tcp        bool // it counts the buffers of TCP sockets, which v1 does apart
	others     func() ([]string, error)
}

func newV1(root string) *v1 {
	has := func(file string) bool {
		_, err := os.Stat(filepath.Join(root, "memory", file))
		return err == nil
	}
	return &v1{
		root: root,
		// In the order of controllersV1, which is the order of AddPID.
		subsystems: []cgroup1.Subsystem{
			cgroup1.NewFreezer(root),
			cgroup1.NewPids(root),
			cgroup1.NewMemory(root),
			cgroup1.NewCpu(root),
			cgroup1.NewCpuacct(root),
		},
		memsw:  has("memory.memsw.limit_in_bytes"),
		tcp:    has("memory.kmem.tcp.limit_in_bytes"),
		others: sync.OnceValues(func() ([]string, error) { return otherHierarchies(root) }),
	}
}

func (v *v1) joinFile() string { return "tasks" }

func (v *v1) dir(controller, path string) string {
	return filepath.Join(v.root, controller, path)
}

func (v *v1) dirs(path string) []string {
	dirs := make([]string, len(controllersV1))
	for i, c := range controllersV1 {
		dirs[i] = v.dir(c, path)
	}
	return dirs
}

func (v *v1) otherDirs(path string) []string {
	others, _ := v.others() // makeTop has failed if this does
	dirs := make([]string, len(others))
	for i, name := range others {
		dirs[i] = v.dir(name, path)
	}
	return dirs
}

// makeTop leaves to the library what those hierarchies need that do not work as
// they are: a group of cpuset's must be given processors.
func (v *v1) makeTop(path string, rules []specs.LinuxDeviceCgroup) error {
	others, err := v.others()
	if err != nil {
		return err
	}
	for _, dir := range v.otherDirs(path) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if !slices.Contains(others, "devices") {
		return &MissingError{V1, v.root, []string{"devices"}, "mount -t cgroup -o devices none " + v.root + "/devices"}
	}
	if slices.Contains(others, "cpuset") {
		if err := cgroup1.NewCpuset(v.root).Create(path, &specs.LinuxResources{}); err != nil {
			return err
		}
	}
	return cgroup1.NewDevices(v.root).Create(path, &specs.LinuxResources{Devices: rules})
}

// hierarchy stands in for the library's default one, which reads the mount table
// for every group and makes it in eight more hierarchies that no limit needs.
func (v *v1) hierarchy() ([]cgroup1.Subsystem, error) { return v.subsystems, nil }

func (v *v1) create(path string, l Limits) error {
	_, err := cgroup1.New(cgroup1.StaticPath(path), v.resources(l), cgroup1.WithHierarchy(v.hierarchy))
	return err
}

func (v *v1) resources(l Limits) *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if l.Memory > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &l.Memory, Swappiness: new(uint64)}
		if v.memsw {
			r.Memory.Swap = &l.Memory // v1 counts memory and swap together: none is left for swap
		}
		if v.tcp {
			r.Memory.KernelTCP = &l.Memory
		}
	}
	if l.CPUs > 0 {
		// The period is as the kernel makes it: to set one, too, has it look at every
		// group on the machine.
		quota := l.quota()
		r.CPU = &specs.LinuxCPU{Quota: &quota}
	}
	if l.Pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: &l.Pids}
	}
	return r
}

func (v *v1) addPID(path string, pid int) error {
	g, err := cgroup1.Load(cgroup1.StaticPath(path), cgroup1.WithHierarchy(v.hierarchy))
	if err != nil {
		return err
	}
	return g.AddProc(uint64(pid))
}

// plainKills is how many attempts come before one that stops forks: the processes that
// they kill have some six milliseconds to end, which few need.
const plainKills = 7

// kill signals every process that it finds, which ends all but what forks in between.
// From then on, after some attempts, forks fail: each counts as refused in Usage, so
// this is not the first thing to do.
//
// It does not freeze the group instead. Frozen processes do not die on v1, so a host that
// was killed before it could thaw them would leave them.
func (v *v1) kill(path string, n int) (bool, error) {
	top := v.dir("freezer", path)
	dirs, err := tree(top)
	if err != nil {
		return false, err
	}
	if pids, err := listProcs(dirs); err != nil || len(pids) == 0 {
		return err == nil, err
	}
	var forkErr error
	if n >= plainKills {
		forkErr = gone(writeFile(filepath.Join(v.dir("pids", path), "pids.max"), "0"))
	}
	killErr := killProcs(dirs)
	// Somebody else may have frozen any of them.
	var thawErr error
	for _, d := range dirs {
		thawErr = errors.Join(thawErr, writeFile(filepath.Join(d, "freezer.state"), "THAWED"))
	}
	return false, errors.Join(forkErr, killErr, thawErr)
}

// usage reads six files. The library's Stat reads some thirty, memory.stat among
// them, for which the kernel first sums up counters over all processors.
func (v *v1) usage(path string) (Usage, error) {
	var u Usage
	var cpu int64
	err := errors.Join(
		readInt(&cpu, v.dir("cpuacct", path)+"/cpuacct.usage"),
		readInt(&u.Memory, v.dir("memory", path)+"/memory.usage_in_bytes"),
		readInt(&u.PeakMemory, v.dir("memory", path)+"/memory.max_usage_in_bytes"),
		readKey(&u.OOMKills, v.dir("memory", path)+"/memory.oom_control", "oom_kill"),
		optional(readInt(&u.PeakPids, v.dir("pids", path)+"/pids.peak")),
		readKey(&u.PidsRefused, v.dir("pids", path)+"/pids.events", "max"),
	)
	u.CPU = time.Duration(cpu)
	return u, err
}

// mostLeft bounds what may be charged to a group in the memory hierarchy that is reused:
// the next one has so much less, and its peak is so much too high. A run of Node
// leaves 0.2 to 1.2 MB, nearly all of which is gone soon: the kernel charges up to
// 256 KB in advance on each processor, and is late to free what belonged to a process.
func mostLeft(limit int64) int64 { return max(2<<20, limit/128) }

// retire keeps the memory. No process is in it once those that joined before it are
// removed: see JoinFiles.
func (v *v1) retire(path string) error {
	memory := v.dir("memory", path)
	return removeAll(slices.DeleteFunc(v.dirs(path), func(d string) bool { return d == memory }))
}

func (v *v1) reuse(path string, old, l Limits) (kills int64, ok bool) {
	memory := v.dir("memory", path)
	var left, tcp int64
	err := errors.Join(
		readInt(&left, memory+"/memory.usage_in_bytes"),
		optional(readInt(&tcp, memory+"/memory.kmem.tcp.usage_in_bytes")),
		readKey(&kills, memory+"/memory.oom_control", "oom_kill"),
	)
	if errors.Is(err, fs.ErrNotExist) { // somebody else has removed it: create makes it anew
		return 0, true
	}
	if err != nil || left+tcp > mostLeft(l.Memory) {
		return 0, false
	}
	if old.Memory != l.Memory {
		err = v.unlimit(memory)
	}
	err = errors.Join(err, writeFile(memory+"/memory.max_usage_in_bytes", "0")) // it begins with what is used now
	return kills, err == nil
}

// unlimit lifts the limits that create sets. The one on memory and swap comes first: the
// other can't exceed it.
func (v *v1) unlimit(memory string) error {
	const none = "-1"
	return errors.Join(
		optional(writeFile(memory+"/memory.memsw.limit_in_bytes", none)),
		writeFile(memory+"/memory.limit_in_bytes", none),
		optional(writeFile(memory+"/memory.kmem.tcp.limit_in_bytes", none)),
	)
}

// optional forgives a file that older kernels do not have.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
