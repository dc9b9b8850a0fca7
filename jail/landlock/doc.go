// Package landlock makes Landlock rulesets: what a program may do to files, to which
// ports it may connect, whom it may signal. It knows rights and paths, and nothing of
// permissions.
//
//	host                                            a run's process
//	Ruleset ── check, fit to the ABI                     │
//	   │                                                 │
//	 Make(root) ── create_ruleset                        │
//	   ├─ each Rule: openat2 below root ── add_rule      │
//	   └─ each port ── add_rule                          │
//	   │                                                 │
//	 descriptor ──────── over a socket ────────────────> restrict_self ── a domain
//	 closed by its owner                                 │ no_new_privs before it
//	                                                     └ children are in it as well
//
// A ruleset is made once and put on by many. Each process that puts it on makes a
// domain of its own, of which the others are outside: with Signals set they can't
// signal each other.
//
// # What is granted
//
// A right that is handled is denied but where a rule grants it. A rule stands for the
// file or folder that was found when it was made, not for its path:
//
//   - It holds on each way there: a bind mount, /proc/self/root, a hard link, another
//     name after a rename. A file that comes to the path later has no rule.
//   - A tree's rule holds for what is mounted below it, too, and for a hard link in it to
//     a file that is denied elsewhere. Hard links across folders need Refer, which
//     denies those by which a file would gain a right.
//   - A way through granted folders grants nothing at its end: neither a symbolic link nor
//     "..", nor opening an O_PATH descriptor again by /proc/self/fd.
//
// Denied is EACCES; but EXDEV where Refer is missing, unless something else is missing
// too; and EPERM for signals and sockets out of scope. Renaming in a folder needs
// RemoveFile and MakeReg there, or RemoveDir and MakeDir. With any right handled,
// mounting is denied, with EPERM, and so is reparenting: see [Ruleset]. Programs in a
// domain never trace those outside of it.
//
// # What it does not protect against
//
//   - What Landlock has no right for: stat, chdir, chmod, chown, utime, extended
//     attributes, flock, fcntl, and opening with O_PATH. That a file exists can be seen.
//     Only mounts hide it.
//   - Descriptors that are open already keep what they can do, ftruncate included.
//   - Execute is about files that execve is given. A program in a memfd runs without
//     it, and so does one that the dynamic loader maps, if the loader may be executed:
//     /lib64/ld-linux-x86-64.so.2 /tmp/program. Who may not read the program's file can't
//     do either with it. Nor does it stop scripts that an interpreter reads. To
//     have no programs started, deny execve and execveat by seccomp.
//   - ConnectTCP is about connect. On Linux 6.18, sendto with MSG_FASTOPEN connects to any
//     port. net.ipv4.tcp_fastopen without bit 0 in the network namespace closes that: the
//     call then fails with EOPNOTSUPP. A socket of multipath TCP (IPPROTO_MPTCP)
//     connects to any port as well, and falls back to TCP: net.mptcp.enabled=0, or
//     seccomp, closes that. UDP, raw sockets, SCTP and SMC are not handled. ConnectTCP alone is
//     no fence: tell a network namespace what it may reach.
//   - Unix sockets with a path: connecting to one is no right before ABI 9.
//   - The 16 domains that the kernel nests at most: a guest that may call
//     landlock_restrict_self can use them up, for itself.
package landlock
