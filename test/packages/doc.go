// Command packages checks that programs which use popular npm packages run in gaol as
// they do under plain Node.
//
//	go run ./test/packages [-memory 256m] [PROGRAM...]
//
// It installs the packages of package.json on the host, with the Node of the default
// image, and runs each file of programs four times: with plain Node, by gaol run with
// both launchers, and by gaol eval. The packages are mounted with --node-modules; all
// else is gaol's defaults, unless -memory is given. Standard output and exit code must be those of plain Node.
//
// A program that needs more than the defaults reports it on its first line:
//
//	// gaol: --allow-net tcp://localhost:*
//
// The programs of the folder internet use servers, real ones of PostgreSQL and Redis among
// them, on an internet of the tests' own: see package internettest. The variable CA names
// the file of the authority that signed the servers' certificates.
//
// The folder snippets has snippets with zustand. Before this command, make packages checks them by
// gaol snippet check, with the adapter that docs/snippets.md shows.
//
// The exit status is 0 if there is no difference beside those in known.go.
package main
