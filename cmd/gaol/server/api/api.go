package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/internal/strictjson"
)

// API serves requests whose context has a tenant.
type API struct {
	service  *service.Service
	snippets *snippetservice.Service
	huma     huma.API
}

// MaxBody bounds the body of a request in bytes, unless the operation has its own bound.
const MaxBody = 32 << 20

func init() { huma.ValidateStrictCasing, huma.DefaultArrayNullable = true, false }

// Register adds the operations to mux.
func Register(mux *http.ServeMux, s *service.Service, n *snippetservice.Service, version string) *API {
	huma.NewError, huma.NewErrorWithContext = newProblem, snippetErrors
	config := huma.DefaultConfig("gaol", version)
	strictJSON := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: strictjson.Unmarshal}
	config.Formats = map[string]huma.Format{"application/json": strictJSON, "json": strictJSON}
	config.DocsPath = ""     // the page loads scripts from elsewhere
	config.SchemasPath = ""  // the document has them
	config.CreateHooks = nil // they add $schema to each response
	config.RejectUnknownQueryParameters = true
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Info.Description = "Runs untrusted Node.js programs in sandboxes that the kernel enforces."
	a := &API{s, n, humago.New(mux, config)}
	a.addRuns()
	a.addSandboxes()
	a.addContent()
	a.addProcesses()
	a.addContexts()
	a.addSnippets()
	a.completeDocument()
	return a
}

// operation describes an operation. Errors are the statuses that it has beside those that all have.
func operation(id, method, path, summary string, errors ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: MaxBody,
		BodyReadTimeout: -1, // package server bounds the time
		Errors:          append([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}, errors...),
	}
}

// result is a response with a body of JSON.
type result[T any] struct{ Body T }

// InSandbox is a request about a sandbox. It is exported because huma reads exported fields only.
type InSandbox struct {
	ID string `path:"id" maxLength:"64" doc:"The sandbox."`
}

// empty is a response without a body.
type empty struct{}
