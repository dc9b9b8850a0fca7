// Package audit tells what Landlock denied, as the kernel's audit has it: from Linux
// 6.15 on, where audit is switched on.
//
//	kernel                                       Reader's goroutine
//	a denial ── ACCESS record {domain, what} ──┐
//	  └─ a domain's first: DOMAIN record       ├─ filter ─ socket ─ parse ─ join ─> Watch(pid)'s f
//	     {domain, pid of who put it on}      ──┤            1 MiB             │
//	a domain's end ── DOMAIN record          ──┘                    held for 2 s: what nobody watches
//
// It reads from a multicast group, which disturbs no auditd and needs none. It
// switches nothing on: that is the administrator's, since all records go to the
// kernel's log where there is no auditd.
//
// # How records are joined
//
// A record of a denial has the number of the domain alone. Who put that on is told once, with
// the domain's first denial or right after it. So a Reader is opened before the first run, and a
// process is watched before it puts its domain on or within two seconds.
//
// Which domains are told is up to the flags of landlock_restrict_self. Without any, denials
// stop with the next execve: LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON goes on.
// LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF leaves out the domains that a guest makes
// for itself, which would bear its pid as well and look like the host's.
//
// # What it does not protect against
//
//   - Loss. Records come some milliseconds after the denial, by a thread of the
//     kernel, and not at all when there are too many: at audit's own backlog
//     (auditctl -b, 64 unless set), its rate, its rules of exclusion, or at the
//     socket's. Only the last is counted here. A guest that is denied something in
//     a loop can crowd out others' denials. They are for people, and no evidence.
//   - Names. A path is text of the guest's, relative to its root. One of a file
//     that was removed ends with " (deleted)", as may another file's name.
//   - A namespace of one's own. Records reach the machine's first network namespace
//     only; audit's state is told in the first pid and user namespace only.
package audit
