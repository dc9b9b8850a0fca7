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
// see newSandbox there.
//
// Every implementation uses the file tree that package jail/mounts describes, and calls commands by
// the protocol of package jail/hostcommand.
package sandbox
