// Package ociruntime finds OCI runtimes, runc and crun. They implement the runtime specification of the
// Open Container Initiative. [Beside] finds other programs that belong to gaol, such as nats-server.
//
//	path, err := ociruntime.Find("runc")
//
// gaol executes such a program as root. [Find] and [Beside] therefore reject files that other users than root and
// the caller can write. It does not check the folders above them: PATH and absolute paths are trusted.
package ociruntime
