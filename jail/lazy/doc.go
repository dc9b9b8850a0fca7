// Package lazy computes values on first use. Unlike [sync.OnceValues] it does not keep errors,
// because they may be temporary: a process that has run out of descriptors may close some.
package lazy
