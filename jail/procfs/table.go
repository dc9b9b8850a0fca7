package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/internal/kernfile"
)

// Write makes these in addition to the entries of other sources than Kernel. Mounted over an
// entry they hide it.
const (
	EmptyFile   = "file"
	EmptyFolder = "folder"
)

// BootID is the path below /proc of the boot's id. Of all entries, only this one identifies the machine.
const BootID = "sys/kernel/random/boot_id"

// Config defines the contents of the files.
type Config struct {
	Hostname string
	Memory   int64   // bytes; 0: all of the machine's
	CPUs     float64 // processors, rounded up; 0: all of the machine's
}

// Write fills a folder with the files that are mounted over a jail's /proc: the entries of
// [RootEntries] and, below sys, of [Sysctls]. For the kernel's own entries it makes an empty
// file as the mount point. It omits sysctls that do not exist on the host.
//
// Preconditions: the umask is 0.
func Write(dir string, c Config) error {
	cpuinfo, err1 := readCPUInfo()
	processors, cpuinfo := limitProcessors(cpuinfo, c.CPUs)
	stat, err2 := makeStat(processors)
	meminfo, err3 := makeMeminfo(c.Memory)
	bootID, err4 := kernfile.ReadFile("/proc/sys/kernel/random/uuid") // the kernel makes a new one for each reader
	err := errors.Join(err1, err2, err3, err4, os.Mkdir(filepath.Join(dir, EmptyFolder), 0o555))
	if err != nil {
		return err
	}
	files := map[string]string{
		"cpuinfo": cpuinfo, "meminfo": meminfo, "stat": stat, EmptyFile: "",
		"sys/kernel/domainname":  "(none)\n",
		"sys/kernel/hostname":    c.Hostname + "\n",
		BootID:                   string(bootID),
		"sys/net/core/somaxconn": "4096\n", // of every new network namespace since Linux 5.4
	}
	for _, e := range Sysctls { // copies of the host's, and mount points for the kernel's own entries
		var text []byte
		var err error
		switch e.Source {
		case Generated:
			continue
		case Copied:
			text, err = kernfile.ReadFile("/proc/sys/" + e.Name)
		}
		if err == nil {
			files["sys/"+e.Name] = string(text)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o555), os.WriteFile(path, []byte(text), 0o444)); err != nil {
			return err
		}
	}
	return nil
}

// makeStat makes a /proc/stat in which all processors have been idle since the machine
// started: programs that compute shares must not divide by 0.
func makeStat(processors []int) (string, error) {
	var now, up unix.Timespec
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_REALTIME, &now), unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)); err != nil {
		return "", os.NewSyscallError("clock_gettime", err)
	}
	return formatStat(processors, up.Sec, now.Sec-up.Sec), nil
}

// formatStat formats a file as in proc_stat(5). Times are in seconds.
func formatStat(processors []int, idle, boot int64) string {
	const ticks = 100 // a second, USER_HZ
	var b strings.Builder
	line := func(name string, idle int64) { fmt.Fprintf(&b, "%s 0 0 0 %d 0 0 0 0 0 0\n", name, idle) }
	line("cpu ", idle*ticks*int64(len(processors)))
	for _, n := range processors {
		line("cpu"+strconv.Itoa(n), idle*ticks)
	}
	fmt.Fprintf(&b, "intr 0\nctxt 0\nbtime %d\nprocesses 0\nprocs_running 1\nprocs_blocked 0\nsoftirq%s\n", boot, strings.Repeat(" 0", 11))
	return b.String()
}

// makeMeminfo makes a /proc/meminfo with no more memory than the limit.
func makeMeminfo(limit int64) (string, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return "", os.NewSyscallError("sysinfo", err)
	}
	total := int64(info.Totalram) * int64(info.Unit)
	if limit > 0 {
		total = min(total, limit)
	}
	return formatMeminfo(total), nil
}

// formatMeminfo formats the fields of proc_meminfo(5) that free, top and libuv read. All
// memory is free: the file does not change as the runs use it.
func formatMeminfo(total int64) string {
	var b strings.Builder
	for _, name := range []string{
		"MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "Active", "Inactive",
		"SwapTotal", "SwapFree", "Dirty", "Writeback", "Shmem", "Slab", "SReclaimable", "SUnreclaim",
	} {
		kib := int64(0)
		if strings.HasPrefix(name, "Mem") {
			kib = total >> 10
		}
		fmt.Fprintf(&b, "%-15s %8d kB\n", name+":", kib)
	}
	return b.String()
}

// readCPUInfo caches the kernel's /proc/cpuinfo: the kernel measures the speed of each
// processor for every reader.
var readCPUInfo = kernfile.Once(func() (string, error) {
	text, err := os.ReadFile("/proc/cpuinfo")
	return string(text), err
})

// limitProcessors returns a /proc/cpuinfo with only the first processors, as many as the limit,
// rounded up, and their numbers. A limit of 0 is none.
func limitProcessors(cpuinfo string, limit float64) (numbers []int, text string) {
	var b strings.Builder
	for section := range strings.SplitAfterSeq(cpuinfo, "\n\n") {
		var number int
		_, err := fmt.Sscanf(section, "processor : %d", &number)
		isProcessor := err == nil
		if isProcessor && limit > 0 && float64(len(numbers)) >= limit {
			continue
		}
		if isProcessor {
			numbers = append(numbers, number)
		}
		b.WriteString(section)
	}
	return numbers, b.String()
}

// Entry is an entry of /proc that guests see.
type Entry struct {
	Name   string // path below the folder that the table is about
	Reason string // programs that need it, or, if it can't be hidden, the information that it leaks
	Source Source
}

// Source is where an entry's content comes from.
type Source int

// The zero value is the kernel's own entry, as seen in the jail's namespaces.
const (
	Kernel    Source = iota
	Copied           // a copy of the host's entry from when the jail was created
	Generated        // a file that Write generates
)

// RootEntries are the entries of /proc except for the folders of processes.
var RootEntries = []Entry{
	{Name: "cpuinfo", Reason: "os.cpus, libraries that select code by processor features; the CPUID instruction reports the same; it lists as many processors as the limit", Source: Generated},
	{Name: "loadavg", Reason: "os.loadavg, uptime, top; sysinfo(2) reports the same except the runnable threads"},
	{Name: "meminfo", Reason: "os.totalmem, free, sizes of caches and heaps: reports the limit; sysinfo(2) reports the machine's memory", Source: Generated},
	{Name: "mounts", Reason: "link to the process's own: df, mount"},
	{Name: "net", Reason: "link to the process's own: netstat, route"},
	{Name: "self", Reason: "link to the process's own: fd, exe, maps"},
	{Name: "stat", Reason: "os.cpus, top and sysconf count the processors, ps reads the boot time; the kernel's file also counts interrupts, processes and load", Source: Generated},
	{Name: "sys", Reason: "see Sysctls", Source: Generated},
	{Name: "thread-self", Reason: "link to the thread's own"},
	{Name: "uptime", Reason: "os.uptime, ps, top; sysinfo(2) and CLOCK_BOOTTIME report the same except the idle time"},
	{Name: "version", Reason: "is-wsl, procps; uname(2) reports the same except the compiler"},
}

// Sysctls are the entries of /proc/sys.
var Sysctls = []Entry{
	{Name: "crypto/fips_enabled", Reason: "OpenSSL of Red Hat, GnuTLS, libgcrypt: use of approved algorithms only", Source: Copied},
	{Name: "fs/inotify/max_user_watches", Reason: "fsnotifier of JetBrains, Watchman", Source: Copied},
	{Name: "kernel/cap_last_cap", Reason: "libcap-ng, setpriv, systemd", Source: Copied},
	{Name: "kernel/domainname", Reason: "scripts that do not call uname(2), which reports the same", Source: Generated},
	{Name: "kernel/hostname", Reason: "scripts that do not call uname(2), which reports the same", Source: Generated},
	{Name: "kernel/ngroups_max", Reason: "sysconf in glibc", Source: Copied},
	{Name: "kernel/osrelease", Reason: "procps; uname(2) reports the same", Source: Copied},
	{Name: "kernel/pid_max", Reason: "ps, top and htop, for the width of a column", Source: Copied},
	{Name: "kernel/random/boot_id", Reason: "node-machine-id's fallback, systemd's tools; one for each sandbox: the kernel's identifies the machine", Source: Generated},
	{Name: "kernel/random/uuid", Reason: "scripts; the kernel makes a new one for each reader"},
	{Name: "net/core/somaxconn", Reason: "Go, Redis and netty, for listen(2); kernels before 6.2 do not show it in user namespaces", Source: Generated},
	{Name: "vm/max_map_count", Reason: "Java, Elasticsearch", Source: Copied},
	{Name: "vm/overcommit_memory", Reason: "malloc in glibc, jemalloc and mimalloc; Redis", Source: Copied},
}

// NetEntries are the entries of /proc/PID/net. Each shows only its network namespace,
// unlike sockstat, protocols, softnet_stat and stat, which are not listed.
var NetEntries = []Entry{
	{Name: "arp", Reason: "arp, packages that look for neighbours"},
	{Name: "dev", Reason: "ifconfig, psutil, systeminformation"},
	{Name: "fib_trie", Reason: "scripts that look for local addresses"},
	{Name: "icmp", Reason: "lsof"},
	{Name: "icmp6", Reason: "lsof"},
	{Name: "if_inet6", Reason: "ifconfig, scripts that detect IPv6"},
	{Name: "igmp", Reason: "netstat -g"},
	{Name: "igmp6", Reason: "netstat -g"},
	{Name: "ipv6_route", Reason: "route, netstat -r"},
	{Name: "netstat", Reason: "netstat -s, nstat"},
	{Name: "packet", Reason: "lsof, ss"},
	{Name: "raw", Reason: "netstat, lsof"},
	{Name: "raw6", Reason: "netstat, lsof"},
	{Name: "route", Reason: "route, netstat -r, packages that look for a gateway"},
	{Name: "snmp", Reason: "netstat -s, nstat"},
	{Name: "snmp6", Reason: "netstat -s, nstat"},
	{Name: "tcp", Reason: "netstat, lsof, packages that look for the process of a port"},
	{Name: "tcp6", Reason: "netstat, lsof, packages that look for the process of a port"},
	{Name: "udp", Reason: "netstat, lsof, packages that look for the process of a port"},
	{Name: "udp6", Reason: "netstat, lsof, packages that look for the process of a port"},
	{Name: "udplite", Reason: "lsof"},
	{Name: "udplite6", Reason: "lsof"},
	{Name: "unix", Reason: "netstat, lsof, ss"},
}

// HideNet removes all permissions from the entries of /proc/PID/net that [NetEntries] does
// not list. They belong to the host's root and are shared by all processes of the network
// namespace.
//
// Preconditions: the process is in the jail's own network namespace.
func HideNet(pid int) error {
	path := "/proc/" + strconv.Itoa(pid) + "/net/"
	entries, err := os.ReadDir(path)
	if errors.Is(err, unix.EINVAL) { // the process has ended and left its namespace
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range entries {
		if slices.ContainsFunc(NetEntries, func(e Entry) bool { return e.Name == f.Name() }) {
			continue
		}
		if err := os.Chmod(path+f.Name(), 0); err != nil && !errors.Is(err, unix.ENOENT) { // its module was unloaded
			return err
		}
	}
	return nil
}
