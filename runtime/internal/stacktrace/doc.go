// Package stacktrace maps positions in a guest's stack traces and messages to the code as
// its author wrote it, which package snippet has rewritten.
package stacktrace
