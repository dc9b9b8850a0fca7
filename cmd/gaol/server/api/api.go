package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/negotiation"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/schema"
	"gaol/internal/strictjson"
)

// API serves requests whose context carries a tenant.
type API struct {
	service *service.Service
}

// MaxBody bounds the body of a request in bytes, unless the operation has its own bound.
const MaxBody = 32 << 20

// DocumentPath is the path of the OpenAPI document.
const DocumentPath = "/openapi.json"

// Register adds the operations, and the document that describes them, to mux.
func Register(mux *http.ServeMux, s *service.Service, version string) {
	a := &API{s}
	for _, o := range operation.All() {
		if o.Path != "" {
			mux.HandleFunc(o.Method+" "+o.Path, a.serve(o))
		}
	}
	text := sync.OnceValues(func() ([]byte, error) { return json.Marshal(newDocument(version)) }) // takes some milliseconds
	mux.HandleFunc("GET "+DocumentPath, func(w http.ResponseWriter, _ *http.Request) {
		text, err := text()
		if err != nil {
			ProblemOf(err).Write(w)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(text) // the client may have gone
	})
}

// serve returns the handler of an operation.
func (a *API) serve(o *operation.Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := decode(o, w, r)
		if err != nil {
			ProblemOf(err).Write(w)
			return
		}
		c := &operation.Call{Service: a.service, Tenant: tenant.FromContext(r.Context())}
		do := func(ctx context.Context) (any, error) { return o.Do(ctx, c, in) }
		switch {
		case o.EventsOnly || o.Events != nil && wantsEvents(r):
			sendEvents(o, w, r, func(ctx context.Context, s *eventStream) (any, error) {
				c.To = s.send
				return do(ctx)
			})
		case o.Download != "":
			ctx, end, err := a.service.Begin(r.Context()) // its end interrupts the download
			if err != nil {
				ProblemOf(err).Write(w)
				return
			}
			defer end()
			d := &download{ResponseWriter: w, operation: o, request: r.WithContext(ctx), control: http.NewResponseController(w)}
			c.Download = d
			d.send(do)
		default:
			u := &upload{w: w, request: r}
			c.Upload = u.open
			out, err := do(r.Context())
			if err = u.reason(err); err != nil {
				problemOf(o, err).Write(w)
				return
			}
			respond(o, w, out)
		}
	}
}

// sendEvents performs an operation and sends its events.
func sendEvents(o *operation.Operation, w http.ResponseWriter, r *http.Request, do func(context.Context, *eventStream) (any, error)) {
	begin := firstSign
	if o.EventsOnly {
		begin = followSign
	}
	stream(r.Context(), w, begin, func(ctx context.Context, s *eventStream) error {
		out, err := do(ctx, s)
		switch {
		case err != nil:
			return problemOf(o, err)
		case o.EventsOnly:
			return nil
		}
		return s.send(service.Event{Name: service.EventResult, Data: out})
	})
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
	text, err := operation.Encode(out)
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

// decode returns the input of a request.
func decode(o *operation.Operation, w http.ResponseWriter, r *http.Request) (any, error) {
	params := map[string]string{}
	for _, f := range o.PathFields {
		params[f.Field] = r.PathValue(f.Name)
	}
	for name, values := range r.URL.Query() {
		if !o.Query || o.InPath(name) {
			return nil, invalid(o, false, &huma.ErrorDetail{Message: "unknown query parameter", Location: name})
		}
		params[name] = values[0]
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" && o.EventsOnly {
		params["lastEventId"] = id
	}
	var body []byte
	if o.HasBody() {
		var err error
		if body, err = ReadBody(w, r, cmp.Or(o.MaxBody, MaxBody)); err != nil {
			return nil, err
		}
		if len(body) == 0 && !o.BodyOptional {
			return nil, NewProblem(http.StatusBadRequest, "request body is required")
		}
	}
	in, err := o.Decode(body, params)
	if bad, ok := errors.AsType[*schema.InvalidError](err); ok {
		return nil, invalid(o, bad.Syntax, bad.Details...)
	}
	return in, err
}

// invalid returns the problem of an input that is not JSON, or that the schema does not allow.
func invalid(o *operation.Operation, syntax bool, details ...*huma.ErrorDetail) *Problem {
	status := cmp.Or(o.BadInput, http.StatusUnprocessableEntity)
	if syntax {
		status = http.StatusBadRequest
	}
	p := NewProblem(status, "validation failed")
	p.Errors = details
	return p
}

// ReadBody reads the body of a request, of at most some bytes. It reserves memory for values of JSON by the
// quotas of [WithQuota].
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		return nil, NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("request body is too large limit=%d bytes", most))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, NewProblem(http.StatusRequestTimeout, "the body did not arrive in time")
	case err != nil:
		return nil, NewProblem(http.StatusBadRequest, "cannot read request body")
	}
	if q, ok := r.Context().Value(quotaKey{}).(*bodyQuota); ok {
		err = q.hold(r.Context(), body)
	}
	return body, err
}

// quotaKey is the context key of a bodyQuota.
type quotaKey struct{}

// bodyQuota is the tenant's account, and the reservation of its request.
type bodyQuota struct {
	account *quota.Account
	held    *quota.Reservation
}

// WithQuota returns a context of a request whose reservation includes the values of its body.
func WithQuota(ctx context.Context, a *quota.Account, held *quota.Reservation) context.Context {
	return context.WithValue(ctx, quotaKey{}, &bodyQuota{a, held})
}

// hold reserves memory for the values of a text. Large texts are counted one at a time.
func (q *bodyQuota) hold(ctx context.Context, text []byte) error {
	if len(text) > quota.LargeText {
		done, err := q.account.Wait(ctx, quota.Texts)
		if err != nil {
			return err
		}
		defer done()
	}
	values, err := strictjson.Count(text)
	if err != nil {
		return NewProblem(http.StatusBadRequest, "the body: "+err.Error())
	}
	return q.held.Hold(int64(values) * quota.ValueBytes)
}
