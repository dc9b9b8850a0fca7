package escape

import (
	"slices"
	"strings"
	"testing"
)

// processEntry is an entry of the folder of a process in /proc.
type processEntry struct {
	Name   string
	Reason string // programs that need it, or its content

	// Traced: the kernel refuses access to it, or to its content, unless the reader may trace the
	// process. No guest may trace pid 1.
	Traced bool
}

// processEntries are the entries of /proc/PID and /proc/PID/task/TID. All are the
// kernel's: nothing can be mounted over the entries of every process.
var processEntries = []processEntry{
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

func TestProcessEntriesHaveReasons(t *testing.T) {
	for _, e := range processEntries {
		if e.Name == "" || len(e.Reason) < 4 {
			t.Errorf("%+v lacks a name or a reason", e)
		}
	}
	names := func(a, b processEntry) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(processEntries, names) || len(slices.CompactFunc(slices.Clone(processEntries), func(a, b processEntry) bool { return a.Name == b.Name })) < len(processEntries) {
		t.Error("the table is not sorted, or lists an entry twice")
	}
}
