// Package procfs decides what a jail shows of /proc: tables of entries, each with
// the reason why a program needs it. What no row names is hidden, also on kernels
// and with modules that nobody here knows.
//
//	Write ── files that replace the kernel's: stat, sys, and what hides an entry
//	            └─ mounted over the jail's own /proc ── all entries but [Shown] hidden
//
// /proc is mounted read-only, folders of processes included: PSI triggers, the audit
// login id (which takes a number from a counter of the whole machine) and whatever a
// module adds are out of reach. Programs can't write to files such as
// /proc/self/oom_score_adj and /proc/self/mem either; they fail with EROFS.
//
// Hidden files are empty and hidden folders have nothing in them, as with runc. Links
// stay: they lead to what is in the jail.
//
// # What it does not hide
//
// [Shown] entries tell about the machine what sysinfo(2) tells anyway, or the
// processor itself. /proc/uptime also tells for how long the processors were idle,
// /proc/loadavg how many threads can run now, and /proc/meminfo how much memory the
// kernel uses for what: two jails that burn or free both can use them as a channel, as
// they can use time that they take from each other.
//
// Nothing can be mounted over a file of each process. These tell about the host:
//
//   - net/softnet_stat: packets by processor, of all network namespaces; net/sockstat
//     and net/protocols: sockets and memory that TCP and UDP use, of all of them;
//   - uid_map, gid_map: the host ids of the jail; uids in net/unix and the like are mapped;
//   - autogroup: a counter of the sessions that the machine has started;
//   - sessionid: the audit session of the host process, if it is in one;
//   - attr: the label that a security module has given to the process;
//   - status, cpuset, numa_maps: the processors and memory nodes that it may use;
//   - sched, schedstat: how long it waited for a processor;
//   - ns, mountinfo: numbers of namespaces and devices, which the kernel counts up.
//
// An entry that a module adds to the top of /proc while a jail lives is not hidden in
// that jail. It is read-only.
package procfs
