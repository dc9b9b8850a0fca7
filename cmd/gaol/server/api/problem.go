package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
	"gaol/internal/strictjson"
)

// Problem is the body of each error (RFC 9457).
type Problem struct {
	Type   string              `json:"type" doc:"about:blank: the code says which error it is."`
	Title  string              `json:"title" doc:"The text of the status."`
	Status int                 `json:"status"`
	Code   service.Code        `json:"code" doc:"A stable name of the error, for programs."`
	Detail string              `json:"detail,omitempty" doc:"What is wrong, for people."`
	Errors []*huma.ErrorDetail `json:"errors,omitempty" doc:"Which fields are invalid."`

	retryAfter time.Duration
}

var problemType = reflect.TypeFor[Problem]()

// Error returns the detail.
func (p *Problem) Error() string { return cmp.Or(p.Detail, p.Title) }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of problems.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

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

// newProblem is [huma.NewError] for this API.
func newProblem(status int, detail string, errs ...error) huma.StatusError {
	if status == http.StatusInternalServerError && detail == unreadable {
		err := errors.Join(errs...)
		if e, ok := errors.AsType[*service.Error](err); ok { // its values exceed a quota
			return ProblemOf(e)
		}
		status = http.StatusBadRequest
		if errors.As(err, new(*strictjson.ValuesError)) {
			detail = "the body: " + err.Error()
		}
	}
	p := NewProblem(status, detail)
	p.Errors = Details(errs)
	return p
}

// Details describes the invalid fields of a request, at most 20.
func Details(errs []error) (list []*huma.ErrorDetail) {
	for _, err := range errs[:min(len(errs), maxDetails)] {
		if d, ok := err.(huma.ErrorDetailer); ok {
			list = append(list, bounded(d.ErrorDetail()))
		} else if err != nil {
			list = append(list, bounded(&huma.ErrorDetail{Message: err.Error()}))
		}
	}
	return list
}

// unreadable is huma's detail for a body that ends early or is not framed correctly.
const unreadable = "cannot read request body"

const (
	maxDetails    = 20
	maxDetailText = 300 // bytes
)

// bounded returns a detail without the value that was sent, which can be the whole body, unless that
// is short.
func bounded(d *huma.ErrorDetail) *huma.ErrorDetail {
	short := &huma.ErrorDetail{Message: cut(d.Message), Location: cut(d.Location)}
	switch v := d.Value.(type) {
	case string:
		if len(v) <= maxDetailText {
			short.Value = v
		}
	case bool, float64, json.Number:
		short.Value = v
	}
	return short
}

func cut(text string) string {
	if len(text) <= maxDetailText {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetailText], "") + "..."
}

// ProblemOf returns the problem for an error of package service.
func ProblemOf(err error) *Problem {
	e, ok := errors.AsType[*service.Error](err)
	if !ok {
		return NewProblem(http.StatusInternalServerError, "")
	}
	p := NewProblem(e.Status(), e.Error())
	p.Code, p.retryAfter = e.Code, e.RetryAfter
	return p
}

// fail returns an error of package service as a handler returns it.
func fail(err error) error {
	p := ProblemOf(err)
	if p.retryAfter > 0 {
		return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {p.seconds()}})
	}
	return p
}

func (p *Problem) seconds() string {
	return strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds())))
}

// Write writes the problem as a response.
func (p *Problem) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", p.ContentType(""))
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", p.seconds())
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

// WriteProblem writes a problem of HTTP itself.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	NewProblem(status, detail).Write(w)
}
