package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// addSandboxes adds the operations on sandboxes.
func (a *API) addSandboxes() {
	create := operation("createSandbox", http.MethodPost, "/v1/sandboxes", "Create a sandbox", http.StatusUnprocessableEntity)
	create.DefaultStatus = http.StatusCreated
	add(a, create, a.service.CreateSandbox)
	huma.Register(a.huma, operation("listSandboxes", http.MethodGet, "/v1/sandboxes", "List your sandboxes, the oldest first"),
		func(ctx context.Context, _ *struct{}) (*result[sandboxList], error) {
			return &result[sandboxList]{sandboxList{a.service.Sandboxes(tenant.FromContext(ctx))}}, nil
		})
	a.addInfo(operation("getSandbox", http.MethodGet, "/v1/sandboxes/{id}", "Describe a sandbox, without renewing it", http.StatusNotFound), a.service.Sandbox)
	a.addInfo(operation("renewSandbox", http.MethodPost, "/v1/sandboxes/{id}/renew", "Restart the idle timeout of a sandbox", http.StatusNotFound), a.service.Renew)
	huma.Register(a.huma, operation("deleteSandbox", http.MethodDelete, "/v1/sandboxes/{id}", "Delete a sandbox, with all that runs in it", http.StatusNotFound),
		func(ctx context.Context, r *InSandbox) (*empty, error) {
			if err := a.service.Delete(tenant.FromContext(ctx), r.ID); err != nil {
				return nil, fail(err)
			}
			return nil, nil
		})
}

// sandboxList is a list of sandboxes.
type sandboxList struct {
	Sandboxes []*service.SandboxInfo `json:"sandboxes"`
}

// addInfo adds an operation that describes a sandbox.
func (a *API) addInfo(op huma.Operation, get func(t *tenant.Tenant, id string) (*service.SandboxInfo, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, r *InSandbox) (*result[*service.SandboxInfo], error) {
		info, err := get(tenant.FromContext(ctx), r.ID)
		if err != nil {
			return nil, fail(err)
		}
		return &result[*service.SandboxInfo]{info}, nil
	})
}
