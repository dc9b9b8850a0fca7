// Package policy describes a guest's permissions: the scopes fs, network, childProcess,
// process and env, their rules, how rules are merged and matched, and how the kernel
// enforces them.
//
//	JSON ── Parse ──> Permissions ── Over ──> Permissions ── Lower ──> Plan
//	                  Check                   Decide          │
//	                                                          └─> *RuleError:
//	                                                              not enforceable
//
// # Language
//
// A policy is an object with a key for each scope that differs from the default:
//
//	{
//	  "network": "deny",
//	  "fs": {
//	    "default": "allow",
//	    "rules": [
//	      {"mode": "deny", "paths": ["/workspace/secret/**"]},
//	      {"mode": "deny", "operations": ["execute"], "paths": ["/tmp/**"]}
//	    ]
//	  }
//	}
//
// A scope is "allow", "deny" or a list of rules. The last matching rule decides; if none
// matches, the scope's default, which is deny if omitted. A rule without operations,
// or with "*", decides all operations of its scope; http is the same as fetch. Patterns are
//
//	fs             paths     absolute and clean: /workspace/**, /etc/hosts
//	childProcess   patterns  the same, for programs
//	network        patterns  tcp://HOST:PORTS, udp://HOST:PORTS, dns://NAME
//	env            patterns  names of variables
//	process        none
//
// In a path, * and ? match within one element, and ** as a whole element matches any
// number of elements: P/** is P and everything below it, /** is everything. There is no
// escape character: a * in a file's name is matched by a pattern's *. In a variable's
// name, * matches any characters and ? one. HOST is a lower-case name, an address, a CIDR
// prefix, * or *.NAME, which is every name below NAME; PORTS is * or a list such as
// 80,443,8000-8099. The addresses of the loopback device are equivalent to localhost.
//
// Text is at most 1 MiB, a scope has at most 256 rules and 256 patterns, and a pattern is
// at most 4096 bytes. [Schema] returns a JSON Schema of the language for editors.
//
// # Merging
//
// [Permissions.Over] merges by scope: a scope that is set is used as a whole, an omitted
// one is taken from the base. If nothing is set, the result is [Default]: all of the guest's
// own world, with TCP and UDP on its own localhost. "deny" for network denies localhost, too. A run's
// permissions are merged over its runtime's, and [Narrow] rejects permissions that allow more.
//
// # Enforcement, and errors in the guest
//
//	scope         operations                         enforced by                                        errno                   kernel       not covered
//	fs            all together                       hidden: not mounted, or covered                    EACCES                  any          that the place itself exists
//	fs            read readdir execute               Landlock                                           EACCES                  ABI 3, 6.2   open descriptors; code that an interpreter reads
//	fs            write create_dir rm symlink        Landlock                                           EACCES                  ABI 3, 6.2   P itself, for P/**: its folder decides
//	fs            truncate                           Landlock                                           EACCES                  ABI 3, 6.2   descriptors open for writing
//	fs            all of the writing ones and chmod  read-only mount, below a folder that allows them   EROFS                   any
//	fs            execute                            noexec mount, below a folder that allows it        EACCES                  any          scripts that an interpreter reads
//	fs            rename from folder to folder       Landlock: rm and write, REFER                      EACCES, EXDEV           ABI 3, 6.2   within one folder: it is rm and write
//	fs            rename everywhere                  seccomp                                            EPERM                   any
//	fs            readdir                            no inotify, if a guest's folder is visible but not listable   EACCES                  any
//	fs            chmod                              the guest does not own the file                    EPERM                   any
//	fs            chmod everywhere                   seccomp                                            EPERM                   any
//	fs            stat readlink                      hidden, with all other operations only             EACCES                  any          where another one is allowed
//	network       fetch connect listen               no TCP sockets, UDP sockets, or both: seccomp      EACCES                  any          sockets within the jail, abstract and in files
//	network       fetch connect to ports             Landlock; no MPTCP: seccomp                        EACCES                  ABI 4, 6.7   which loopback address
//	network       dns, external hosts                an empty network namespace                         EAI_AGAIN, ENETUNREACH  any
//	network       dns, external hosts, by rule       egress and BPF in that namespace                   EAI_AGAIN, EACCES, ECONNRESET  5.9         names within TLS; see [Egress]
//	childProcess  spawn                              seccomp                                            EPERM                   any          threads
//	childProcess  a list of programs                 Landlock: execute; noexec mounts                   EACCES                  ABI 3, 6.2   scripts of listed interpreters
//	process       signal                             Landlock's scope; prlimit of others: seccomp       EPERM                   ABI 6, 6.12  the run's own processes
//	process       inspect                            entries of /proc; ptrace is always refused         ENOENT                  ABI 2, 5.19  the run's own processes
//	env           read                               the variable is not passed                         absent                  any          values from other sources
//
// The column kernel is the required version of Landlock and the first Linux that has it;
// "any" is any kernel that gaol runs on. Policies that allow all of fs and process, and
// network except for ports, need no Landlock; [Workspace] needs Linux 6.2 and [Strict]
// 6.12. Rules that the running kernel cannot enforce are rejected with that reason.
//
// localhost is a name in /etc/hosts: where fs hides that file, use 127.0.0.1. A program is
// allowed by its real path: /usr/bin/dash, not the link /bin/sh.
//
// Without network, Node's own name look-ups fail with EAI_AGAIN or ECONNREFUSED, except
// for localhost, and os.networkInterfaces throws, because it needs a socket.
//
// A hidden place is covered by an empty file or folder, a link by a file, that the guest
// cannot open or enter. Its name is visible, but access fails with EACCES; chmod and
// utimes fail with EPERM. Removing or renaming it, or a folder on the path to it, fails
// with EBUSY. Nothing can be renamed or linked out of a hidden folder: EXDEV. A folder on
// the path to something shown can be entered but not listed; its other entries are hidden
// one by one, or do not exist: ENOENT.
//
// The kernel cannot distinguish some operations. [Lower] rejects policies that do, and
// suggests the closest enforceable policy:
//
//   - Places of fs and childProcess are P/** or one file, without other wildcards.
//     The operations of a single file are read, write, truncate, chmod, execute, stat and
//     readlink; write applies to an existing file.
//   - Permissions of a folder can be revoked below it only as a whole: everything, all
//     writing operations, or execute. Below that, nothing can be allowed again, except
//     below a hidden folder, and there only what its parent folder allows too.
//   - stat and readlink are allowed with any other operation at the same path, because
//     Landlock does not check them. A later rule that denies them there is rejected.
//   - rename covers link(2) and rename(2), and requires rm and write. Within one folder it is
//     removing and creating: if rename is allowed anywhere, it is allowed wherever rm is
//     allowed together with write, create_dir or symlink. Moving a file to a place that
//     allows more fails with EXDEV, on which programs copy it.
//   - chmod includes chown, utimes and setxattr, and requires writing. If it is denied in
//     some places only, the guest does not own the files that the runtime starts with
//     there, and cannot create hard links to them (EPERM).
//   - fetch is the same as connect. TCP that connects may also listen: listen(2) is the
//     same call for the sockets of Node's own children, and gives an unbound socket any
//     port.
//   - UDP is allowed on all ports of localhost in both directions, or not at all. It does not
//     leave the sandbox.
//   - If external hosts, or ports of the host, are allowed, rules for localhost may name any
//     port. A port on which listen is denied refuses connections, although listen itself succeeds.
//   - If a runtime has rules for external hosts, a run may use all of its network, or none.
//   - inspect, where allowed, covers the entries of /proc that any user may read. Entries that
//     require a tracer's rights, such as other runs' variables, memory and open files, need
//     a jail without Landlock: no fs rules, no ports, and signal allowed.
//   - Programs are listed, never excluded: a copy is a different program.
//   - What Node needs, [World] Needed, cannot be denied by its own path. A broader rule
//     leaves it visible. It is not writable unless Node must write to it.
//
// # Side effects
//
//   - Executing a file also requires read. fs.copyFile requires read, write and chmod, and
//     truncate to replace a file; fs.truncate requires read, write and truncate.
//   - truncate alone can empty a file: open(2) for reading with O_TRUNC does so.
//   - If rename is denied everywhere, so are hard links, also in the same folder and for
//     O_TMPFILE files: EPERM.
//   - inotify can watch names appear and disappear where readdir is denied, and extended
//     attributes can be read where read is denied, unless the folder is hidden.
//   - execute does not apply to a program in memory, from memfd_create. Only a list of
//     programs, or denying childProcess, prevents it from starting.
//   - A file that is allowed more than its folder, where files can be renamed, cannot be
//     moved (EBUSY) or hard-linked (EXDEV).
//   - An open file stays open: a run that receives a descriptor over a unix socket from a
//     run with more permissions may use it as it was opened, for example to list a folder.
//     It cannot reopen it, or open anything through it.
//
// # Runs
//
// [LowerRun] lowers a run's permissions in a jail that was created for other ones. The
// jail's mounts do not change, so a run cannot revoke a folder's permissions, and chmod is
// the runtime's or denied everywhere. A run can still stat places that are completely
// denied to it, if the runtime allows it. A run's grant on a folder moves with the folder
// if the run may rename it; a runtime's cannot be moved (EBUSY).
//
// # Scope of the package
//
// The package has data and decisions only. It makes no system calls, reads no files and no
// clock, so that it runs and is tested anywhere. Package jail enforces, without knowing policies: package
// runtime applies a [Plan] to it.
//
// # Not protected against
//
// A run that may neither signal nor inspect others can still find their process ids, and
// change their priority and processor affinity.
//
// Paths are names as written. The kernel treats a symbolic link, and a path through one,
// as another place: the code that applies a plan must reject such places, and folders
// where a plan names a file, with [Permissions.Refuse]. Landlock grants apply to existing
// files: folders that they name must be created first. A file with a hard link elsewhere,
// created before the guest started, keeps the permissions of the other place.
//
// execute and lists of programs restrict which files start, not which code runs: an
// allowed interpreter runs any script that it may read. Where files may be executed in only
// a part of the tree, the loader of shared libraries, which must be executable, runs any
// program that may be read. With a list of programs it does not: files that are not listed
// cannot be mapped as code either, so that Node loads addons from listed places only.
// /usr/lib of the image counts as listed, a guest that may write to a listed place can add
// any program, and busybox is all of its applets. Sockets within the jail, abstract and in
// files, belong to no scope. A run can pass whatever it has opened to another run of the
// runtime through them: a passed socket works in a run that may not create one. Lists of
// ports apply to passed sockets too. Where folders of the host are mounted, guests cannot
// create sockets in files, except with runtime.Options.UnixSockets.
package policy
