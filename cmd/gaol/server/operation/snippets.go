package operation

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/runtime/snippets"
)

// SnippetPath is the path of snippets. Unlike the others, it may be used by web pages of other origins and
// by callers without a token, if the settings allow it.
const SnippetPath = "/api/sandbox"

// maxSnippetBody has room for the largest snippet with each byte written as \u0000.
const maxSnippetBody = 6*snippets.MaxBytes + 64<<10

// SnippetRunIn is the input of runSnippet.
type SnippetRunIn struct {
	snippetservice.Request
	NodeModules string `json:"nodeModules,omitempty" maxLength:"4095" hidden:"true" doc:"The absolute path of the folder with the packages that the snippet may import. Only a server of one program allows it, as the next two."`
	AdapterCode string `json:"adapterCode,omitempty" maxLength:"1048576" hidden:"true" doc:"The ES module of an adapter, whose name is adapter."`
	NoLint      bool   `json:"noLint,omitempty" hidden:"true" doc:"Do not check the adapter's lint rules."`
}

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
			Output: reflect.TypeFor[snippets.Output](), Brief: func(out any) any { return out.(*snippetservice.Result).Output },
			Events: []EventType{
				{snippetservice.EventLog, snippetservice.Log{}, "A line that the snippet printed."},
				{service.EventResult, snippetservice.Result{}, "The last event: the object of the other response, with more about the run."},
				{service.EventError, nil, "The last event, if the server could not run the snippet."},
			},
			Summary: "Run a snippet and return its output",
			Doc:     "Runs one file or several that import each other in a new sandbox, and returns its log, the state of its framework, and its errors. A snippet that fails, or breaks a rule for its files, returns a result, too. With Accept: text/event-stream the response is a stream of events: lines as they arrive, and then the result with more about the run." + cancelText,
		}, runSnippet),
	}
}

func runSnippet(ctx context.Context, c *Call, in *SnippetRunIn) (*snippetservice.Result, error) {
	host, err := in.host(c.Service)
	if err != nil {
		return nil, err
	}
	r := in.Request
	r.Host = host
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
	return snippetservice.NewResult(out), err
}

// host returns what only a trusted client may set, nil if it has set nothing.
func (in *SnippetRunIn) host(s *service.Service) (*snippetservice.Host, error) {
	if in.NodeModules == "" && in.AdapterCode == "" && !in.NoLint {
		return nil, nil
	}
	if !s.Trusted() {
		return nil, &service.Error{Code: service.Forbidden, Err: errors.New("nodeModules, adapterCode and noLint: only a server of one program allows them")}
	}
	if in.NodeModules != "" {
		if info, err := os.Stat(in.NodeModules); !filepath.IsAbs(in.NodeModules) || err != nil || !info.IsDir() {
			return nil, service.Refuse(service.Invalid, "nodeModules %q: want the absolute path of a folder", in.NodeModules)
		}
	}
	h := &snippetservice.Host{NodeModules: in.NodeModules, NoLint: in.NoLint}
	if in.AdapterCode != "" {
		h.Adapter = snippets.Adapter{Name: in.Adapter, Code: in.AdapterCode}
	}
	return h, nil
}

// sendLines sends lines as events until wait is called. It has room for all lines of a snippet, so that a
// slow client does not occupy a sandbox.
func sendLines(to service.Sink) (lines chan<- string, wait func()) {
	queue, done := make(chan string, snippets.MaxLogs+1), make(chan struct{})
	go func() {
		defer close(done)
		for line := range queue {
			_ = to(service.Event{Name: snippetservice.EventLog, Data: snippetservice.Log{Line: line}}) // it cancels the request if the client has gone
		}
	}()
	return queue, func() { close(queue); <-done }
}
