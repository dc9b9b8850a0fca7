// Package exampletest runs the examples as tests. It compares what an example prints with the
// output that its README shows, and fails if the example leaves anything on the machine.
package exampletest
