// Package ociruntime finds the programs that make containers as the runtime specification of the
// Open Container Initiative says, runc and crun, and asks them what they support.
//
//	path, err := ociruntime.Find("runc")
//	info, err := ociruntime.Probe(ctx, path)
//
// gaol executes such a program as root. [Find] therefore rejects files that other users than root and
// the caller can write. It does not check the folders above them: PATH and absolute paths are trusted.
package ociruntime
