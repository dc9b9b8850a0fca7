// Command gaol runs untrusted Node.js programs in a jail made of Linux
// namespaces, cgroups and seccomp.
//
// It is a thin front to [gaol/runtime]: it reads flags, makes one runtime, lets
// one program run in it, hands its output on and turns the result into an exit
// status. It decides nothing about the jail itself. Where gaol run is not told how
// to start Node, it starts a new one: a zygote takes twice as long for one run.
//
//	args ─> cobra ─> request ─> runtime.Create ─> Run | Command ─> exit status
//	                    │                               │
//	                 code from FILE, -e or -       output passed on, or one JSON object
//	                 (its format as Node finds it)
//
// gaol run checks permissions before anything is made: a preset, over which
// --permissions goes scope by scope, and the patterns of --allow-net. What a program was
// denied is told, in at most five lines, when it fails, and in full by --json. gaol policy
// checks and prints permissions as [gaol/policy] has them.
//
// The format of a FILE, ES module or CommonJS, is found on the host: by its ending, by the type
// in the nearest package.json, or by the syntax. Standard input is read where it is a pipe or
// a file and nothing else is named.
//
// gaol repl keeps one context of the runtime, and evaluates what comes line by line:
//
//	terminal ── keys ─> desk ──┐               ┌─> desk, with the guest's text made harmless
//	                           ├─> session ────┤
//	standard input ────────────┘   Context     └─> standard output and error, as it is
//
// gaol bench measures jails beside bare Node: see package [gaol/cmd/gaol/bench].
//
// # Exit status
//
//	the guest's   the program ended by itself, or by a signal n (128+n)
//	124           it ran out of time
//	137           it was killed for memory
//	125           gaol itself failed: wrong flags, a missing file, no privileges
//	130, 143      gaol got SIGINT or SIGTERM and stopped the program
//	141           nobody reads gaol's output any more
//
// A guest may choose these numbers too. Who must tell them apart reads the
// "cause" of --json: it comes from the kernel, not from the guest.
//
// # What --json prints
//
// One object on standard output and nothing else, on standard error neither;
// its exitCode is the guest's own, while gaol's exit status stays as above.
// When gaol itself fails there is no object: standard output is empty, standard
// error has the one line, and the status is 125.
package main
