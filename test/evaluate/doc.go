// Package evaluate tests snippets of code that models write: Evaluate, contexts with
// several cells, host functions and values, and the errors that a model reads.
//
// The shapes of code are tested in internal/snippet, without jails.
package evaluate
