package operation

import (
	"context"
	"net/http"
	"reflect"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
)

// SnippetPath is the path of snippets. Unlike the others, it may be used by web pages of other origins and
// by callers without a token, if the settings allow it.
const SnippetPath = "/api/sandbox"

// maxSnippetBody has room for the largest snippet with each byte written as \u0000.
const maxSnippetBody = 6*snippets.MaxBytes + 64<<10

func snippetRuns() []*Operation {
	const tag = "snippets"
	return []*Operation{
		define(Operation{
			Name: "describeSnippets", Tag: tag, Method: http.MethodGet, Path: SnippetPath, Query: true, detached: true,
			Summary: "Describe the snippets that the server runs",
			Doc:     "Lists adapters, permission presets and limits.",
		}, func(_ context.Context, c *Call, _ *struct{}) (*snippetservice.Info, error) {
			return c.Snippets.Info(), nil
		}),
		define(Operation{
			Name: "runSnippet", Tag: tag, Method: http.MethodPost, Path: SnippetPath, MaxBody: maxSnippetBody,
			// As in the API that this path is compatible with.
			BadInput: http.StatusBadRequest, Errors: []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType},
			Output: reflect.TypeFor[snippets.Output](), Brief: func(out any) any { return out.(*resultjson.SnippetResult).Output },
			Events: []EventType{
				{service.EventLog, resultjson.SnippetLog{}, "A line that the snippet printed."},
				{service.EventResult, resultjson.SnippetResult{}, "The last event: the object of the other response, with more about the run."},
				{service.EventError, nil, "The last event, if the server could not run the snippet."},
			},
			Summary: "Run a snippet and return its output",
			Doc:     "Runs one file or several that import each other in a new sandbox, and returns its log, the state of its framework, and its errors. A snippet that fails, or breaks a rule for its files, returns a result, too. With Accept: text/event-stream the response is a stream of events: lines as they arrive, and then the result with more about the run." + cancelText,
		}, runSnippet),
	}
}

func runSnippet(ctx context.Context, c *Call, in *requestjson.SnippetRunIn) (*resultjson.SnippetResult, error) {
	r := snippetservice.Request(*in)
	if err := c.Snippets.Check(r); err != nil {
		return nil, err
	}
	var onLog func(string)
	wait := func() {}
	if c.To != nil {
		var lines chan<- string
		lines, wait = sendLines(c.To)
		onLog = func(line string) { lines <- line }
	}
	out, err := c.Snippets.Output(ctx, c.Tenant, r, onLog)
	wait()
	if out == nil {
		return nil, err
	}
	return resultjson.NewSnippetResult(out), err
}

// sendLines sends lines as events until wait is called. It has room for all lines of a snippet, so that a
// slow client does not occupy a sandbox.
func sendLines(to service.Sink) (lines chan<- string, wait func()) {
	queue, done := make(chan string, snippets.MaxLogs+1), make(chan struct{})
	go func() {
		defer close(done)
		for line := range queue {
			_ = to(service.Event{Name: service.EventLog, Data: resultjson.SnippetLog{Line: line}}) // it cancels the request if the client has gone
		}
	}()
	return queue, func() { close(queue); <-done }
}
