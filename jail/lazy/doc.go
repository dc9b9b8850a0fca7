// Package lazy computes values on first use. Unlike [sync.OnceValues] it does not keep errors: a
// process that has no descriptor left now may have some later.
package lazy
