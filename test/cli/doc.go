// Package cli tests the command line as a person uses it: scripts for testscript in
// testdata/script, and terminals for gaol run --tty and gaol repl.
//
// The details of the commands' output are tested beside them, in cmd/gaol.
package cli
