package resultjson

import (
	"gaol/runtime"
	"gaol/runtime/snippets"
)

// SnippetResult is the output of a snippet, with a report of its run.
type SnippetResult struct {
	*snippets.Output
	Problems []snippets.Problem `json:"problems"`
	Denials  []runtime.Denial   `json:"denials"`
	Usage    runtime.Usage      `json:"usage"`
}

// NewSnippetResult converts an output.
func NewSnippetResult(o *snippets.Output) *SnippetResult {
	return &SnippetResult{o, append([]snippets.Problem{}, o.Problems...), append([]runtime.Denial{}, o.Denials...), o.Usage} // lists even if empty
}

// SnippetLog is a line that a snippet has printed.
type SnippetLog struct {
	Line string `json:"line" doc:"Such as [log] hello."`
}
