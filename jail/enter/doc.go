// Package enter contains the C program that a process of a jail runs before its own
// program. It creates the jail or enters it, and gives up the rights that the host has and
// a guest must not have.
//
//	host: list of steps, descriptors
//	   └─ execve enter ── first steps ── clone ── exits
//	           ▲                           └─ child: further steps ── execve PROGRAM
//	      list │  │ step and errno, or end of file   │
//	           └ host <──────────────────────────────┘
//
// The program executes a list of [Step] values in order. The list for a jail's first
// process creates the namespaces and the file tree; the list for a later process enters
// them. Both end with the same steps.
//
// In a container, an OCI runtime has started the program, and the list has only the steps that
// are left: see [LaunchIn]. On the host, [Supervise] makes the program wait for a process that an
// OCI runtime starts, and end as it does.
//
// [Child] waits for a process by its pidfd, because [os.Process.Wait] blocks a thread for each
// process, and Go ends a program that has 10,000 of them.
//
// The program is written in C because it must be a small static program: the host's own binary
// needs libraries that the guest's tree does not have, starting a Go runtime would cost
// each run a millisecond, and some steps need a process with a single thread.
//
// The package contains the source, which is compiled when an image is built, and the host's
// half of the protocol, which src/protocol.c describes. The program trusts the host and does
// not check the list of steps.
package enter
