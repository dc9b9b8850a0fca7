// Package enter is the small C program that a process of a jail goes through
// before its own program: it puts the system call filter on, and ties the
// jail's pid 1 to the life of the host process.
//
//	libcontainer: namespaces, ids, capabilities, no_new_privs
//	   └─ execve enter ── limits, filter ── execve PROGRAM
//	        ▲      │
//	  setup │      │ step and errno, or end of file
//	        └ host ┘
//
// It is C because it must be a static program of a few pages: the host's own
// binary needs libraries that the guest's tree does not have, and starting a Go
// runtime would cost each run a millisecond.
//
// The package holds the source, which is compiled when an image is built, and
// the host's half of the protocol. It does not protect against a host that
// hands over a wrong filter.
package enter
