// Package flags parses the flags that gaol run, gaol eval and gaol repl share: the
// limits of a sandbox, its permissions, mounts, files and environment. It reads their inputs: programs,
// snippets, permissions and globals, from files, from standard input or from flags.
//
//	Sandbox.Add ─> cobra parses ─> Sandbox.Check ─> Sandbox.Options ─> runtime.Create
//	                                                Sandbox.Denials: which flag would allow a denied operation
//
// Every value is checked when it is parsed, and permissions before anything is
// created: a wrong command line changes nothing.
//
// Every read is bounded and ends with the context, because a terminal, a pipe or a
// device may never end.
package flags
