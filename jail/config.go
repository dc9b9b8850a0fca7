package jail

import (
	"fmt"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	devices "github.com/opencontainers/cgroups/devices/config"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// config lowers a Spec to what libcontainer makes.
func config(s *Spec, stageDir string, group *cgroups.Cgroup, firstID int) *configs.Config {
	umask := uint32(0o022)
	oomScore := 1000 // a machine short of memory kills guests first
	ids := []configs.IDMap{{ContainerID: 0, HostID: int64(firstID), Size: idsEach}}
	return &configs.Config{
		Rootfs:          filepath.Join(stageDir, stageRoot),
		RootPropagation: unix.MS_PRIVATE | unix.MS_REC,
		Hostname:        s.Hostname,
		Namespaces: configs.Namespaces{
			{Type: configs.NEWUSER},
			{Type: configs.NEWPID},
			{Type: configs.NEWNS},
			{Type: configs.NEWNET},
			{Type: configs.NEWIPC},
			{Type: configs.NEWUTS},
			{Type: configs.NEWCGROUP},
		},
		UIDMappings:     ids,
		GIDMappings:     ids,
		NoNewPrivileges: true,
		Capabilities:    &configs.Capabilities{}, // none in any set
		Mounts:          append(mounts(s), deviceMounts(stageDir)...),
		MaskPaths:       maskedPaths,
		ReadonlyPaths:   readonlyPaths,
		Umask:           &umask,
		OomScoreAdj:     &oomScore,
		Networks:        []*configs.Network{{Type: "loopback"}},
		Cgroups:         group,
	}
}

func mounts(s *Spec) []*configs.Mount {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return []*configs.Mount{
		{Source: "proc", Destination: "/proc", Device: "proc", Flags: flags},
		{Source: "tmpfs", Destination: "/dev", Device: "tmpfs", Flags: unix.MS_NOSUID | unix.MS_STRICTATIME, Data: "mode=755,size=64k"},
		{Source: "devpts", Destination: "/dev/pts", Device: "devpts", Flags: unix.MS_NOSUID | unix.MS_NOEXEC, Data: "newinstance,ptmxmode=0666,mode=0620,gid=5,max=64"},
		{Source: "shm", Destination: "/dev/shm", Device: "tmpfs", Flags: flags, Data: fmt.Sprintf("mode=1777,size=%d,nr_inodes=1024", s.Shm)},
	}
}

// maskedPaths are hidden, readonlyPaths can't be written even by an owner. The
// lists are runc's, and what tells about the host's kernel, boot, disks, interrupts
// and other jails.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
		"/proc/cgroups", "/proc/config.gz", "/proc/iomem", "/proc/ioports", "/proc/kallsyms", "/proc/sys/kernel/random/boot_id",
		"/proc/cmdline", "/proc/diskstats", "/proc/interrupts", "/proc/modules", "/proc/partitions", "/proc/swaps",
	}
	readonlyPaths = []string{
		"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
	}
)

// deviceTable is all that there is in /dev besides pts and shm.
var deviceTable = []struct {
	path         string
	major, minor uint32
}{
	{"/dev/null", 1, 3},
	{"/dev/zero", 1, 5},
	{"/dev/full", 1, 7},
	{"/dev/random", 1, 8},
	{"/dev/urandom", 1, 9},
	{"/dev/tty", 5, 0},
}

// deviceMounts bind what makeDevices made.
func deviceMounts(stageDir string) []*configs.Mount {
	var mounts []*configs.Mount
	for _, d := range deviceTable {
		source := filepath.Join(stageDir, stageDev, filepath.Base(d.path))
		mounts = append(mounts, &configs.Mount{
			Source: source, Destination: d.path, Device: "bind", Flags: unix.MS_BIND | unix.MS_NOSUID | unix.MS_NOEXEC,
		})
	}
	return mounts
}

// deviceRules are the devices cgroup's: nothing but the table and what devpts makes.
func deviceRules() []*devices.Rule {
	var rules []*devices.Rule
	for _, d := range deviceTable {
		rule := deviceRule(int64(d.major), int64(d.minor))
		rules = append(rules, &rule)
	}
	ptmx, pts := deviceRule(5, 2), deviceRule(136, devices.Wildcard)
	return append(rules, &ptmx, &pts)
}

func deviceRule(major, minor int64) devices.Rule {
	return devices.Rule{Type: devices.CharDevice, Major: major, Minor: minor, Permissions: "rw", Allow: true}
}
