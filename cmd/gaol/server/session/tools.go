package session

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	protocol "gaol/internal/session"
	"gaol/runtime/sandboxtools"
)

// toolStatuses are the statuses of the codes of tools. All others have 422.
var toolStatuses = map[sandboxtools.Code]int{
	sandboxtools.UnknownTool: http.StatusNotFound, sandboxtools.NotFound: http.StatusNotFound,
	sandboxtools.Exists: http.StatusConflict, sandboxtools.NotEmpty: http.StatusConflict, sandboxtools.Busy: http.StatusConflict,
	sandboxtools.Permission: http.StatusForbidden, sandboxtools.NoSpace: http.StatusInsufficientStorage,
	sandboxtools.Closed: http.StatusGone, sandboxtools.Canceled: statusCanceled,
}

// toolProblem returns the problem of an error of a tool.
func toolProblem(err error) (p protocol.Problem, ok bool) {
	e, ok := errors.AsType[*sandboxtools.Error](err)
	if !ok {
		return p, false
	}
	p = protocol.Problem{Status: toolStatuses[e.Code], Code: string(e.Code), Detail: e.Error()}
	if p.Status == 0 {
		p.Status = http.StatusUnprocessableEntity
	}
	if e.Place != "" {
		p.Errors, _ = json.Marshal([]huma.ErrorDetail{{Message: e.Err.Error(), Location: e.Place}}) // strings
	}
	return p, true
}
