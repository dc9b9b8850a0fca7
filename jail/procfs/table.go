package procfs

// Entry is an entry of /proc that guests see.
type Entry struct {
	Name   string // path below the folder that the table is about
	Reason string // programs that need it, or what it shows if it can't be hidden
	Source Source

	// Traced is for ProcessEntries: the kernel refuses access to it, or to its content,
	// unless the reader may trace the process. No guest may trace pid 1.
	Traced bool
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

// ProcessEntries are the entries of /proc/PID and /proc/PID/task/TID. All are the
// kernel's: nothing can be mounted over the entries of every process.
var ProcessEntries = []Entry{
	{Name: "arch_status", Reason: "when the process last used AVX-512"},
	{Name: "attr", Reason: "labels of security modules: libselinux, libapparmor"},
	{Name: "autogroup", Reason: "its scheduling group"},
	{Name: "auxv", Traced: true, Reason: "libraries that look for processor features"},
	{Name: "cgroup", Reason: "its path in the cgroup namespace: Java and Go look for limits"},
	{Name: "children", Reason: "children of a thread: process managers such as pm2"},
	{Name: "clear_refs", Reason: "only written"},
	{Name: "cmdline", Reason: "ps, top"},
	{Name: "comm", Reason: "ps, top, killall"},
	{Name: "coredump_filter", Reason: "its own setting; no core is dumped"},
	{Name: "cpu_resctrl_groups", Reason: "cache allocation, if the host mounts resctrl"},
	{Name: "cpuset", Reason: "its path in the cgroup namespace"},
	{Name: "cwd", Traced: true, Reason: "pwdx, lsof"},
	{Name: "environ", Traced: true, Reason: "ps e"},
	{Name: "exe", Traced: true, Reason: "process.execPath, Rust's current_exe"},
	{Name: "fail-nth", Reason: "fault injection of kernels for tests"},
	{Name: "fd", Traced: true, Reason: "/dev/stdin and its like, lsof"},
	{Name: "fdinfo", Traced: true, Reason: "positions and flags of files"},
	{Name: "gid_map", Reason: "tools that look for a user namespace; it shows the host's ids"},
	{Name: "io", Traced: true, Reason: "pidstat"},
	{Name: "ksm_merging_pages", Reason: "its own merged memory"},
	{Name: "ksm_stat", Reason: "its own merged memory"},
	{Name: "latency", Reason: "its own latencies, if the kernel measures them"},
	{Name: "limits", Reason: "prlimit, scripts"},
	{Name: "loginuid", Reason: "audit's login id, which reads as unset in the user namespace; sudo, PAM"},
	{Name: "make-it-fail", Reason: "fault injection of kernels for tests"},
	{Name: "map_files", Traced: true, Reason: "the files in maps"},
	{Name: "maps", Traced: true, Reason: "V8, sanitizers, profilers, glibc for the stack of the main thread"},
	{Name: "mem", Traced: true, Reason: "debuggers, which can't write to it"},
	{Name: "mountinfo", Reason: "Java, Go and df"},
	{Name: "mounts", Reason: "as mountinfo"},
	{Name: "mountstats", Reason: "as mountinfo"},
	{Name: "net", Reason: "its network namespace: netstat, lsof, route: see NetEntries"},
	{Name: "ns", Traced: true, Reason: "lsns"},
	{Name: "numa_maps", Traced: true, Reason: "numactl"},
	{Name: "oom_adj", Reason: "the older form of oom_score_adj"},
	{Name: "oom_score", Reason: "top, htop"},
	{Name: "oom_score_adj", Reason: "OpenSSH, PostgreSQL and Chromium read it before they write, which fails"},
	{Name: "pagemap", Traced: true, Reason: "page frame numbers are 0 without CAP_SYS_ADMIN"},
	{Name: "patch_state", Reason: "live patches of the kernel; root only"},
	{Name: "personality", Traced: true, Reason: "setarch"},
	{Name: "projid_map", Reason: "as uid_map; empty"},
	{Name: "root", Traced: true, Reason: "ls, lsof"},
	{Name: "sched", Reason: "its own times and switches"},
	{Name: "schedstat", Reason: "its own times; pidstat"},
	{Name: "seccomp_cache", Reason: "its own filter; root only"},
	{Name: "sessionid", Reason: "audit's session; PAM"},
	{Name: "setgroups", Reason: "tools that look for a user namespace"},
	{Name: "smaps", Traced: true, Reason: "Chromium, profilers"},
	{Name: "smaps_rollup", Traced: true, Reason: "sums of smaps"},
	{Name: "stack", Reason: "the kernel stack; root only"},
	{Name: "stack_depth", Reason: "depth of the kernel stack, if the kernel erases it"},
	{Name: "stat", Reason: "process.memoryUsage, ps, top"},
	{Name: "statm", Reason: "ps, top, glibc"},
	{Name: "status", Reason: "process managers, ps, libraries that look for threads and capabilities"},
	{Name: "syscall", Traced: true, Reason: "the system call that it is blocked in"},
	{Name: "task", Reason: "its threads: top -H, sanitizers"},
	{Name: "timens_offsets", Reason: "its time namespace, which is the host's: all offsets are 0"},
	{Name: "timers", Reason: "its own timers; CRIU"},
	{Name: "timerslack_ns", Reason: "its own; another process's needs CAP_SYS_NICE"},
	{Name: "uid_map", Reason: "tools that look for a user namespace; it shows the host's ids"},
	{Name: "wchan", Traced: true, Reason: "the kernel function that it is blocked in: ps -l"},
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
