// Package size reads and prints numbers of bytes such as 256m, the syntax of
// gaol's size flags: digits, then nothing or k, m or g for a power of 1024.
//
// github.com/docker/go-units is not used. It computes in float64, so that it
// accepts "1.5m", "0x1p4" and "1e3", wraps around for 8589934592g, and prints
// four digits of 1000000001. A limit must be exact, or an error.
package size
