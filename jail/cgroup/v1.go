package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/cgroups/v3/cgroup1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// v1 implements a group as one directory per controller.
type v1 struct {
	root   string
	others func() ([]string, error)

	unified string // v2 hierarchy with a second directory for each group; "" for none
}

func newV1(root string) *v1 {
	return &v1{root: root, others: kernfile.Once(func() ([]string, error) { return otherHierarchies(root) })}
}

// identified returns a backend whose groups have a directory in a v2 hierarchy.
func (v *v1) identified() (backend, error) {
	others, err := v.others()
	if err != nil {
		return nil, err
	}
	for _, name := range others {
		if isMounted(filepath.Join(v.root, name), unix.CGROUP2_SUPER_MAGIC) {
			return &v1{v.root, v.others, name}, nil
		}
	}
	return nil, &MissingError{V2, v.root, []string{"a hierarchy beside v1"}, "mkdir " + v.root + "/unified && mount -t cgroup2 none " + v.root + "/unified"}
}

func (v *v1) id(path string) (uint64, error) {
	if v.unified == "" {
		return 0, fs.ErrNotExist
	}
	return inode(v.dir(v.unified, path))
}

func (v *v1) dir(controller, path string) string {
	return filepath.Join(v.root, controller, path)
}

func (v *v1) dirs(path string) []string {
	dirs := v.dirsIn(controllersV1, path)
	if v.unified != "" {
		dirs = append(dirs, v.dir(v.unified, path))
	}
	return dirs
}

func (v *v1) otherDirs(path string) []string {
	others, _ := v.others() // on error initRoot has failed
	return v.dirsIn(others, path)
}

func (v *v1) dirsIn(hierarchies []string, path string) (dirs []string) {
	for _, name := range hierarchies {
		dirs = append(dirs, v.dir(name, path))
	}
	return dirs
}

// initRoot initializes a group in the hierarchies that need more than a directory.
func (v *v1) initRoot(path string, rules []specs.LinuxDeviceCgroup) error {
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
		if err := v.copyCpuset(path); err != nil {
			return err
		}
	}
	return cgroup1.NewDevices(v.root).Create(path, &specs.LinuxResources{Devices: rules})
}

// copyCpuset gives a group the processors and memory nodes of its parent. Without them it can have no process.
func (v *v1) copyCpuset(path string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := kernfile.ReadFile(filepath.Join(v.dir("cpuset", filepath.Dir(path)), file))
		if err != nil || string(text) == "\n" || kernfile.WriteFile(filepath.Join(v.dir("cpuset", path), file), string(text)) != nil {
			return cgroup1.NewCpuset(v.root).Create(path, &specs.LinuxResources{}) // it also prepares the parents, but takes a quarter of a millisecond
		}
	}
	return nil
}

// create may find directories of an earlier group: a pool keeps memory groups.
func (v *v1) create(path string, l Limits) error {
	for _, d := range v.dirs(path) {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	return v.setLimits(path, l)
}

// setLimits sets limits. That on memory comes first: that on memory and swap together can't
// be lower than it, unless that is raised.
func (v *v1) setLimits(path string, l Limits) error {
	var errs []error
	set := func(controller, file, text string) error {
		return kernfile.WriteFile(filepath.Join(v.dir(controller, path), file), text)
	}
	if l.Memory > 0 {
		memory := fmt.Sprint(l.Memory)
		both := func() error { return ignoreGone(set("memory", "memory.memsw.limit_in_bytes", memory)) } // memory and swap together: none is left for swap
		err := set("memory", "memory.limit_in_bytes", memory)
		if errors.Is(err, unix.EINVAL) {
			err = errors.Join(both(), set("memory", "memory.limit_in_bytes", memory))
		}
		errs = append(errs, err, both(),
			set("memory", "memory.swappiness", "0"),
			ignoreGone(set("memory", "memory.kmem.tcp.limit_in_bytes", memory)), // buffers of TCP sockets, which v1 accounts separately
		)
	}
	if l.CPUs > 0 {
		// The period stays at the kernel's default: setting it makes the kernel visit every
		// group on the machine.
		const file = "cpu.cfs_quota_us"
		err := set("cpu", file, fmt.Sprint(l.quota()))
		if errors.Is(err, unix.EINVAL) { // more than the groups above have, as in a container with a limit
			err = set("cpu", file, fmt.Sprint(min(l.quota(), v.quotaAbove(path))))
		}
		errs = append(errs, err)
	}
	if l.Pids > 0 {
		errs = append(errs, set("pids", "pids.max", fmt.Sprint(l.Pids)))
	}
	return errors.Join(errs...)
}

// quotaAbove returns the processor time, in microseconds, that the groups above a group allow in a period of the kernel's default.
func (v *v1) quotaAbove(path string) int64 {
	for path != "/" {
		path = filepath.Dir(path)
		var quota, period int64
		_ = readInt(&quota, v.dir("cpu", path)+"/cpu.cfs_quota_us") // the machine's root has no such file
		_ = readInt(&period, v.dir("cpu", path)+"/cpu.cfs_period_us")
		if quota > 0 && period > 0 {
			return quota * cpuPeriod / period
		}
	}
	return math.MaxInt64
}

// plainKills is how many attempts kill makes before it disables forks. They give processes
// some six milliseconds to exit, which is enough for most.
const plainKills = 7

// kill signals every process that it finds. Processes that fork in between escape, so
// after some attempts it disables forks.
//
// It does not freeze the group first: frozen processes do not die on v1, so they would
// outlive a host that is killed before it can thaw them.
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
		forkErr = ignoreGone(kernfile.WriteFile(filepath.Join(v.dir("pids", path), "pids.max"), "0"))
	}
	killErr := killProcs(dirs)
	// Frozen processes do not die.
	var thawErr error
	for _, d := range dirs {
		thawErr = errors.Join(thawErr, kernfile.WriteFile(filepath.Join(d, "freezer.state"), "THAWED"))
	}
	return false, errors.Join(forkErr, killErr, thawErr)
}

func (v *v1) setFrozen(path string, frozen bool) error {
	text := "THAWED"
	if frozen {
		text = "FROZEN"
	}
	return kernfile.WriteFile(v.state(path), text)
}

// isFreezing returns false for a group that kill has thawed.
func (v *v1) isFreezing(path string) (bool, error) {
	text, err := kernfile.ReadFile(v.state(path))
	return string(text) == "FREEZING\n", err
}

func (v *v1) state(path string) string { return v.dir("freezer", path) + "/freezer.state" }

// usage reads six files. The library's Stat reads some thirty, including memory.stat, for
// which the kernel sums counters over all processors.
func (v *v1) usage(path string) (Usage, error) {
	var u Usage
	var cpu int64
	err := errors.Join(
		readInt(&cpu, v.dir("cpuacct", path)+"/cpuacct.usage"),
		readInt(&u.Memory, v.dir("memory", path)+"/memory.usage_in_bytes"),
		readInt(&u.PeakMemory, v.dir("memory", path)+"/memory.max_usage_in_bytes"),
		readKey(&u.OOMKills, v.dir("memory", path)+"/memory.oom_control", "oom_kill"),
		ignoreGone(readInt(&u.PeakPids, v.dir("pids", path)+"/pids.peak")),
		readKey(&u.PidsRefused, v.dir("pids", path)+"/pids.events", "max"),
	)
	u.CPU = time.Duration(cpu)
	return u, err
}

// maxLeft bounds the memory that may still be charged to a reused memory group. The next
// group has that much less memory, and its peak is that much too high. A run of Node leaves
// 0.2 to 1.2 MB, and nearly all of it is freed soon: the kernel charges up to 256 KB in
// advance on each processor, and frees the memory of a process late.
func maxLeft(limit int64) int64 { return max(2<<20, limit/128) }

// release keeps the memory group. No process is left in it once the hierarchies that
// processes join before it are removed: see Dirs.
func (v *v1) release(path string) error {
	return removeAll(slices.DeleteFunc(v.dirs(path), func(d string) bool { return d == v.dir("memory", path) }))
}

// reset removes the directory of the v2 hierarchy, whose id belongs to one group alone. A quota below one processor
// could be used up by the group before in the same period.
func (v *v1) reset(path string, used Usage, l Limits) bool {
	if used.PeakPids != 1 || used.PidsRefused != 0 || used.OOMKills != 0 || l.CPUs > 0 && l.CPUs < 1 {
		return false
	}
	if pids, err := listProcs(v.dirsIn(controllersV1[:1], path)); err != nil || len(pids) > 0 {
		return false // release returns the error
	}
	return v.unified == "" || removeAll([]string{v.dir(v.unified, path)}) == nil
}

func (v *v1) isComplete(path string) bool {
	return !slices.ContainsFunc(v.dirsIn(controllersV1, path), func(d string) bool {
		var st unix.Stat_t
		return unix.Stat(d, &st) != nil
	})
}

// renew resets the processor time, which the kernel may have charged after the end of a process.
func (v *v1) renew(path string) error {
	if err := kernfile.WriteFile(v.dir("cpuacct", path)+"/cpuacct.usage", "0"); v.unified == "" || err != nil {
		return err
	}
	return os.Mkdir(v.dir(v.unified, path), 0o755)
}

func (v *v1) reuse(path string, old, l Limits) (kills int64, ok bool) {
	memory := v.dir("memory", path)
	var left, tcp int64
	err := errors.Join(
		readInt(&left, memory+"/memory.usage_in_bytes"),
		ignoreGone(readInt(&tcp, memory+"/memory.kmem.tcp.usage_in_bytes")),
		readKey(&kills, memory+"/memory.oom_control", "oom_kill"),
	)
	if errors.Is(err, fs.ErrNotExist) { // it was removed by others: create will create it again
		return 0, true
	}
	if err != nil || left+tcp > maxLeft(l.Memory) {
		return 0, false
	}
	if old.Memory != l.Memory {
		const none = "-1"
		err = errors.Join( // the limit on memory and swap first: that on memory can't exceed it
			ignoreGone(kernfile.WriteFile(memory+"/memory.memsw.limit_in_bytes", none)),
			kernfile.WriteFile(memory+"/memory.limit_in_bytes", none),
			ignoreGone(kernfile.WriteFile(memory+"/memory.kmem.tcp.limit_in_bytes", none)),
		)
	}
	err = errors.Join(err, kernfile.WriteFile(memory+"/memory.max_usage_in_bytes", "0")) // resets the peak to the current usage
	return kills, err == nil
}

func (v *v1) socketMemory(path string) (n int64, err error) {
	err = ignoreGone(readInt(&n, v.dir("memory", path)+"/memory.kmem.tcp.usage_in_bytes"))
	return n, err
}

func (v *v1) fileMemory(path string) (n int64, err error) {
	err = readKey(&n, v.dir("memory", path)+"/memory.stat", "shmem")
	return n, err
}

// otherHierarchies returns the names of the hierarchies at root that are not in controllersV1:
// other v1 controllers, systemd's hierarchy and, often, a v2 hierarchy.
func otherHierarchies(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var own []os.FileInfo // compared by inode: cpu may be a link to cpu,cpuacct
	for _, c := range controllersV1 {
		if info, err := os.Stat(filepath.Join(root, c)); err == nil {
			own = append(own, info)
		}
	}
	var others []string
	for _, e := range entries {
		info, err := e.Info()
		isOwn := func(o os.FileInfo) bool { return os.SameFile(o, info) }
		isCgroup := isMounted(filepath.Join(root, e.Name()), unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC)
		if err == nil && e.IsDir() && isCgroup && !slices.ContainsFunc(own, isOwn) {
			others = append(others, e.Name())
		}
	}
	return others, nil
}

// isMounted reports whether a folder is in a file system of one of the types.
func isMounted(dir string, types ...int64) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && slices.Contains(types, fs.Type)
}
