// Package cli tests the command line as a person uses it: scripts for testscript in
// testdata/script, and terminals for gaol run --tty and gaol repl.
//
// What the commands print in detail is tested beside them, in cmd/gaol.
package cli
