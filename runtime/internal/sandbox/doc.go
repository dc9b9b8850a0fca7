// Package sandbox is the interface between a runtime and what isolates its runs. Package native implements it by the
// jails of this machine's kernel, which gaol or an OCI runtime makes.
//
//	runtime ── Spec ──> New ──> Sandbox ── Command ──> Process ── Exit
//	   │                           │
//	   │ <── Denied, Connect, OnOwner, OnCommand: calls during a run
//	   └ <── streams: Command.Files, Terminal, CommandCall, Dial, Gateway, Files
//
// A Sandbox may be on the other side of a connection. So Spec and Command are data that JSON can encode, except for
// streams, open files of the host, and functions whose arguments and results are data: these are questions to this
// process, which decides about everything that it enforces. Streams are interfaces. If one is an *os.File, a sandbox in
// this kernel uses its descriptor and copies nothing.
package sandbox
