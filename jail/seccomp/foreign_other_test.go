//go:build !amd64

package seccomp

// callForeign has nothing to do here: no other architecture's calls can be made
// from a 64-bit program.
func callForeign() {}
