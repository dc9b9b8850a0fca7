package session

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/runtime/sandboxtools"
)

// tools are the tools of package sandboxtools, whose sandboxes end with the session.
type tools struct {
	mu      sync.Mutex
	toolbox *service.Toolbox // created by the first call
}

// openTools returns the toolbox of the session.
func (c *connection) openTools() (*service.Toolbox, error) {
	c.tools.mu.Lock()
	defer c.tools.mu.Unlock()
	var err error
	if c.tools.toolbox == nil {
		c.tools.toolbox, err = c.service.NewToolbox(c.tenant)
	}
	return c.tools.toolbox, err
}

// closeTools closes the toolbox of a session that has ended.
func (c *connection) closeTools() {
	if c.tools.toolbox == nil {
		return
	}
	if err := c.tools.toolbox.Close(); err != nil {
		c.log.Error("close the sandboxes of tools", "tenant", c.tenant.Name, "err", err)
	}
}

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
