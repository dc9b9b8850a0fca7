// Package landlock creates Landlock rulesets, which restrict access to files, connections to
// TCP ports, and signals. It defines rights and paths, but no permissions.
//
//	host                                            a run's process
//	Ruleset ── check, fit to the ABI                     │
//	   │                                                 │
//	 Make(root) ── create_ruleset                        │
//	   ├─ each Rule: openat2 below root ── add_rule      │
//	   └─ each port ── add_rule                          │
//	   │                                                 │
//	 descriptor ──────── over a socket ────────────────> restrict_self ── a domain
//	 closed by its owner                                 │ after no_new_privs
//	                                                     └ inherited by children
//
// A ruleset is created once and enforced by many processes. Each of them gets its own
// domain, and the others are outside of it: with Signals set they can't signal each other.
//
// # Granted rights
//
// A handled right is denied unless a rule grants it. A rule is for the file or folder that
// its path leads to when the ruleset is created, not for the path:
//
//   - It applies however the file is reached: by a bind mount, /proc/self/root, a hard link,
//     or another name after a rename. It does not apply to a file that is later created at
//     the path.
//   - A rule for a tree includes mounts below it, and hard links in it to files that
//     are denied elsewhere. Hard links across folders need Refer, which denies those by
//     which a file would gain a right.
//   - Passing through granted folders grants nothing at the target: neither by a symbolic
//     link or "..", nor by opening an O_PATH descriptor again by /proc/self/fd.
//
// A denied access fails with EACCES; without Refer it fails with EXDEV, unless another right
// is missing too; signals out of scope fail with EPERM. Renaming within a
// folder needs RemoveFile and MakeReg, or RemoveDir and MakeDir. With any right handled,
// mounting fails with EPERM, and renames and links across folders are denied: see
// [Ruleset]. Processes in a domain can never trace processes outside of it.
//
// # Not protected against
//
//   - Operations that no Landlock right covers: stat, chdir, chmod, chown, utime, extended
//     attributes, flock, fcntl, and opening with O_PATH. That a file exists can be seen;
//     only mounts hide it.
//   - Descriptors that are already open keep their access, including ftruncate.
//   - Execute applies to files that are passed to execve. Without it a program in a memfd
//     still runs, and so does a program that the dynamic loader maps, if the loader may be
//     executed: /lib64/ld-linux-x86-64.so.2 /tmp/program. Both need to read the program's
//     file. Execute does not stop scripts that an interpreter reads. To prevent all programs
//     from starting, deny execve and execveat by seccomp.
//   - ConnectTCP applies to connect. On Linux 6.18, sendto with MSG_FASTOPEN connects to any
//     port. Clearing bit 0 of net.ipv4.tcp_fastopen in the network namespace prevents that:
//     the call then fails with EOPNOTSUPP. A multipath TCP socket (IPPROTO_MPTCP) also
//     connects to any port, and falls back to TCP: net.mptcp.enabled=0 or seccomp prevents
//     that. UDP, raw sockets, SCTP and SMC are not handled. ConnectTCP alone does not isolate
//     a process from the network: use a network namespace.
//   - Unix sockets with a path: no right covers connecting to one before ABI 9.
//   - The limit of 16 nested domains: a guest that may call landlock_restrict_self can
//     exhaust it, for itself only.
package landlock
