// Package procfs defines which entries of /proc a jail shows. Its tables give the reason
// for each. All other entries are hidden, including entries of unknown kernels and modules.
//
//	Write ── files that replace the kernel's: cpuinfo, meminfo, stat and sys; an empty file and folder
//	            └─ mounted over the jail's own /proc; all entries but [RootEntries] are hidden
//	HideNet ── entries of /proc/PID/net but [NetEntries] can't be read
//
// /proc is mounted read-only, including the folders of processes. A guest can't write to
// PSI triggers, to loginuid (each change takes a number from a counter of the whole
// machine) or to entries that a module adds. Programs that write to their own
// oom_score_adj, comm or mem get EROFS.
//
// Hidden files are empty, and so are hidden folders, as with runc. Links are not hidden:
// they lead to other entries of the jail.
//
// # Not hidden
//
// loadavg and uptime describe the machine. sysinfo(2) reports most of it, too, but not the
// idle time of the processors and the number of threads that can run now.
// sysinfo(2) also reports the machine's memory, and sched_getaffinity(2) its processors.
// With or without these files, two jails can signal to each other by the memory and
// processor time that they use.
//
// Nothing can be mounted over an entry of every process. These describe the host:
//
//   - uid_map and gid_map show the host ids of the jail;
//   - autogroup shows a number from a counter of all sessions of the machine;
//   - sessionid is the audit session of the host process, if it is in one;
//   - attr is the label that a security module has given to the process;
//   - status, cpuset and numa_maps show the processors and memory nodes of the host;
//   - sched and schedstat show how long the process waited for a processor;
//   - ns and mountinfo have numbers that the kernel gives to namespaces and devices.
//
// An entry that a module adds to /proc while a jail exists is not hidden in that jail.
// It is read-only.
package procfs
