// Package tools tests the sandboxes of runtime/sandboxtools by the names and JSON
// arguments of its tools, as an engine calls them, with whole projects as examples.
package tools
