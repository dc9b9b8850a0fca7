// Package enter is the small C program that a process of a jail goes through
// before its own program: it makes the jail, or enters it, and gives up all that
// the host may do and a guest may not.
//
//	host: list of steps, descriptors
//	   └─ execve enter ── first steps ── clone ── ends
//	           ▲                           └─ child: further steps ── execve PROGRAM
//	      list │  │ step and errno, or end of file   │
//	           └ host <──────────────────────────────┘
//
// What is done, and in which order, is the list's to say: each [Step] is one thing
// that the program can do. The list for a jail's first process makes the namespaces
// and the file tree; that for a later one enters them. The end of both is alike.
//
// It is C because it must be a static program of a few pages: the host's own
// binary needs libraries that the guest's tree does not have, starting a Go
// runtime would cost each run a millisecond, and some steps are for a process that
// has a single thread.
//
// The package holds the source, which is compiled when an image is built, and
// the host's half of the protocol, which src/wire.c draws. It does not protect
// against a host that hands over a wrong list.
package enter
