// Package jsonform encodes the results of package runtime, whose types have the names of JSON in tags: durations are
// milliseconds with three decimals, and lists are never null.
//
//	runtime.Log, ... ── MarshalJSON ──> Marshal(the type without methods, or a form) ──> JSON
package jsonform
