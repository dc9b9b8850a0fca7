// Package policy is what a guest may do: the scopes fs, network, childProcess,
// process and env, their rules, how rules are merged and matched, and what the
// kernel is to do so that they hold.
//
//	JSON ── Parse ──> Permissions ── Over ──> Permissions ── Lower ──> Plan
//	                  Check                   Decide          │
//	                                                          └─> *RuleError:
//	                                                              nothing holds it
//
// # Language
//
// A policy is an object with a key for each scope that is not to stay as it is:
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
// A scope is "allow", "deny" or rules. Of the rules that match, the last decides,
// and where none does, the default: deny, if there is none. A rule without
// operations is about all of its scope. Patterns are
//
//	fs             paths     absolute and clean: /workspace/**, /etc/hosts
//	childProcess   patterns  the same, of programs
//	network        patterns  tcp://HOST:PORT, udp://HOST:PORT, dns://NAME
//	env            patterns  names of variables
//	process        none
//
// In a path * and ? stay within one element, and ** as a whole element crosses
// them: P/** is P and all below, /** is everything. There is no escape: a * in a
// file's name is matched by a pattern's *. In a variable's name * is any
// characters and ? is one. HOST is a name in lower case, an address, * or *.NAME,
// which is all names below NAME; PORT is a number or *. The loopback device's
// addresses are localhost by another name.
//
// Text is at most 1 MiB, a scope has at most 256 rules and 256 patterns, and a
// pattern 4096 bytes. [Schema] is the language for editors.
//
// # Merging
//
// [Permissions.Over] goes scope by scope: one that is given is taken whole, one
// that is left out is the base's. Nothing given is [Default]. A run's permissions
// go over its runtime's, and [Narrow] refuses those that allow more.
//
// # What holds it, and what the guest sees
//
//	scope         operations                         held by                                            errno                   kernel       not covered
//	fs            all at once                        hidden: not mounted, or covered                    EACCES                  any          that the place itself is there
//	fs            read readdir execute               Landlock                                           EACCES                  ABI 3, 6.2   open descriptors; what an interpreter reads as code
//	fs            write create_dir rm symlink        Landlock                                           EACCES                  ABI 3, 6.2   P itself, of P/**: its folder decides
//	fs            truncate                           Landlock                                           EACCES                  ABI 3, 6.2   descriptors open for writing
//	fs            all of the writing ones and chmod  read-only mount, in a tree where they are allowed  EROFS                   any
//	fs            execute                            noexec mount, in the same                          EACCES                  any          scripts that an interpreter reads
//	fs            rename from folder to folder       Landlock: rm and write, REFER                      EACCES, EXDEV           ABI 3, 6.2   within one folder: it is rm and write
//	fs            rename everywhere                  seccomp                                            EPERM                   any
//	fs            readdir                            no inotify, if a folder of the guest's is to be seen and not listed   EACCES                  any
//	fs            chmod                              the file's owner is another                        EPERM                   any
//	fs            chmod everywhere                   seccomp                                            EPERM                   any
//	fs            stat readlink                      hidden with all the rest, only                     EACCES                  any          where something else is allowed
//	network       fetch connect listen               no sockets of TCP, UDP or either: seccomp          EACCES                  any          sockets within the jail, abstract and in files
//	network       fetch connect to ports             Landlock; no MPTCP: seccomp                        EACCES                  ABI 4, 6.7   which loopback address
//	network       dns, hosts outside                 an empty network namespace                         EAI_AGAIN, ENETUNREACH  any          they can't be allowed yet
//	childProcess  spawn                              seccomp                                            EPERM                   any          threads
//	childProcess  a list of programs                 Landlock: execute; noexec mounts                   EACCES                  ABI 3, 6.2   what a listed program runs itself
//	process       signal                             Landlock's scope; prlimit of others: seccomp       EPERM                   ABI 6, 6.12  the run's own processes
//	process       inspect                            entries of /proc, no ptrace                        ENOENT, EPERM           ABI 2, 5.19  the run's own processes
//	env           read                               the variable is not passed                         not there               any          what a program reads elsewhere
//
// The kernel is the version of Landlock that it takes, and the first Linux that has it;
// any is any that gaol runs on. Policies that allow all of fs and process, and network
// but for ports, need no Landlock; [Workspace] takes Linux 6.2 and [Strict] 6.12. What a kernel
// can't hold is refused as such.
//
// localhost is a name in /etc/hosts: where fs hides that, say 127.0.0.1. A program is
// allowed by the path that it really has, /usr/bin/dash and not /bin/sh.
//
// Without network Node's own look-ups of names answer EAI_AGAIN or ECONNREFUSED, but for
// localhost, and os.networkInterfaces throws: it takes a socket.
//
// What is hidden has an empty file or folder in its place, a file for a link, that
// nobody may open or enter: its name can be seen, all else is EACCES; but chmod and utimes EPERM, and to
// remove or rename it, or a folder that leads to it, EBUSY. Out of such a folder
// nothing can be renamed or linked: EXDEV. A folder that leads to something shown can
// be entered and not be listed, and the rest of what is in it is hidden one by one, or
// is not there: ENOENT.
//
// The kernel cannot tell some things apart, and so policies that try to are
// refused by [Lower], with the nearest that holds:
//
//   - Places of fs and childProcess are P/** or one file, without other wildcards.
//     One file's own operations are read, write, truncate, chmod, execute, stat and
//     readlink; write is for a file that exists.
//   - What a folder allows is taken back below it only as a whole: everything, or
//     all that writes, or execute. Below that nothing is allowed again, but below
//     what is hidden, as far as what is around it has that too.
//   - stat and readlink come along with any other operation allowed at the same
//     path, since no hook of the kernel sees them. A later rule that denies them
//     there is refused.
//   - rename is a link or a rename, and goes with rm and write. Within one folder
//     it is nothing but removing and creating: where rename is allowed anywhere, it
//     is wherever rm is with write, create_dir or symlink. Moving a file to where more
//     is allowed than where it was is EXDEV, and programs copy it.
//   - chmod, which is also chown, utimes and setxattr, goes with writing. Files that a
//     runtime begins with are not the guest's own where it is denied, but not everywhere:
//     nor can they be linked from there (EPERM).
//   - fetch is connect. TCP that connects also listens: listen(2) is the same for
//     the sockets of Node's own children, and gives an unbound one any port.
//   - UDP is allowed on all ports, both ways, or not.
//   - inspect, where it is allowed, is what /proc tells anyone. What takes a tracer's
//     right, other runs' variables, memory and open files, is there only if nothing
//     else takes Landlock: fs with rules, ports, or signal denied.
//   - Programs are listed, never excepted: a copy is another program.
//   - What Node needs, [World] Needed, is not to be denied by its own path. A
//     broader rule leaves it: to be seen, never written unless it must be, with
//     whatever else is allowed around the folder that is hidden.
//
// # What else takes part
//
//   - To execute a file takes read as well. fs.copyFile takes read, write and chmod,
//     and over another file truncate; fs.truncate read, write and truncate.
//   - truncate alone empties a file: open with O_TRUNC for reading does.
//   - Where rename is denied everywhere, so is each second name, in the same folder
//     and for a file of O_TMPFILE: EPERM.
//   - Names that come and go in a folder can be watched with inotify where readdir is
//     denied, extended attributes read where read is, unless the folder is hidden.
//   - A program in memory, from memfd_create, is no file that execute is asked for.
//     Only a list of programs, or childProcess denied, keeps it from being started.
//   - A file that has more than its folder, where files can be renamed, stays in its place
//     (EBUSY) and has no second name (EXDEV).
//   - A file that was opened stays open: a run that is passed a descriptor over a
//     unix socket, by one with more permissions, may do with it what it was opened
//     for, list a folder for one. It can't open it anew, nor anything by way of it.
//
// # Runs
//
// [LowerRun] is for a run in a jail that was made for other permissions. Its mounts
// stay, so it cannot take back what a folder allows, and chmod is the runtime's
// or refused as a whole. What a run may not touch at all, but the runtime
// may, it can still stat. What it is granted in a folder goes along with that, where
// the run may rename it: a runtime's is held in its place (EBUSY).
//
// # What belongs here
//
// Data and decisions. All of it is pure: no system calls, no files, no clock, so
// it runs and is tested anywhere. Enforcement is package jail's, which never hears
// of a policy: package runtime applies a [Plan].
//
// # What it does not protect against
//
// A run that may neither signal nor inspect others can still tell their numbers, and
// change their priority and which processors they use.
//
// Paths are names as they are written. A place that is a symbolic link, or is
// reached through one, is another place to the kernel: whoever applies a plan must
// refuse it, and a folder where a plan says file: [Permissions.Refuse]. Landlock
// grants are for what is there: folders that they name are to be made. A file with a second name
// elsewhere, made before the guest came, has that place's permissions there.
//
// execute and lists of programs are about starting files, not about code: an
// interpreter that is allowed runs any script it may read, and where files may be
// executed in a part of the tree only, the loader of shared libraries, which has to be,
// runs any program that may be read. With a list of programs it does not: what is not
// on the list can't be mapped as code either, so that Node loads addons from listed
// places only. What the image has in /usr/lib counts as listed, whoever may write to a
// listed place lists what he likes, and busybox is all of its applets. Sockets within the
// jail, abstract and in files, belong to no scope. What another run of the runtime
// has opened it can hand over by them: a socket works for a run that may make none. A
// list of ports holds for such sockets, too. Where folders of the host are mounted guests
// make no sockets in files at all, but with runtime.Options.UnixSockets.
package policy
