package snippets

import (
	"encoding/json"

	"gaol/runtime"
	"gaol/runtime/snippets/bundle"
)

// Output is what a snippet did. Its JSON has exactly the six fields with names.
type Output struct {
	Logs       []string        `json:"logs"`    // lines such as "[log] hello"
	Facts      json.RawMessage `json:"facts"`   // an object: the state
	Derived    json.RawMessage `json:"derived"` // an object: values computed from it
	Errors     []string        `json:"errors"`  // empty if the snippet works
	DurationMs float64         `json:"durationMs"`
	TimedOut   bool            `json:"timedOut"`

	// Problems are the errors that have a position in the snippet's files.
	Problems []Problem `json:"-"`

	Denials []runtime.Denial `json:"-"`
	Usage   runtime.Usage    `json:"-"`
}

// Problem is an error at a position.
type Problem = bundle.Problem
