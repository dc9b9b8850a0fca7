package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
)

// addPorts adds the operations on guests' servers.
func (a *API) addPorts() {
	addUse(a, operation("listListeners", http.MethodGet, "/v1/sandboxes/{id}/listeners", "List the TCP addresses on which guests listen", http.StatusNotFound, http.StatusGone),
		func(ctx context.Context, sb *service.Sandbox, _ *InSandbox) (*result[listenerList], error) {
			list, err := sb.ListListeners(ctx)
			return &result[listenerList]{listenerList{list}}, err
		})
	wait := operation("waitForPort", http.MethodPost, "/v1/sandboxes/{id}/listeners/{port}/wait", "Wait until a guest listens on a port",
		http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity)
	addUse(a, wait, func(ctx context.Context, sb *service.Sandbox, in *inWait) (*result[*service.PortState], error) {
		var wait service.PortWait
		if in.Body != nil {
			wait = *in.Body
		}
		state, err := sb.WaitForPort(ctx, in.Port, wait)
		return &result[*service.PortState]{state}, err
	})
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		a.huma.OpenAPI().AddOperation(portOperation(method))
	}
}

// listenerList is a list of listeners.
type listenerList struct {
	Listeners []service.Listener `json:"listeners"`
}

// inWait is a request to wait for a port.
type inWait struct {
	InSandbox
	Port uint16 `path:"port" minimum:"1" maximum:"65535" doc:"A TCP port of the sandbox."`
	Body *service.PortWait
}

// portOperation describes a method of [WithPorts] in the document. It is not served by huma.
func portOperation(method string) *huma.Operation {
	least, most := 1.0, 65535.0
	param := func(name, doc string, schema *huma.Schema) *huma.Param {
		return &huma.Param{Name: name, In: "path", Required: true, Description: doc, Schema: schema}
	}
	op := &huma.Operation{
		OperationID: "port" + method[:1] + strings.ToLower(method[1:]), Method: method, Path: portsPath,
		Summary:     "Send a " + method + " request to a server of the sandbox",
		Description: "The path may have any number of segments, and a query. WebSocket and event streams work. The body may have any type.",
		Parameters: []*huma.Param{
			param("id", "The sandbox.", &huma.Schema{Type: huma.TypeString}),
			param("port", "A TCP port on which a guest listens.", &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}),
			param("path", "The path on the guest's server.", &huma.Schema{Type: huma.TypeString}),
		},
		Responses: map[string]*huma.Response{
			"200":     {Description: "What the guest's server replies.", Content: binary("*/*")},
			"default": {Description: "What the guest's server replies, or a problem.", Content: binary("*/*")},
		},
	}
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		op.RequestBody = &huma.RequestBody{Description: "A body of any type.", Content: binary("*/*")}
	}
	return op
}

const portsPath = "/v1/sandboxes/{id}/ports/{port}/{path}"
