// Package policy is what a run may do: the scopes fs, network, childProcess,
// process and env, their rules, and how rules are merged and matched.
//
// There is no code here yet: it comes with permissions. Until then every
// runtime has one and the same policy, which nobody can change:
//
//	network                              denied: an empty network namespace
//	fs, childProcess, process, env       allowed, within the guest's own world
//
// Its own world is the jail: the image and a file tree of its own, its own
// processes, the variables it was given. See packages jail and runtime for what
// holds it there.
//
// # What belongs here
//
// Data and decisions. A policy is parsed from text and checked as a whole, two
// are merged, and one answers whether an operation is allowed and which rule says
// so. All of it is pure: no system calls, no files, no clock, so it runs and is
// tested anywhere.
//
// # What does not
//
// Enforcement. The kernel does that, in package jail, which never hears of a
// policy: package runtime lowers one to the other. A permission that no kernel
// mechanism holds is refused there; none is dropped silently.
package policy
