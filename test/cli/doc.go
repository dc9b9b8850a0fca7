// Package cli tests the command line as a person uses it: scripts for testscript in
// testdata/script, and terminals for gaol run --tty and gaol repl.
//
// It also tests what make build makes, and how gaol is installed: make install, and the Debian
// package in a copy of this machine's file system; and that the recipes of the documentation work.
//
// What the commands print in detail is tested beside them, in cmd/gaol.
package cli
