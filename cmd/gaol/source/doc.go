// Package source reads the inputs of the command line: programs, snippets, permissions
// and globals, from files, from standard input or from flags.
//
// Every read is bounded and ends with the context, because a terminal, a pipe or a
// device may never end. Nothing that is read is executed here.
package source
