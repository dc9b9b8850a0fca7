// Command gaol runs untrusted Node.js programs in a jail made of Linux
// namespaces, cgroups and seccomp.
//
// It is a thin front end of [gaol/runtime]: it reads flags, creates one runtime, runs
// one program in it, passes its output on and turns the result into an exit status.
// It decides nothing about the jail itself. gaol run starts a new Node unless
// --launcher is set: a zygote takes twice as long for a single run.
//
//	args ─> cobra ─> flags ─> runtime.Create ─> Run | Command ─> exit status
//	                   │                            │
//	          code from FILE, -e or -     output passed on, or one JSON object
//
// There are two programs of this package. The commands serve, mcp, fleet, token, snippet and image need libraries that double
// the time of a start: a build with the tag noserver lacks them, and executes gaol-server, built without that tag, for
// all that it lacks. gaol-server has all commands, and may be installed alone, as gaol.
//
// Each command is one file of this package. The other folders are its parts:
//
//	flags     limits, permissions, mounts and environment of a sandbox; bounded reading of programs
//	report    output streams, the terminal, JSON, exit statuses, one-line errors with advice
//	repl      line by line evaluation, with the line editor
//	bench     measurements beside bare Node
//	examplecheck  finds and runs the examples of a documentation
//	server    the HTTP API and MCP of gaol serve
//	mcpstdio  MCP on standard input and output, as a proxy to a server
//
// Permissions are checked before anything is created. If a program
// fails, denied operations are listed in at most five lines, and in full by --json.
//
// # Exit status
//
//	the guest's   the program exited, or was killed by signal n (128+n)
//	124           it ran out of time
//	137           it was killed for memory
//	125           gaol itself failed: wrong flags, a missing file, no privileges
//	130, 143      gaol got SIGINT or SIGTERM and stopped the program
//	141           the reader of gaol's output closed its pipe
//
// A guest may exit with these numbers, too. The "cause" of --json distinguishes them:
// it comes from the kernel, not from the guest.
//
// # What --json prints
//
// One object on standard output and nothing else, also not on standard error. Its
// exitCode is the guest's own, while gaol's exit status is as above. When gaol itself
// fails there is no object: standard output is empty, standard error has one line, and
// the status is 125.
package main
