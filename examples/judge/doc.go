// Command judge grades solutions of a programming exercise. It gives each solution the same
// inputs, compares the output, and reports why a solution fails.
package main
