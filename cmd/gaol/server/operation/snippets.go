package operation

import (
	"net/http"
	"reflect"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
)

// SnippetPath is the path of snippets. Unlike the others, it may be used by web pages of other origins and
// by callers without a token, if the settings allow it.
const SnippetPath = "/api/sandbox"

// maxSnippetBody has room for the largest snippet with each byte written as \u0000.
const maxSnippetBody = 6*snippets.MaxBytes + 64<<10

func snippetRuns() []*Operation {
	return []*Operation{
		ofService(Operation{
			Name: "describeSnippets", Method: http.MethodGet, Path: SnippetPath, Query: true, unawaited: true,
			Summary: "Describe the snippets that the server runs",
			Doc:     "Lists adapters, permission presets and limits.",
		}, (*service.Service).DescribeSnippets),
		ofService(Operation{
			Name: "runSnippet", Method: http.MethodPost, Path: SnippetPath, MaxBody: maxSnippetBody,
			// As in the API that this path is compatible with.
			BadInput: http.StatusBadRequest,
			Output:   reflect.TypeFor[snippets.Output](), Brief: func(out any) any { return out.(*resultjson.SnippetResult).Output },
			Events: []EventType{
				{service.EventLog, resultjson.SnippetLog{}, "A line that the snippet printed."},
				{service.EventResult, resultjson.SnippetResult{}, "The last event: the object of the other response, with more about the run."},
				{service.EventError, nil, "The last event, if the server could not run the snippet."},
			},
			Summary: "Run a snippet and return its output",
			Doc:     "Runs one file or several that import each other in a new sandbox, and returns its log, the state of its framework, and its errors. A snippet that fails, or breaks a rule for its files, returns a result, too. With Accept: text/event-stream the response is a stream of events: lines as they arrive, and then the result with more about the run." + cancelText,
		}, (*service.Service).RunSnippet),
	}
}
