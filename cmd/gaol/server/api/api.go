package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/negotiation"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/schema"
	"gaol/internal/strictjson"
	"gaol/runtime/resultjson"
)

// MaxBody bounds the body of a request in bytes, unless the operation has its own bound.
const MaxBody = 32 << 20

// DocumentPath is the path of the OpenAPI document.
const DocumentPath = "/openapi.json"

// Register adds the operations, and the document that describes them, to mux. Contexts of requests must carry a tenant.
func Register(mux *http.ServeMux, s *service.Service, version string) {
	for _, o := range operation.All() {
		if o.Path != "" {
			mux.HandleFunc(o.Method+" "+o.Path, serve(s, o))
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
func serve(s *service.Service, o *operation.Operation) http.HandlerFunc {
	batch := operation.ByName(operation.Submit)
	canSubmit := o.Name == "run" || o.Name == "command"
	return func(w http.ResponseWriter, r *http.Request) {
		o := o
		switch {
		case r.Header.Get("Idempotency-Key") == "" || r.Method != http.MethodPost || o == batch:
		case canSubmit && prefersAsync(r):
			o = batch
		default: // it would have no effect
			WriteProblem(w, http.StatusUnprocessableEntity, "Idempotency-Key is for batch runs: /v1/runs, and with Prefer: respond-async /v1/run and /v1/command")
			return
		}
		in, err := decode(o, w, r)
		if err != nil {
			ProblemOf(err).Write(w)
			return
		}
		c := &operation.Call{Service: s, Tenant: tenant.FromContext(r.Context())}
		switch {
		case o.EventsOnly || o.Events != nil && wantsEvents(r):
			sendEvents(o, w, r, c, in)
		case o.Download != "":
			d := &download{Writer: Writer{w, r.Context()}, operation: o, request: r}
			c.Download = d.open
			d.end(o.Do(r.Context(), c, in))
		case o.Upload != nil:
			u := &upload{w: w, request: r}
			c.Upload = u.open
			out, err := o.Do(r.Context(), c, in)
			respond(o, w, out, u.reason(err))
		default:
			out, err := o.Do(r.Context(), c, in)
			respond(o, w, out, err)
		}
	}
}

// respond writes the result of an operation.
func respond(o *operation.Operation, w http.ResponseWriter, out any, err error) {
	if err != nil {
		problemOf(o, err).Write(w)
		return
	}
	if o.Output == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if o.Brief != nil {
		out = o.Brief(out)
	}
	text, err := strictjson.Encode(out, "")
	if err != nil {
		ProblemOf(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", typeJSON)
	if run, ok := out.(*resultjson.BatchRun); ok && o.Status == http.StatusAccepted {
		w.Header().Set("Location", "/v1/runs/"+run.Key)
	}
	if o.Status != 0 {
		w.WriteHeader(o.Status)
	}
	_, _ = w.Write(text) // the client may have gone
}

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// prefersAsync reports whether a client wants a batch run (RFC 7240).
func prefersAsync(r *http.Request) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(r.Header.Values("Prefer"), ","), ","), func(p string) bool {
		return strings.EqualFold(strings.TrimSpace(p), "respond-async")
	})
}

// wantsEvents reports whether a client prefers events to an object.
func wantsEvents(r *http.Request) bool {
	return negotiation.SelectQValue(r.Header.Get("Accept"), []string{typeJSON, typeEvents}) == typeEvents
}

// headerFields are the fields of inputs that are headers by HTTP.
var headerFields = map[string]string{"Last-Event-ID": "lastEventId", "Idempotency-Key": "idempotencyKey"}

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
	for name, field := range headerFields {
		if text := r.Header.Get(name); text != "" && o.Input.Schema.Properties[field] != nil {
			params[field] = strings.Trim(text, `"`) // a structured field of HTTP is quoted
		}
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

// portTarget is the target of a request to a guest's port.
type portTarget struct {
	sandbox, port string
	prefix        string // of the path
	rest          string // of the path, escaped; it begins with a slash
}

// parsePortTarget parses the path of a request to a guest's port:
// /v1/sandboxes/ID/ports/PORT, optionally followed by a slash and more.
func parsePortTarget(r *http.Request) (t portTarget, ok bool) {
	p := strings.SplitN(r.URL.EscapedPath(), "/", 7)
	if len(p) < 6 || p[0] != "" || p[1] != "v1" || p[2] != "sandboxes" || p[4] != "ports" {
		return t, false
	}
	t = portTarget{p[3], p[5], strings.Join(p[:6], "/"), "/"}
	if len(p) == 7 {
		t.rest += p[6]
	}
	return t, true
}

// IsPort reports whether a request is about a guest's port: its body may have any type.
func IsPort(r *http.Request) bool {
	_, ok := parsePortTarget(r)
	return ok
}

// WithPorts serves the requests to guests' ports of a tenant, and others with mux. Paths and methods that mux does
// not have are problems.
func WithPorts(s *service.Service, mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, ok := parsePortTarget(r)
		if !ok {
			if h, pattern := mux.Handler(r); pattern == "" {
				h.ServeHTTP(&download{Writer: Writer{w, r.Context()}}, r)
			} else {
				mux.ServeHTTP(w, r)
			}
			return
		}
		servePort(s, w, r, t)
	})
}

// ReadBody reads the body of a request, of at most some bytes. It reserves memory for values of JSON by the
// quotas of [WithQuota].
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(max(0, min(r.ContentLength, most))) + bytes.MinRead) // growing later would copy
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		return nil, NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("request body is too large limit=%d bytes", most))
	case err != nil:
		return nil, bodyProblem(err)
	}
	if q, ok := r.Context().Value(quotaKey{}).(*bodyQuota); ok {
		err = q.hold(r.Context(), body.Bytes())
	}
	return body.Bytes(), err
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
		done, err := q.account.WaitText(ctx, len(text))
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
