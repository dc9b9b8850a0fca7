// Package flags parses the flags that gaol run, gaol eval and gaol repl share: the
// limits of a sandbox, its permissions, mounts, files and environment.
//
//	Sandbox.Add ─> cobra parses ─> Sandbox.Check ─> Sandbox.Options ─> runtime.Create
//	                                                Sandbox.Denials: which flag would allow a denied operation
//
// Every value is checked when it is parsed, and permissions before anything is
// created: a wrong command line changes nothing.
package flags
