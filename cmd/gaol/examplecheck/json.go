package examplecheck

import "gaol/runtime/snippets"

// JSON is the JSON of a report.
type JSON struct {
	Examples   []ExampleJSON `json:"examples"`
	Passed     int           `json:"passed"`
	Failed     int           `json:"failed"`
	Skipped    int           `json:"skipped"`
	Cached     int           `json:"cached"`
	DurationMs int64         `json:"durationMs"`
}

// ExampleJSON is the JSON of a result.
type ExampleJSON struct {
	File   string           `json:"file"`
	Line   int              `json:"line"`
	Name   string           `json:"name,omitempty"`
	Status Status           `json:"status"`
	Reason string           `json:"reason,omitempty"` // why it is skipped
	Cached bool             `json:"cached"`
	Errors []Message        `json:"errors"`
	Diff   string           `json:"diff,omitempty"`
	Output *snippets.Output `json:"output,omitempty"`
}

// JSON returns the report as an object.
func (r *Report) JSON() JSON {
	object := JSON{
		Examples: []ExampleJSON{}, Passed: r.Passed, Failed: r.Failed, Skipped: r.Skipped, Cached: r.Cached,
		DurationMs: r.Duration.Milliseconds(),
	}
	for _, result := range r.Results {
		e := result.Example
		example := ExampleJSON{
			File: e.File, Line: e.Line, Name: e.Name, Status: result.Status, Cached: result.Cached,
			Errors: append([]Message{}, result.Errors...), Diff: result.Diff, Output: result.Output,
		}
		if result.Status == Skipped {
			example.Reason = e.Skip
		}
		object.Examples = append(object.Examples, example)
	}
	return object
}
