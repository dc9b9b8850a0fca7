// Package audit reports Landlock's denials, from the kernel's audit records. It needs
// Linux 6.15 and an enabled audit system.
//
//	kernel                                       Reader's goroutine
//	a denial ── ACCESS record {domain, rights}┐
//	  └─ a domain's first: DOMAIN record       ├─ filter ─ socket ─ parse ─ join ─> Watch(pid)'s f
//	     {domain, pid that enforced it}      ──┤            1 MiB             │
//	a domain's end ── DOMAIN record          ──┘                    unwatched ones are held for 2 s
//
// It reads from a multicast group, which neither disturbs nor needs auditd. It does not
// enable audit. That is up to the administrator, because without auditd all records go to
// the kernel's log.
//
// # How records are joined
//
// The record of a denial has only the number of the domain. The pid of the process that
// enforced the domain is recorded once, with the domain's first denial or right after it.
// So open a Reader before the first run, and watch a process before it enforces its domain,
// or within two seconds.
//
// The flags of landlock_restrict_self control which denials are recorded. Without flags,
// recording stops at the next execve; LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON continues it.
// LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF omits the domains that a guest creates for
// itself, which would have its pid as well and look like the host's.
//
// # Not protected against
//
//   - Loss. A thread of the kernel sends records some milliseconds after the denial. It
//     drops them when there are too many: at audit's own backlog (auditctl -b, 64 unless
//     set), its rate limit, its exclusion rules, or the socket's buffer. A guest that is
//     denied something in a loop can displace the denials of others. Denials are
//     information for people, not evidence.
//   - Names. A path is text of the guest's, relative to its root. The path of a removed file
//     ends with " (deleted)", but so may another file's name.
//   - Other namespaces. Records reach only the machine's first network namespace, and audit's
//     state can be read only in the first pid and user namespace.
package audit
