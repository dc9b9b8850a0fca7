package procfs

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

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
