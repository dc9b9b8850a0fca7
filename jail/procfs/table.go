package procfs

// Row is an entry that guests see.
type Row struct {
	Name   string // path below the folder that the table is about
	Reason string // programs that need it, or what it shows where it can't be hidden
	From   Source

	// Traced is for OfProcess: the kernel refuses it, or what is in it, to a process that
	// may not trace this one. No guest may trace pid 1.
	Traced bool
}

// Source says where an entry's text comes from.
type Source int

// The zero value is the kernel's own entry, as it is in the jail's namespaces.
const (
	Kernel Source = iota
	Copied        // a file with what the host reads there when the jail is created
	Made          // a file that Write makes up
)

// Shown are the entries of /proc besides the folders of processes.
var Shown = []Row{
	{Name: "cpuinfo", Reason: "os.cpus, libraries that choose code by the processor's features; the CPUID instruction reports the same, and the processors are cut to the limit", From: Made},
	{Name: "loadavg", Reason: "os.loadavg, uptime, top; sysinfo(2) reports the same but for the threads that can run"},
	{Name: "meminfo", Reason: "os.totalmem, free, sizes of caches and heaps: the limit is the memory; sysinfo(2) reports the machine's", From: Made},
	{Name: "mounts", Reason: "link to the process's own: df, mount"},
	{Name: "net", Reason: "link to the process's own: netstat, route"},
	{Name: "self", Reason: "link to the process's own: fd, exe, maps"},
	{Name: "stat", Reason: "os.cpus and top count the processors, sysconf too, ps needs the boot time; the kernel's also counts interrupts, processes and load", From: Made},
	{Name: "sys", Reason: "see Settings", From: Made},
	{Name: "thread-self", Reason: "link to the thread's own"},
	{Name: "uptime", Reason: "os.uptime, ps, top; sysinfo(2) and CLOCK_BOOTTIME report the same but for the idle time"},
	{Name: "version", Reason: "is-wsl, procps; uname(2) reports the same but for the compiler"},
}

// Settings are the entries of /proc/sys.
var Settings = []Row{
	{Name: "crypto/fips_enabled", Reason: "OpenSSL of Red Hat, GnuTLS, libgcrypt: whether to use approved algorithms only", From: Copied},
	{Name: "fs/inotify/max_user_watches", Reason: "fsnotifier of JetBrains, Watchman", From: Copied},
	{Name: "kernel/cap_last_cap", Reason: "libcap-ng, setpriv, systemd", From: Copied},
	{Name: "kernel/domainname", Reason: "scripts that do without uname(2), which reports the same", From: Made},
	{Name: "kernel/hostname", Reason: "scripts that do without uname(2), which reports the same", From: Made},
	{Name: "kernel/ngroups_max", Reason: "sysconf in glibc", From: Copied},
	{Name: "kernel/osrelease", Reason: "procps; uname(2) reports the same", From: Copied},
	{Name: "kernel/pid_max", Reason: "ps, top and htop, for the width of a column", From: Copied},
	{Name: "kernel/random/uuid", Reason: "scripts; a new one for each reader"},
	{Name: "net/core/somaxconn", Reason: "Go, Redis and netty, for listen(2); kernels before 6.2 show none to user namespaces", From: Made},
	{Name: "vm/max_map_count", Reason: "Java, Elasticsearch", From: Copied},
	{Name: "vm/overcommit_memory", Reason: "malloc in glibc, jemalloc and mimalloc; Redis", From: Copied},
}

// OfProcess are the entries of /proc/PID and /proc/PID/task/TID. All are the
// kernel's: nothing can be mounted there for each process.
var OfProcess = []Row{
	{Name: "arch_status", Reason: "when it last used AVX-512"},
	{Name: "attr", Reason: "labels of security modules: libselinux, libapparmor"},
	{Name: "autogroup", Reason: "its scheduling group"},
	{Name: "auxv", Traced: true, Reason: "libraries look for features of the processor"},
	{Name: "cgroup", Reason: "in its cgroup namespace: Java and Go look for limits"},
	{Name: "children", Reason: "of a thread: process managers such as pm2"},
	{Name: "clear_refs", Reason: "only written"},
	{Name: "cmdline", Reason: "ps, top"},
	{Name: "comm", Reason: "ps, top, killall"},
	{Name: "coredump_filter", Reason: "its own; no core is dumped"},
	{Name: "cpu_resctrl_groups", Reason: "cache allocation, if the host mounts resctrl"},
	{Name: "cpuset", Reason: "in its cgroup namespace"},
	{Name: "cwd", Traced: true, Reason: "pwdx, lsof"},
	{Name: "environ", Traced: true, Reason: "ps e"},
	{Name: "exe", Traced: true, Reason: "process.execPath, Rust's current_exe"},
	{Name: "fail-nth", Reason: "fault injection of kernels for tests"},
	{Name: "fd", Traced: true, Reason: "/dev/stdin and its like, lsof"},
	{Name: "fdinfo", Traced: true, Reason: "positions and flags of files"},
	{Name: "gid_map", Reason: "tools that look for a user namespace; it shows the host's ids"},
	{Name: "io", Traced: true, Reason: "pidstat"},
	{Name: "ksm_merging_pages", Reason: "its own, of merged memory"},
	{Name: "ksm_stat", Reason: "its own, of merged memory"},
	{Name: "latency", Reason: "its own, on kernels that measure it"},
	{Name: "limits", Reason: "prlimit, scripts"},
	{Name: "loginuid", Reason: "audit's login id, of which the user namespace shows none; sudo, PAM"},
	{Name: "make-it-fail", Reason: "fault injection of kernels for tests"},
	{Name: "map_files", Traced: true, Reason: "its mapped files, as in maps"},
	{Name: "maps", Traced: true, Reason: "V8, sanitizers, profilers, glibc for the stack of the main thread"},
	{Name: "mem", Traced: true, Reason: "debuggers, which can't write by it"},
	{Name: "mountinfo", Reason: "Java, Go and df"},
	{Name: "mounts", Reason: "as mountinfo"},
	{Name: "mountstats", Reason: "as mountinfo"},
	{Name: "net", Reason: "its network namespace: netstat, lsof, route: see OfNetwork"},
	{Name: "ns", Traced: true, Reason: "lsns"},
	{Name: "numa_maps", Traced: true, Reason: "numactl"},
	{Name: "oom_adj", Reason: "as oom_score_adj, old"},
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
	{Name: "stack", Reason: "of the kernel; root only"},
	{Name: "stack_depth", Reason: "of the kernel's stack, where it is erased"},
	{Name: "stat", Reason: "process.memoryUsage, ps, top"},
	{Name: "statm", Reason: "ps, top, glibc"},
	{Name: "status", Reason: "process managers, ps, libraries that look for threads and capabilities"},
	{Name: "syscall", Traced: true, Reason: "the call that it waits in"},
	{Name: "task", Reason: "its threads: top -H, sanitizers"},
	{Name: "timens_offsets", Reason: "its time namespace, which is the host's: no offsets"},
	{Name: "timers", Reason: "its own; CRIU"},
	{Name: "timerslack_ns", Reason: "its own; of others it takes CAP_SYS_NICE"},
	{Name: "uid_map", Reason: "tools that look for a user namespace; it shows the host's ids"},
	{Name: "wchan", Traced: true, Reason: "where it waits in the kernel: ps -l"},
}

// OfNetwork are the entries of /proc/PID/net. Each is about its network namespace alone,
// unlike sockstat, protocols, softnet_stat and stat.
var OfNetwork = []Row{
	{Name: "arp", Reason: "arp, packages that look for neighbours"},
	{Name: "dev", Reason: "ifconfig, psutil, systeminformation"},
	{Name: "fib_trie", Reason: "scripts that look for local addresses"},
	{Name: "icmp", Reason: "lsof"},
	{Name: "icmp6", Reason: "lsof"},
	{Name: "if_inet6", Reason: "ifconfig, scripts that ask whether there is IPv6"},
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
