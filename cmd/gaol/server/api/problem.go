package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
)

// Problem is the body of each error (RFC 9457).
type Problem struct {
	Type   string              `json:"type" doc:"about:blank: the code identifies the error."`
	Title  string              `json:"title" doc:"The text of the status."`
	Status int                 `json:"status"`
	Code   service.Code        `json:"code" doc:"A stable name of the error, for programs."`
	Detail string              `json:"detail,omitempty" doc:"The problem, for people."`
	Errors []*huma.ErrorDetail `json:"errors,omitempty" doc:"Which fields are invalid."`

	retryAfter time.Duration
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
	code, ok := codes[status]
	if !ok {
		code = service.Internal
	}
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// ProblemOf returns the problem for an error: of package service, or a problem itself.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	e, ok := service.AsError(err)
	if !ok {
		return NewProblem(http.StatusInternalServerError, "")
	}
	p := NewProblem(e.Status(), e.Error())
	p.Code, p.retryAfter = e.Code, e.RetryAfter
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
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

// WriteProblem writes a problem of HTTP itself.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	NewProblem(status, detail).Write(w)
}
