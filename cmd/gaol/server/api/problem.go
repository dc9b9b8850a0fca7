package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	"gaol/internal/schema"
	"gaol/runtime/sandboxtools"
)

// Problem is the body of each error, by HTTP (RFC 9457) and in sessions.
type Problem struct {
	Type   string              `json:"type" doc:"about:blank: the code identifies the error."`
	Title  string              `json:"title" doc:"The text of the status."`
	Status int                 `json:"status"`
	Code   service.Code        `json:"code" doc:"A stable name of the error, for programs."`
	Detail string              `json:"detail,omitempty" doc:"The problem, for people."`
	Errors []*huma.ErrorDetail `json:"errors,omitempty" doc:"Which fields are invalid."`

	RetryAfterMs int64 `json:"retryAfterMs,omitempty" doc:"When the request may succeed, in milliseconds."`
}

var problemType = reflect.TypeFor[Problem]()

// Error returns the detail.
func (p *Problem) Error() string { return cmp.Or(p.Detail, p.Title) }

const typeProblem = "application/problem+json"

// codes are the codes of errors that HTTP itself causes.
var codes = map[int]service.Code{
	http.StatusBadRequest: "bad_request", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: service.Forbidden,
	http.StatusNotFound: service.NotFound, http.StatusMethodNotAllowed: "method_not_allowed", http.StatusNotAcceptable: "not_acceptable",
	http.StatusRequestTimeout: "request_timeout", http.StatusRequestEntityTooLarge: service.TooLarge,
	http.StatusUnsupportedMediaType: "unsupported_media_type", http.StatusMisdirectedRequest: "wrong_host", http.StatusUnprocessableEntity: service.Invalid,
	http.StatusRequestHeaderFieldsTooLarge: service.TooLarge, http.StatusNotImplemented: "not_implemented", http.StatusHTTPVersionNotSupported: "http_version",
	http.StatusRequestedRangeNotSatisfiable: "range_not_satisfiable", http.StatusPreconditionFailed: "precondition_failed",
	http.StatusTooManyRequests: service.Exceeded, http.StatusServiceUnavailable: service.Draining,
}

// NewProblem returns a problem of HTTP itself.
func NewProblem(status int, detail string) *Problem {
	code := cmp.Or(codes[status], service.Internal)
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// ProblemOf returns the problem for an error: of package service, of an input, of a canceled request, or a problem itself.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	e, ok := service.AsError(err)
	switch {
	case !ok && errors.Is(err, context.Canceled):
		e = service.Refuse(service.Canceled, "the request was canceled")
	case !ok:
		return NewProblem(http.StatusInternalServerError, "")
	}
	p := NewProblem(e.Status(), e.Error())
	p.Code, p.RetryAfterMs = e.Code, e.RetryAfter.Milliseconds()
	if bad, ok := errors.AsType[*schema.InvalidError](err); ok && !bad.Syntax {
		p.Errors = bad.Details
	} else if tool, ok := errors.AsType[*sandboxtools.Error](err); ok && tool.Place != "" {
		p.Errors = []*huma.ErrorDetail{{Message: tool.Err.Error(), Location: tool.Place}}
	}
	return p
}

// problemOf returns the problem for the error of an operation.
func problemOf(o *operation.Operation, err error) *Problem {
	p := ProblemOf(err)
	if p.Code == service.Invalid && o.BadInput != 0 {
		return NewProblem(o.BadInput, p.Detail)
	}
	return p
}

// Write writes the problem as a response.
func (p *Problem) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", typeProblem)
	if p.RetryAfterMs > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((p.RetryAfterMs+999)/1000, 10))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

// WriteProblem writes a problem of HTTP itself.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	NewProblem(status, detail).Write(w)
}

// Recorder keeps a response of at most some bytes in memory. Over means that it was longer.
type Recorder struct {
	Most   int
	Status int // 0: there was no response
	Body   bytes.Buffer
	Over   bool
	header http.Header
}

// Header implements [http.ResponseWriter].
func (w *Recorder) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements [http.ResponseWriter].
func (w *Recorder) WriteHeader(status int) { w.Status = cmp.Or(w.Status, status) }

// Write implements [http.ResponseWriter].
func (w *Recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.Over = w.Over || len(p) > w.Most-w.Body.Len(); w.Over {
		return len(p), nil
	}
	return w.Body.Write(p)
}
