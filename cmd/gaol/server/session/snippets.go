package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/runtime/snippets"
)

// runSnippetParams are those of runSnippet.
type runSnippetParams struct {
	snippetservice.Request
	SnippetHost
	Logs bool `json:"logs,omitempty" doc:"Send each line as it is printed."`
}

// SnippetHost is what only a client may set that is trusted like root.
type SnippetHost struct {
	NodeModules string `json:"nodeModules,omitempty" maxLength:"4095" doc:"The absolute path of the folder with the packages that the snippet may import."`
	AdapterCode string `json:"adapterCode,omitempty" maxLength:"1048576" doc:"The ES module of an adapter, whose name is adapter."`
	NoLint      bool   `json:"noLint,omitempty" doc:"Do not check the adapter's lint rules."`
}

// snippetLog is an event.
type snippetLog struct {
	Type string `json:"type"` // log
	snippetservice.Log
}

// runSnippet runs a snippet. One that the client cancels has a result, too, once it has begun.
func runSnippet(t *task, p runSnippetParams) (_ any, err error) {
	if p.SnippetHost != (SnippetHost{}) {
		if p.Host, err = t.snippetHost(p); err != nil {
			return nil, err
		}
	}
	out, err := t.snippets.Output(t.ctx, t.tenant, p.Request, t.onLine(p.Logs))
	if out == nil || err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return snippetservice.NewResult(out), nil
}

// snippetHost checks what only a trusted client may set.
func (t *task) snippetHost(p runSnippetParams) (*snippetservice.Host, error) {
	if !t.service.Trusted() {
		return nil, &service.Error{Code: service.Forbidden, Err: errors.New("nodeModules, adapterCode and noLint: only a server of one program allows them")}
	}
	if p.NodeModules != "" {
		if info, err := os.Stat(p.NodeModules); !filepath.IsAbs(p.NodeModules) || err != nil || !info.IsDir() {
			return nil, service.Invalidf("nodeModules %q: want the absolute path of a folder", p.NodeModules)
		}
	}
	h := &snippetservice.Host{NodeModules: p.NodeModules, NoLint: p.NoLint}
	if p.AdapterCode != "" {
		h.Adapter = snippets.Adapter{Name: p.Adapter, Code: p.AdapterCode}
	}
	return h, nil
}

// onLine returns a function that sends lines of snippets, or nil if they are not wanted.
func (t *task) onLine(wanted bool) func(string) {
	if !wanted {
		return nil
	}
	return func(line string) {
		_ = t.event(snippetLog{"log", snippetservice.Log{Line: line}}) // fails if the task ends
	}
}
