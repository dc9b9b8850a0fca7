package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/runtime/snippets"
)

// SnippetPath is the path of snippets. Unlike the others, it may be used by web pages of other origins and
// by callers without a token, if the settings say so.
const SnippetPath = "/api/sandbox"

// maxSnippetBody has room for the largest snippet with each byte written as \u0000.
const maxSnippetBody = 6*snippets.MaxBytes + 64<<10

// addSnippets adds the operations on snippets.
func (a *API) addSnippets() {
	info := operation("describeSnippets", http.MethodGet, SnippetPath, "Say which snippets the server runs")
	huma.Register(a.huma, info, func(context.Context, *struct{}) (*result[*snippetservice.Info], error) {
		return &result[*snippetservice.Info]{a.snippets.Info()}, nil
	})
	run := operation("runSnippet", http.MethodPost, SnippetPath, "Run a snippet and return what it does", http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	run.MaxBodyBytes = maxSnippetBody
	describe[snippets.Output](a, &run, snippetEvents)
	huma.Register(a.huma, run, a.runSnippet)
	for _, name := range []string{"SnippetOutput", "SnippetResult"} {
		properties := a.huma.OpenAPI().Components.Schemas.Map()[name].Properties
		properties["facts"].Type, properties["derived"].Type = huma.TypeObject, huma.TypeObject
	}
}

var snippetEvents = []eventType{
	{snippetservice.EventLog, snippetservice.Log{}, "A line that the snippet printed."},
	{service.EventResult, snippetservice.Result{}, "The last event: the object of the other response, with more about the run."},
	{service.EventError, Problem{}, "The last event, if the server could not run the snippet."},
}

type snippetRequest struct {
	Negotiated
	Body snippetservice.Request
}

func (a *API) runSnippet(ctx context.Context, r *snippetRequest) (*huma.StreamResponse, error) {
	t := tenantOf(ctx)
	if err := a.snippets.Check(r.Body); err != nil {
		return nil, NewProblem(http.StatusBadRequest, err.Error())
	}
	if !r.events {
		return respond(ctx, r.Negotiated, func(ctx context.Context, _ service.Sink) (*snippets.Output, error) {
			return a.snippets.Output(ctx, t, r.Body, nil)
		})
	}
	return respond(ctx, r.Negotiated, func(ctx context.Context, to service.Sink) (*snippetservice.Result, error) {
		lines, sent := sendLines(to)
		out, err := a.snippets.Output(ctx, t, r.Body, func(line string) { lines <- line })
		close(lines)
		<-sent
		if err != nil {
			return nil, err
		}
		return snippetservice.NewResult(out), nil
	})
}

// sendLines sends lines as events until the channel is closed. It has room for all lines of a snippet, so
// that a slow client does not occupy a sandbox.
func sendLines(to service.Sink) (lines chan<- string, sent <-chan struct{}) {
	queue, done := make(chan string, snippets.MaxLogs+1), make(chan struct{})
	go func() {
		defer close(done)
		for line := range queue {
			_ = to(service.Event{Name: snippetservice.EventLog, Data: snippetservice.Log{Line: line}}) // it cancels the request if the client has gone
		}
	}()
	return queue, done
}

// snippetErrors is [huma.NewErrorWithContext]: a request of [SnippetPath] that its schema does not allow
// has the status 400, as in the API that this path is compatible with.
func snippetErrors(ctx huma.Context, status int, detail string, errs ...error) huma.StatusError {
	if status == http.StatusUnprocessableEntity && ctx.Operation().Path == SnippetPath {
		status = http.StatusBadRequest
	}
	p := newProblem(status, detail, errs...)
	if p, ok := p.(*Problem); ok && p.retryAfter > 0 {
		ctx.SetHeader("Retry-After", p.seconds())
	}
	return p
}

// schemaName names a type in the document. Snippets have types with the names of others.
func schemaName(t reflect.Type, hint string) string {
	name, of := huma.DefaultSchemaNamer(t, hint), t
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if path := of.PkgPath(); strings.Contains(path, "/runtime/snippets") || strings.HasSuffix(path, "/snippetservice") {
		return "Snippet" + name
	}
	return name
}
