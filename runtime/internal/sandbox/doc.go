// Package sandbox is the interface between package runtime and the isolation of processes. Its
// types describe processes, files and permissions, and name no mechanism of the kernel, so
// that an implementation may start processes by other means, such as an agent inside a
// virtual machine.
//
//	package runtime ── Spec ─────> a Sandbox
//	                   Command ──>    │   ├──── Start ─────────> Process
//	                                  │   ├──── OpenGateway ───> external hosts
//	                                  │   └──── Dial, Files ───> the guest's servers and files
//	                                Close
//
// Package native implements it by package jail. package runtime chooses the implementation:
// see newSandbox there. An OCI runtime needs no other one: a container differs from a jail only in how
// its first process and its runs are started, see package jail/oci. It has the same tree, cgroups,
// filters, gateway and files.
//
// A second wall has a jail inside, so Spec and Command contain what a jail needs to know, as data.
// What does not pass through a wire is left to its implementation: the files of a Command, whose
// other ends the caller reads and writes, the sockets of a Gateway, and the functions of a Command, which
// report or decide something about its process.
package sandbox
