// Package programs makes the files of gaol that every image gets beside Node: the entry program,
// the zygote's shared object and the program of commands, which are compiled, and catatonit
// and busybox, which are copied.
//
//	make build ── Prebuild ── bin/prebuilt ── embedded into bin/gaol ──┐
//	                                                                  ├─ Maker.Open ── image
//	go build ── no files ── Maker.Make with the host's compiler ──────┘
//
// Both ways use [Maker.Make], so that the same compiler and the same host programs give the
// same bytes. [Maker.Prebuild] writes a file with a hash of all sources and of the compiler's
// flags. [Maker.Open] and [Maker.Check] reject prebuilt programs with [ErrOutdated] if the hash
// differs from the hash of the sources in the binary.
//
// The folder prebuilt is without programs in the repository. `make build` adds the files by go build's
// flag -overlay, so that a plain `go build` or `go test` never embeds leftover ones.
//
// # Not protected against
//
// The hash covers the programs that gaol compiles. The compiler, the C library, catatonit and busybox are
// from the machine that ran `make build`, or that builds the image.
package programs
