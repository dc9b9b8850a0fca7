// Package tools tests the packages that build on package runtime.
//
//	snippets_*_test.go   runners of snippets, package runtime/snippets
//	*_test.go            the sandboxes of runtime/sandboxtools by the names and JSON arguments of
//	                     their tools, as an engine calls them, with whole projects as examples
package tools
