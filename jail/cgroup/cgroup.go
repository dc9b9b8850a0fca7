package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Limits are limits for all processes of a group and its descendants together.
// A zero field sets no limit; a negative one is an error.
type Limits struct {
	Memory int64   // bytes, including page cache and kernel memory; swap is never used; v1 allows as much again for TCP buffers
	CPUs   float64 // processors kept busy; less than 0.01 counts as 0.01
	Pids   int64   // tasks: processes and threads
}

// Usage is the resource usage of a group and its descendants, now and since its creation.
// In a group of a [Pool], Memory and PeakMemory may include a little that an earlier group
// has left.
type Usage struct {
	CPU         time.Duration // processor time, user and system
	Memory      int64         // bytes now
	PeakMemory  int64         // bytes; 0 on v2 before Linux 5.19, which does not count it
	PeakPids    int64         // tasks at one time; 0 before Linux 6.1, which does not count it
	OOMKills    int64         // processes killed because memory ran out; on v1, descendants are not counted
	PidsRefused int64         // forks that the limit on tasks refused, except during Kill
	FileMemory  int64         // bytes of files and shared memory in memory now; counted only if OOMKills is not 0
}

// Group is a cgroup: one directory on v2, and one in each of five hierarchies on v1.
// It is safe for concurrent use.
type Group struct {
	path   string
	on     backend
	limits Limits

	complete     bool                  // a spare's: all its directories exist that reset leaves
	earlierKills int64                 // OOM kills in earlier groups of the pool that used the same memory group
	refused      atomic.Pointer[int64] // forks refused before Kill refused any; nil: it has not
	wasFrozen    atomic.Bool

	mu      sync.RWMutex // held for reading while the directories are used
	deleted bool         // by its pool: the directories may belong to another group
}

// backend is the difference between v1 and v2. It takes the paths that [New] takes.
type backend interface {
	dirs(path string) []string      // the group's directories in the file system
	otherDirs(path string) []string // further directories of a namespace root
	initRoot(path string, rules []specs.LinuxDeviceCgroup) error
	create(path string, l Limits) error
	setLimits(path string, l Limits) error

	// kill makes the nth attempt, counting from 0. It does not wait for killed processes.
	kill(path string, n int) (empty bool, err error)

	// setFrozen begins to stop the processes, or lets them continue. isFreezing reports whether some have not stopped yet.
	setFrozen(path string, frozen bool) error
	isFreezing(path string) (bool, error)

	usage(path string) (Usage, error)
	socketMemory(path string) (int64, error)
	fileMemory(path string) (int64, error)

	// identified returns the backend whose groups have an id.
	identified() (backend, error)
	id(path string) (uint64, error)

	// reset and renew make an empty group as good as new, but for its memory: reset when it is deleted,
	// renew when it is needed. reset returns false if that is impossible. isComplete reports whether
	// all directories exist that reset leaves.
	reset(path string, used Usage, l Limits) bool
	isComplete(path string) bool
	renew(path string) error

	// release deletes an empty group except for the parts that a [Pool] reuses.
	release(path string) error

	// reuse prepares the parts that release has kept of a group with the limits old for one
	// with the limits l. It returns how many OOM kills they have counted, and false if too
	// much memory is charged to them.
	reuse(path string, old, l Limits) (kills int64, ok bool)
}

// New creates the group at path, such as "/gaol/j17/r1", relative to the root of the
// hierarchy, in a container to the container's group. It creates missing parents without limits, and never removes them. An
// existing group gets the limits and keeps its counters.
func New(path string, l Limits) (*Group, error) {
	on, err := machineBackend()
	if err != nil {
		return nil, err
	}
	return newGroup(on, path, l)
}

func newGroup(on backend, path string, l Limits) (*Group, error) {
	g := &Group{path: path, on: on, limits: l}
	if err := g.create(); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Group) create() error {
	if err := errors.Join(checkPath(g.path), g.limits.check(g.path)); err != nil {
		return err
	}
	if err := g.on.create(g.path, g.limits); err != nil {
		return errors.Join(fmt.Errorf("cgroup: create %s: %w", g.path, err), g.Delete())
	}
	return nil
}

// check returns an error if a limit is negative.
func (l Limits) check(path string) error {
	if l.Memory < 0 || !(l.CPUs >= 0) || l.Pids < 0 { // !(>=) rejects NaN too
		return fmt.Errorf("cgroup: create %s: negative limit in %+v", path, l)
	}
	return nil
}

// SetLimits replaces the limits of a group that no pool has created, except for zero fields. It tries all fields. The limit of
// memory cannot be lowered below its present use.
func (g *Group) SetLimits(l Limits) error {
	err := l.check(g.path)
	if err == nil {
		err = g.on.setLimits(g.path, l)
	}
	if err != nil {
		return fmt.Errorf("cgroup: limit %s: %w", g.path, err)
	}
	return nil
}

// Open returns the group at path, to kill and delete leftovers of an earlier process. The
// group need not exist: Kill and Delete treat a missing group as empty.
func Open(path string) (*Group, error) {
	on, err := machineBackend()
	if err != nil {
		return nil, err
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	return &Group{path: path, on: on}, nil
}

// checkPath rejects the root group and paths that leave the mount: all processes in the
// group may be killed.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return fmt.Errorf("cgroup: path %q is not absolute, clean and below the root", path)
	}
	return nil
}

// Path returns the group's path, as given to [New].
func (g *Group) Path() string { return g.path }

// Dirs returns the group's directories in the host's file system, one for each hierarchy, in
// the order in which a process joins them: the freezer's is the first, because Kill finds
// processes by the freezer.
//
// On v2 a process can be created in the open directory by clone3 with CLONE_INTO_CGROUP, the
// fastest way into the group. On v1 a process with a single thread writes "0" to the file
// "tasks" in each. That takes 0.15 ms for all five, where [Group.AddPID] takes 10 ms: a thread
// that moves only itself need not wait, once for each hierarchy, for every processor to pass
// through a quiescent state.
func (g *Group) Dirs() []string { return g.on.dirs(g.path) }

// AddPID moves a process with all its threads into the group. It takes some 10 ms unless
// another process was moved just before. [Group.Dirs] lists faster ways.
func (g *Group) AddPID(pid int) error {
	if pid <= 0 { // for the kernel, 0 is the caller itself
		return fmt.Errorf("cgroup: add to %s: bad pid %d", g.path, pid)
	}
	err := g.use(func() error {
		for _, d := range g.Dirs() {
			if err := kernfile.WriteFile(filepath.Join(d, procsFile), fmt.Sprint(pid)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cgroup: add pid %d to %s: %w", pid, g.path, err)
	}
	return nil
}

// PIDs returns the group's processes, excluding descendant groups. It returns none if the
// group does not exist.
func (g *Group) PIDs() ([]int, error) {
	pids, err := read(g, "processes", func(string) ([]int, error) { return listProcs(g.Dirs()[:1]) })
	return pids, ignoreGone(err)
}

// Usage reads the group's counters.
func (g *Group) Usage() (Usage, error) {
	u, err := read(g, "usage", g.on.usage)
	if err == nil {
		if u.OOMKills -= g.earlierKills; u.OOMKills > 0 {
			u.FileMemory, err = read(g, "file memory", g.on.fileMemory)
		}
		if refused := g.refused.Load(); refused != nil {
			u.PidsRefused = *refused
		}
	}
	return u, err
}

// SocketMemory returns how many bytes the group is charged for the queues of its sockets.
func (g *Group) SocketMemory() (int64, error) { return read(g, "socket memory", g.on.socketMemory) }

// ID returns the kernel's identifier of the group in the v2 hierarchy, which no later group
// reuses. On v1 only the groups of an identified [Pool] have one.
func (g *Group) ID() (uint64, error) { return read(g, "id", g.on.id) }

// inode returns a directory's inode, which for a cgroup is its id: see cgroup_id in the kernel.
func inode(dir string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	return st.Ino, nil
}

func read[T any](g *Group, what string, f func(path string) (T, error)) (value T, err error) {
	err = g.use(func() error {
		value, err = f(g.path)
		return err
	})
	if err != nil {
		err = fmt.Errorf("cgroup: %s of %s: %w", what, g.path, err)
	}
	return value, err
}

var errDeleted = fmt.Errorf("%w: its pool has deleted it", fs.ErrNotExist)

// use calls f unless the pool has deleted the group. The group is not deleted while f
// runs.
func (g *Group) use(f func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.deleted {
		return errDeleted
	}
	return f()
}

// Device is a character device that a group may use.
type Device struct {
	Major int64
	Minor int64 // AnyMinor: all
}

// AnyMinor matches all minor numbers. The library uses the same value.
const AnyMinor = -1

// NewNamespaceRoot creates the group at path as the root of a cgroup namespace. It exists
// in every hierarchy of the machine, including those without limits, so that the namespace
// hides the parent groups in all of them. Processes in it and in groups below may use only
// the given devices. Its resources are unlimited; [New] creates groups below it.
func NewNamespaceRoot(path string, devices []Device) (*Group, error) {
	on, err := machineBackend()
	if err != nil {
		return nil, err
	}
	return newNamespaceRoot(on, path, devices)
}

func newNamespaceRoot(on backend, path string, devices []Device) (*Group, error) {
	g, err := newGroup(on, path, Limits{})
	if err != nil {
		return nil, err
	}
	if err := on.initRoot(path, deviceRules(devices)); err != nil {
		return nil, errors.Join(fmt.Errorf("cgroup: create %s: %w", path, err), g.Delete())
	}
	return g, nil
}

// OtherDirs returns the directories of a namespace root that are not in [Group.Dirs].
func (g *Group) OtherDirs() []string { return g.on.otherDirs(g.path) }

// deviceRules deny all devices but the given ones.
func deviceRules(devices []Device) []specs.LinuxDeviceCgroup {
	all := int64(AnyMinor)
	rules := []specs.LinuxDeviceCgroup{{Type: "a", Major: &all, Minor: &all, Access: "rwm"}}
	for _, d := range devices {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &d.Major, Minor: &d.Minor, Access: "rw"})
	}
	return rules
}

// cpuPeriod, in microseconds, is the kernel's default.
const cpuPeriod = 100_000

// quota returns the processor time, in microseconds, that l allows in a period.
func (l Limits) quota() int64 {
	const least = 1000 // the kernel rejects less
	return max(least, int64(l.CPUs*cpuPeriod))
}

// Files returns, by path, the content of files from which libuv reads the limits of a
// process whose group is the root of its cgroup namespace. libuv chooses the version by the
// first line of /proc/self/cgroup, where any v1 hierarchy, even one without a controller,
// means v1. So the files of both versions are included.
func (l Limits) Files() map[string]string {
	page := int64(os.Getpagesize())
	memory, cpu := math.MaxInt64/page*page, "max" // v1's value for no limit
	memoryMax := "max"
	if l.Memory > 0 {
		memory = l.Memory / page * page
		memoryMax = strconv.FormatInt(memory, 10)
	}
	if l.CPUs > 0 {
		cpu = strconv.FormatInt(l.quota(), 10)
	}
	const dir = mountpoint + "/"
	return map[string]string{
		dir + "cgroup.controllers":                "cpu memory\n", // without this file libuv does not read cpu.max
		dir + "cpu.max":                           fmt.Sprintln(cpu, cpuPeriod),
		dir + "memory.high":                       "max\n",
		dir + "memory.max":                        memoryMax + "\n",
		dir + "memory/memory.limit_in_bytes":      fmt.Sprintln(memory),
		dir + "memory/memory.soft_limit_in_bytes": fmt.Sprintln(memory), // libuv takes the lower of both
	}
}

// readInt reads a file that contains one number.
func readInt(n *int64, file string) error {
	b, err := kernfile.ReadFile(file)
	if err != nil {
		return err
	}
	return parse(n, file, bytes.TrimSpace(b))
}

// readKey reads the number after key in a file of lines "key number". It leaves n
// unchanged if the key is missing, as older kernels lack some keys.
func readKey(n *int64, file, key string) error {
	b, err := kernfile.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		if k, v, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(k) == key {
			return parse(n, file, v)
		}
	}
	return nil
}

func parse(n *int64, file string, text []byte) error {
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	*n = v
	return nil
}

// ignoreGone returns nil if err means that a file or its group does not exist. Processes
// and groups may disappear at any time, and older kernels lack some files.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

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

// Detect returns the cgroup version of this machine. The error is a [*MissingError] if
// controllers are missing. It matches [fs.ErrPermission] if this process may not create groups.
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
		path, err := home(mountpoint, "/proc/1/cgroup", "/proc/self/cgroup")
		return newV2(mountpoint+path, controllersV2), err
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
		return fmt.Errorf("cgroup: %s: %w: run as root, and in a container with /sys/fs/cgroup writable", dir, err)
	}
	return nil
}
