// Command count prints how large the product is, by folder, or how the text of the repository is written.
//
//	go run ./test/count [-lines N] [-files N] [-packages N] [-typescript N] [folder]
//	go run ./test/count -words [-list] [-comments N] [-strings N] [-docs N] [folder]
//
// It counts the files that git tracks. A line of Go counts if it contains a token that is not a comment,
// a line of TypeScript if it contains text outside comments. Tests, generated files and the
// folders test and examples do not count.
//
// With -words it counts phrases that name things by clauses instead of terms, in 1,000 lines of comments, of
// strings (errors, help and other text of the product), and of documents. CONTRIBUTING.md shows how to write
// instead.
//
// A flag with a number is a budget: the exit status is 1 if the product exceeds it.
package main
