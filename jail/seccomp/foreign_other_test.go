//go:build !amd64

package seccomp

// callForeign does nothing: a 64-bit program of this architecture can't make calls of
// another one.
func callForeign() {}
