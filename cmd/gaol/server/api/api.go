package api

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"errors"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/danielgtaylor/huma/v2/negotiation"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/snippetservice"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/schema"
	"gaol/internal/strictjson"
)

// API serves requests whose context carries a tenant.
type API struct {
	service  *service.Service
	snippets *snippetservice.Service
	document *huma.OpenAPI
}

// MaxBody bounds the body of a request in bytes, unless the operation has its own bound.
const MaxBody = 32 << 20

// Register adds the operations to mux.
func Register(mux *http.ServeMux, s *service.Service, n *snippetservice.Service, version string) *API {
	config := huma.DefaultConfig("gaol", version)
	config.DocsPath = ""     // the page loads scripts from elsewhere
	config.SchemasPath = ""  // the document has them
	config.CreateHooks = nil // they add $schema to each response
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	config.Info.Description = "Runs untrusted Node.js programs in sandboxes that the kernel enforces."
	a := &API{s, n, humago.New(mux, config).OpenAPI()} // which adds the document's paths
	special := map[string]http.HandlerFunc{"readFile": a.readFile, "packFolder": a.packFolder, "followProcess": a.followProcess}
	for _, o := range operation.All() {
		if o.Path == "" {
			continue
		}
		serve := a.serve(o)
		if o.IsDirect() {
			serve = special[o.Name]
		}
		mux.HandleFunc(o.Method+" "+o.Path, serve)
		a.describe(o)
	}
	a.completeDocument()
	return a
}

// serve returns the handler of an operation.
func (a *API) serve(o *operation.Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := decode(o, w, r, nil)
		if err != nil {
			ProblemOf(err).Write(w)
			return
		}
		if o.Events != nil && wantsEvents(r) {
			stream(r.Context(), w, firstSign, func(ctx context.Context, s *eventStream) error {
				c := a.call(r)
				c.To = s.send
				out, err := o.Do(ctx, c, in)
				if err != nil {
					return problemOf(o, err)
				}
				return s.send(service.Event{Name: service.EventResult, Data: out})
			})
			return
		}
		c := a.call(r)
		var data *upload
		c.Upload = func(ctx context.Context, maxBytes int64) (_ io.Reader, err error) {
			data, err = newUpload(ctx, w, r, maxBytes)
			return data, err
		}
		out, err := o.Do(r.Context(), c, in)
		if err != nil {
			if data != nil {
				err = data.reason(err)
			}
			problemOf(o, err).Write(w)
			return
		}
		respond(o, w, out)
	}
}

// call returns the call of a request without streams.
func (a *API) call(r *http.Request) *operation.Call {
	return &operation.Call{Service: a.service, Snippets: a.snippets, Tenant: tenant.FromContext(r.Context())}
}

// respond writes the result of an operation.
func respond(o *operation.Operation, w http.ResponseWriter, out any) {
	if o.Output == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if o.Brief != nil {
		out = o.Brief(out)
	}
	text, err := encode(out)
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", typeJSON)
	if o.Status != 0 {
		w.WriteHeader(o.Status)
	}
	_, _ = w.Write(text) // the client may have gone
}

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// wantsEvents reports whether a client prefers events to an object.
func wantsEvents(r *http.Request) bool {
	return negotiation.SelectQValue(r.Header.Get("Accept"), []string{typeJSON, typeEvents}) == typeEvents
}

// decode returns the input of a request. Headers are parameters from headers.
func decode(o *operation.Operation, w http.ResponseWriter, r *http.Request, headers map[string]string) (any, error) {
	params := map[string]string{}
	for _, f := range o.PathFields() {
		params[f.Field] = r.PathValue(f.Name)
	}
	for name, values := range r.URL.Query() {
		if !o.Query || o.Locate(name) == operation.InPath {
			return nil, invalid(o, &huma.ErrorDetail{Message: "unknown query parameter", Location: "query." + name})
		}
		params[name] = values[0]
	}
	for name, value := range headers {
		params[name] = value
	}
	var body []byte
	if o.HasBody() {
		var err error
		if body, err = readBody(o, w, r); err != nil {
			return nil, err
		}
	}
	in, err := o.Decode(body, params)
	if bad, ok := errors.AsType[*schema.InvalidError](err); ok {
		if bad.Syntax {
			p := NewProblem(http.StatusBadRequest, "validation failed")
			p.Errors = []*huma.ErrorDetail{{Message: bad.Details[0].Message, Location: "body"}}
			return nil, p
		}
		return nil, invalid(o, o.At(bad.Details)...)
	}
	return in, err
}

// invalid returns the problem of an input that the schema does not allow.
func invalid(o *operation.Operation, details ...*huma.ErrorDetail) *Problem {
	status := http.StatusUnprocessableEntity
	if o.BadInput != 0 {
		status = o.BadInput
	}
	p := NewProblem(status, "validation failed")
	p.Errors = details
	return p
}

// readBody reads the body of a request.
func readBody(o *operation.Operation, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := o.MaxBody
	if most == 0 {
		most = MaxBody
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_, large := errors.AsType[*http.MaxBytesError](err)
	_, values := errors.AsType[*strictjson.ValuesError](err)
	exceeded, quota := errors.AsType[*service.Error](err)
	switch {
	case quota: // of values
		return nil, exceeded
	case values:
		return nil, NewProblem(http.StatusBadRequest, "the body: "+err.Error())
	case large:
		return nil, NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("request body is too large limit=%d bytes", most))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, NewProblem(http.StatusRequestTimeout, "the body did not arrive in time")
	case err != nil:
		return nil, NewProblem(http.StatusBadRequest, "cannot read request body")
	case len(body) == 0 && !o.BodyOptional:
		return nil, NewProblem(http.StatusBadRequest, "request body is required")
	}
	return body, nil
}
