// Package ociruntime finds OCI runtimes, runc and crun. They implement the runtime specification of the
// Open Container Initiative.
//
//	path, err := ociruntime.Find("runc")
//
// gaol executes such a program as root. [Find] therefore rejects files that other users than root and
// the caller can write. It does not check the folders above them: PATH and absolute paths are trusted.
package ociruntime
