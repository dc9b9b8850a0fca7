// Command prebuild makes the programs that `make build` embeds into gaol: see package programs.
//
//	prebuild [-arch arm64] [-cc COMPILER] [-root DIR] DIR
//
// It writes them to DIR, and DIR.json for the flag -overlay of go build. It must run in the
// repository.
package main
