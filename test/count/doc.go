// Command count prints how large the product is, by folder.
//
//	go run ./test/count [-lines N] [-files N] [-packages N] [-typescript N] [folder]
//
// It counts the files that git tracks. A line of Go counts if it has a token that is no comment,
// a line of TypeScript if it has text outside comments. Tests, generated files and the
// folders test and examples do not count.
//
// A flag is a budget: the exit status is 1 if the product exceeds it.
package main
